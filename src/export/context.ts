import type pg from 'pg';
import type { FileFolder, FileStore } from '../files/file-store.ts';
import type { JobEvents } from '../tasks/job-seam.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { writeExport } from './write/write-export.ts';

/** Writes the files; tests use writers that stop where they are told to. */
export type ExportWriter = typeof writeExport;

/** Everything the way out works with. Passed, never imported: two systems can live in one process. */
export interface ExportContext extends TaskContext {
  readonly pool: pg.Pool;
  /** Calls the hooks of capabilities when a job ends. */
  readonly jobs: JobEvents;
  readonly files: FileStore;
  /** The beginning of links outside of requests, without a slash at the end. */
  readonly baseUrl: string;
  /** The longest time of one attempt, in milliseconds. */
  readonly exportTimeoutMs: number;
  readonly writeExport: ExportWriter;
}

/** Returns where the files of an export are, whichever attempt wrote them. */
export function exportFolder(jobId: string): FileFolder {
  return `exports/${jobId}` as FileFolder;
}

/** Each attempt has a folder of its own: one that comes late cannot touch, or lose, the files of another. */
export function attemptFolder(jobId: string, attempt: number): FileFolder {
  return `exports/${jobId}/${attempt}` as FileFolder;
}
