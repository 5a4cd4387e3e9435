import type pg from 'pg';
import type { FileStore } from '../files/file-store.ts';
import type { KnownProperties } from '../properties/known-properties.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { ChunkMemory } from './chunk-memory.ts';

/** Everything the load route works with. Passed, never imported: two systems can live in one process. */
export interface LoadContext extends TaskContext {
  readonly pool: pg.Pool;
  readonly files: FileStore;
  readonly knownProperties: KnownProperties;
  /** What links begin with where no request says it, without a slash at the end. */
  readonly baseUrl: string;
  readonly memory: ChunkMemory;
}
