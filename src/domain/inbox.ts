import type { FileOptions } from './load.ts';

/** The folder of a file: the environment's own, or one of those that fix the entity. */
export const inboxFolders = ['', 'users', 'companies'] as const;
export type InboxFolder = (typeof inboxFolders)[number];

export interface FileIdentity {
  readonly inode: bigint;
  readonly size: bigint;
  readonly modifiedNs: bigint;
}

export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.inode === b.inode && a.size === b.size && a.modifiedNs === b.modifiedNs;
}

export interface SeenFile extends FileIdentity {
  readonly folder: InboxFolder;
  readonly name: string;
}

/** loading: its load is accepted. refused: there will be none. concluded: it lies in done or failed, with its receipt. */
export type InboxState = 'loading' | 'refused' | 'concluded';
export type InboxOutcome = 'done' | 'failed';

/** A reason why a file was not loaded as a whole. Codes of `errorCodes`, of failed loads, and the inbox's own. */
export interface InboxReason {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

export interface InboxFile extends SeenFile {
  readonly fileId: string;
  readonly environmentId: number;
  readonly environment: string;
  readonly options: FileOptions;
  readonly state: InboxState;
  readonly takenAt: Date;
  readonly sha256: string | null;
  readonly jobId: string | null;
  readonly isDuplicate: boolean;
  readonly reasons: readonly InboxReason[];
  readonly outcome: InboxOutcome | null;
  /** Day and name below done or failed. */
  readonly placedAs: string | null;
}

/** The data of `file.refused`: a file that the inbox could not load. */
export interface RefusedFile {
  readonly file_id: string;
  /** Below the folder of the environment, such as `users/nightly.csv`. */
  readonly file: string;
  readonly size: number;
  readonly sha256: string | null;
  readonly reasons: readonly InboxReason[];
}
