import type { FileFolder } from '../files/file-store.ts';

/** Where the files of an export are, whichever attempt wrote them. */
export function exportFolder(jobId: string): FileFolder {
  return `exports/${jobId}` as FileFolder;
}

/** Each attempt has a folder of its own: one that comes late cannot touch, or lose, the files of another. */
export function attemptFolder(jobId: string, attempt: number): FileFolder {
  return `exports/${jobId}/${attempt}` as FileFolder;
}
