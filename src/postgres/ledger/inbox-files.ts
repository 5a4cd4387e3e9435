import { sql } from 'kysely';
import { ConflictError } from '../../domain/errors.ts';
import type {
  FileIdentity,
  InboxFolder,
  InboxOptions,
  InboxOutcome,
  InboxReason,
} from '../../domain/inbox.ts';
import type { Database } from '../database.ts';
import { isUniqueViolation } from '../sqlstate.ts';

export interface NewInboxFile extends FileIdentity {
  readonly fileId: string;
  readonly environmentId: number;
  readonly folder: InboxFolder;
  readonly name: string;
  readonly hasMarker: boolean;
  readonly options: InboxOptions;
}

/**
 * Writes rows in the given order, which becomes their arrival. Gives the ids of those that were written: a file that is
 * claimed already, by whoever, is left to that claim.
 */
export async function insertInboxFiles(
  db: Database,
  inboxId: string,
  files: readonly NewInboxFile[],
): Promise<Set<string>> {
  if (files.length === 0) return new Set();
  const rows = await db
    .insertInto('inbox_files')
    .values(
      files.map((file) => ({
        file_id: file.fileId,
        inbox_id: inboxId,
        environment_id: file.environmentId,
        folder: file.folder,
        name: file.name,
        inode: String(file.inode),
        size: Number(file.size),
        modified_ns: String(file.modifiedNs),
        has_marker: file.hasMarker,
        options: JSON.stringify(file.options),
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning('file_id')
    .execute();
  return new Set(rows.map((row) => row.file_id));
}

/** A number that fences all earlier attempts at taking the file in; null: it is claimed no more. */
export async function beginAttempt(db: Database, fileId: string): Promise<number | null> {
  const row = await db
    .updateTable('inbox_files')
    .set((eb) => ({ attempt: eb('attempt', '+', 1) }))
    .where('file_id', '=', fileId)
    .where('state', '=', 'claimed')
    .returning('attempt')
    .executeTakeFirst();
  return row?.attempt ?? null;
}

export interface Accepted {
  readonly jobId: string;
  readonly isDuplicate: boolean;
  /** Hex. */
  readonly sha256: string;
}

/** Part of the transaction that accepts the load. Throws `ConflictError` if another attempt has begun since. */
export async function noteLoading(
  db: Database,
  fileId: string,
  attempt: number,
  accepted: Accepted,
): Promise<void> {
  const noted = await db
    .updateTable('inbox_files')
    .set({
      state: 'loading',
      job_id: accepted.jobId,
      is_duplicate: accepted.isDuplicate,
      sha256: Buffer.from(accepted.sha256, 'hex'),
    })
    .where('file_id', '=', fileId)
    .where('state', '=', 'claimed')
    .where('attempt', '=', attempt)
    .returning('file_id')
    .executeTakeFirst();
  if (noted === undefined) throw new ConflictError('another process takes the file in');
}

/** There will be no load. Does nothing if another attempt has begun since. */
export async function noteRefused(
  db: Database,
  fileId: string,
  attempt: number,
  sha256: string | null,
  reasons: readonly InboxReason[],
): Promise<void> {
  await db
    .updateTable('inbox_files')
    .set({
      state: 'refused',
      sha256: sha256 === null ? null : Buffer.from(sha256, 'hex'),
      reasons: JSON.stringify(reasons),
    })
    .where('file_id', '=', fileId)
    .where('state', '=', 'claimed')
    .where('attempt', '=', attempt)
    .execute();
}

/** Failures so far. */
export async function countInboxFailure(db: Database, fileId: string): Promise<number> {
  const row = await db
    .updateTable('inbox_files')
    .set((eb) => ({ failures: eb('failures', '+', 1) }))
    .where('file_id', '=', fileId)
    .where('state', '=', 'claimed')
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? 0;
}

/** Forgets a file that lies in its place again, or that somebody took away before it could be claimed. */
export async function dropInboxFile(db: Database, fileId: string, attempt: number): Promise<void> {
  await db
    .deleteFrom('inbox_files')
    .where('file_id', '=', fileId)
    .where('state', '=', 'claimed')
    .where('attempt', '=', attempt)
    .execute();
}

/**
 * Fixes where a file is to go, unless that is fixed already; null: another file of ours goes there.
 */
export async function reservePlace(
  db: Database,
  fileId: string,
  outcome: InboxOutcome,
  placedAs: string,
): Promise<{ readonly outcome: InboxOutcome; readonly placedAs: string } | null> {
  try {
    const row = await db
      .updateTable('inbox_files')
      .set({ outcome: sql`coalesce(outcome, ${outcome})`, placed_as: sql`coalesce(placed_as, ${placedAs})` })
      .where('file_id', '=', fileId)
      .returning(['outcome', 'placed_as'])
      .executeTakeFirst();
    if (row?.placed_as == null) throw new ConflictError('the file is not in the ledger any more');
    return { outcome: row.outcome as InboxOutcome, placedAs: row.placed_as };
  } catch (error) {
    if (isUniqueViolation(error)) return null;
    throw error;
  }
}

/** It lies in its place, with everything beside it. */
export async function noteConcluded(
  db: Database,
  fileId: string,
  reasons: readonly InboxReason[],
): Promise<void> {
  await db
    .updateTable('inbox_files')
    .set({ state: 'concluded', concluded_at: sql`now()`, reasons: JSON.stringify(reasons) })
    .where('file_id', '=', fileId)
    .where('state', 'in', ['loading', 'refused'])
    .execute();
}

export async function forgetInboxFile(db: Database, fileId: string): Promise<void> {
  await db.deleteFrom('inbox_files').where('file_id', '=', fileId).execute();
}
