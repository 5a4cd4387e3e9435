import type { RefusalReason } from '../../domain/job.ts';
import type { FileOptions } from '../../domain/load.ts';

/** The main folder of an environment (''), and a subfolder for each entity. */
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

/**
 * `loading`: the load was accepted. `refused`: the file gets no load. `concluded`: the file was
 * moved to `done` or `failed`.
 */
export type InboxState = 'loading' | 'refused' | 'concluded';
export type InboxOutcome = 'done' | 'failed';

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
  readonly reasons: readonly RefusalReason[];
  readonly outcome: InboxOutcome | null;
  /** Path below `done` or `failed`. It consists of the date and the name. */
  readonly placedAs: string | null;
}

declare module '../../postgres/columns.ts' {
  interface Known {
    inbox_files: {
      folder: InboxFolder;
      options: FileOptions;
      outcome: InboxOutcome;
      reasons: readonly RefusalReason[];
      state: InboxState;
    };
  }
}
