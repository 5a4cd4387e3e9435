import type { LoadOptions } from './load.ts';
import type { SourceFormat } from './source.ts';

/** Where in an environment's folder a file lay: in itself, or in one of those that fix the entity. */
export const inboxFolders = ['', 'users', 'companies'] as const;
export type InboxFolder = (typeof inboxFolders)[number];

/** How the files of a folder are to be loaded; what its mapping.yaml leaves out is filled in. */
export interface InboxOptions extends Omit<LoadOptions, 'dryRun' | 'plan'> {
  /** Null: the content and the name say it. */
  readonly format: SourceFormat | null;
  /** The saved mapping that stands in place of a map; null: none. It is looked up when a file is taken in. */
  readonly mapping: string | null;
}

/** Tells whether it is still the same file, with the same content. */
export interface FileIdentity {
  readonly inode: bigint;
  readonly size: bigint;
  /** Nanoseconds since 1970. */
  readonly modifiedNs: bigint;
}

export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.inode === b.inode && a.size === b.size && a.modifiedNs === b.modifiedNs;
}

/**
 * claimed: it lies in the hidden folder, or is about to. loading: its load is accepted. refused: there will be none.
 * concluded: it lies in done or failed, with its receipt.
 */
export type InboxState = 'claimed' | 'loading' | 'refused' | 'concluded';
export type InboxOutcome = 'done' | 'failed';

/** Why a file was not loaded, or not as a whole. Codes of `errorCodes`, of failed loads, and the inbox's own. */
export interface InboxReason {
  readonly error_code: string;
  readonly message: string;
  readonly details: string;
}

/** A file that was taken from the inbox, as the ledger has it. */
export interface InboxFile extends FileIdentity {
  readonly fileId: string;
  readonly environmentId: number;
  readonly environment: string;
  readonly folder: InboxFolder;
  /** As it was called in the inbox. */
  readonly name: string;
  readonly hasMarker: boolean;
  readonly options: InboxOptions;
  readonly state: InboxState;
  readonly failures: number;
  readonly claimedAt: Date;
  /** Hex; null until it has been read. */
  readonly sha256: string | null;
  readonly jobId: string | null;
  /** The job loaded the same bytes before. */
  readonly isDuplicate: boolean;
  readonly reasons: readonly InboxReason[];
  readonly outcome: InboxOutcome | null;
  /** Day and name below done or failed. */
  readonly placedAs: string | null;
}
