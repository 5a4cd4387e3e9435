import type pg from 'pg';
import type { FileFolder, FileStore } from '../files/file-store.ts';
import type { JobEvents } from '../tasks/job-seam.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { writeExport } from './write/write-export.ts';

/** Writes the files. Tests substitute writers that stop at a selected point. */
export type ExportWriter = typeof writeExport;

export interface ExportContext extends TaskContext {
  readonly pool: pg.Pool;
  readonly jobs: JobEvents;
  readonly files: FileStore;
  /** Prefix of links made outside of requests, without a trailing slash. */
  readonly baseUrl: string;
  /** Limit of one attempt, in milliseconds. */
  readonly exportTimeoutMs: number;
  readonly writeExport: ExportWriter;
}

declare module '../context.ts' {
  interface System extends ExportContext {}
}

export function exportFolder(jobId: string): FileFolder {
  return `exports/${jobId}` as FileFolder;
}

/** Returns the folder of one attempt, so that a late attempt cannot touch the files of another. */
export function attemptFolder(jobId: string, attempt: number): FileFolder {
  return `exports/${jobId}/${attempt}` as FileFolder;
}
