import type pg from 'pg';
import type { FileFolder, FileStore } from '../files/file-store.ts';
import type { Acts } from '../postgres/acts.ts';
import type { JobEvents } from '../tasks/job-seam.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { ExportOptions } from './options.ts';
import type { writeExport } from './write/write-export.ts';

/** The function that writes an export. Tests pass one that stops at a chosen point. */
export type ExportWriter = typeof writeExport;

export interface ExportContext extends TaskContext {
  readonly pool: pg.Pool;
  readonly acts: Acts;
  readonly jobs: JobEvents;
  readonly files: FileStore;
  /**
   * Base URL of links in messages, without a trailing slash. Links in a response use the URL of the
   * request.
   */
  readonly baseUrl: string;
  readonly exportTimeoutMs: number;
  readonly writeExport: ExportWriter;
  readonly exportOptions: ExportOptions;
}

declare module '../context.ts' {
  interface System extends ExportContext {}
}

declare module '../cli/settings.ts' {
  interface Cli {
    readonly exportOptions: ExportOptions;
  }
}

export function exportFolder(jobId: string): FileFolder {
  return `exports/${jobId}` as FileFolder;
}

/**
 * Each attempt has its own folder, so that a late attempt cannot overwrite files of the next
 * attempt.
 */
export function attemptFolder(jobId: string, attempt: number): FileFolder {
  return `exports/${jobId}/${attempt}` as FileFolder;
}
