import type { LoadOptions, LoadType } from '../domain/load.ts';
import type { Origin } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import type { Beginning } from './foreign-file.ts';
import type { ReceivedFile } from './receive/received-file.ts';

export interface AcceptRequest {
  readonly environmentId: number;
  readonly type: LoadType;
  /** Name to display. It is never used as a path. */
  readonly filename: string;
  readonly received: ReceivedFile;
  readonly options: LoadOptions;
  readonly idempotencyKey: string | null;
  readonly requestId?: string;
  /** Job whose stored file this load reads. `null` (the default) if the caller sent a file. */
  readonly fileOf?: string | null;
  /** Default: unknown. */
  readonly origin?: Origin;
  /** Writes rows that must be committed together with the load. */
  readonly inSameTransaction?: (db: Database, accepted: Accepted) => Promise<void>;
}

export interface Accepted {
  readonly jobId: string;
  /** False if the job already existed (same idempotency key, or `if_duplicate=skip`). */
  readonly created: boolean;
}

export interface LoadRequest extends AcceptRequest {
  readonly beginning: Beginning;
  /** Load whose refused records this file corrects, or `null`. */
  readonly mends: number | null;
}
