import { type InferResult, sql } from 'kysely';
import { ConflictError } from '../../domain/errors.ts';
import type {
  FileIdentity,
  InboxFile,
  InboxFolder,
  InboxOptions,
  InboxOutcome,
  InboxReason,
} from '../../domain/inbox.ts';
import { endedStatuses } from '../../domain/load.ts';
import { camel, hex } from '../columns.ts';
import type { Database } from '../database.ts';
import { isUniqueViolation } from '../sqlstate.ts';

/*
 * Files of the inbox: claimed (a row, then a rename into a hidden folder) → loading | refused → concluded. They are not tasks of
 * `src/tasks/`: their order of arrival counts, and one process at a time looks after an inbox, under an advisory lock that ends with its
 * session. A lease of each file would guard what the lock guards already. `attempt` fences what taking a file in writes.
 */

export interface NewInboxFile extends FileIdentity {
  readonly fileId: string;
  readonly environmentId: number;
  readonly folder: InboxFolder;
  readonly name: string;
  readonly hasMarker: boolean;
  readonly options: InboxOptions;
}

/** Inserts rows in the order of arrival. Returns the ids of those that were inserted: files that are claimed already are left out. */
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

/** Begins an attempt and returns its number, which fences all earlier ones; `null` if the file is not claimed any more. */
export async function beginAttempt(db: Database, fileId: string): Promise<number | null> {
  const row = await db
    .updateTable('inbox_files')
    .set((eb) => ({ attempt: eb('attempt', '+', 1) }))
    .where((eb) => eb.and({ file_id: fileId, state: 'claimed' }))
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

/** Call it in the transaction that accepts the load. Throws `ConflictError` if another attempt has begun since. */
export async function markLoading(
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
    .where((eb) => eb.and({ file_id: fileId, state: 'claimed', attempt }))
    .returning('file_id')
    .executeTakeFirst();
  if (noted === undefined) throw new ConflictError('another process takes the file in');
}

/** Refuses a file, unless another attempt has begun since. */
export async function markRefused(
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
    .where((eb) => eb.and({ file_id: fileId, state: 'claimed', attempt }))
    .execute();
}

/** Counts a failure and returns the number so far. */
export async function countInboxFailure(db: Database, fileId: string): Promise<number> {
  const row = await db
    .updateTable('inbox_files')
    .set((eb) => ({ failures: eb('failures', '+', 1) }))
    .where((eb) => eb.and({ file_id: fileId, state: 'claimed' }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? 0;
}

/** Forgets a file that was put back, or that somebody took away before it was claimed. */
export async function dropInboxFile(db: Database, fileId: string, attempt: number): Promise<void> {
  await db
    .deleteFrom('inbox_files')
    .where((eb) => eb.and({ file_id: fileId, state: 'claimed', attempt }))
    .execute();
}

/** Fixes where a file goes, unless that is fixed already. Returns `null` if another file goes there. */
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
      .returning(['outcome', 'placed_as as placedAs'])
      .executeTakeFirst();
    if (row?.outcome == null || row.placedAs === null) {
      throw new ConflictError('the file is not in the ledger any more');
    }
    return { outcome: row.outcome, placedAs: row.placedAs };
  } catch (error) {
    if (isUniqueViolation(error)) return null;
    throw error;
  }
}

/** Marks a file as concluded that lies in its place. */
export async function markConcluded(
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

/** Returns the environments with claimed files. */
export async function environmentsWithClaims(db: Database, inboxId: string): Promise<number[]> {
  const rows = await db
    .selectFrom('inbox_files')
    .select('environment_id')
    .distinct()
    .where((eb) => eb.and({ inbox_id: inboxId, state: 'claimed' }))
    .execute();
  return rows.map((row) => row.environment_id);
}

/** Reads an environment's claimed files in order of arrival. */
export async function claimedFiles(
  db: Database,
  inboxId: string,
  environmentId: number,
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectInboxFiles(db)
    .where((eb) => eb.and({ 'f.inbox_id': inboxId, 'f.environment_id': environmentId, 'f.state': 'claimed' }))
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toInboxFile);
}

/**
 * Reads the files in the hidden folder that were refused or whose load has ended, without `except`: the first of each environment in
 * order of arrival, then the second of each and so on, so that one environment does not hold up another.
 */
export async function filesToConclude(
  db: Database,
  inboxId: string,
  except: readonly string[],
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectInboxFiles(db)
    .select(sql<number>`row_number() over (partition by f.environment_id order by f.arrival)`.as('turn'))
    .leftJoin('loads as l', (join) =>
      join.onRef('l.job_id', '=', 'f.job_id').onRef('l.environment_id', '=', 'f.environment_id'),
    )
    .where('f.inbox_id', '=', inboxId)
    .where(sql<boolean>`f.file_id <> all (${[...except]}::uuid[])`)
    .where((eb) =>
      eb.or([
        eb('f.state', '=', 'refused'),
        eb.and([
          eb('f.state', '=', 'loading'),
          eb.or([
            // The load was pruned; or a place was fixed, which stays.
            eb('l.job_id', 'is', null),
            eb('l.status', 'in', endedStatuses),
            eb('f.placed_as', 'is not', null),
          ]),
        ]),
      ]),
    )
    .orderBy('turn')
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toInboxFile);
}

/** Returns the running load of the same bytes and options that was taken from the inbox before; `null` if there is none. */
export async function findTwin(db: Database, file: InboxFile, sha256: string): Promise<string | null> {
  const row = await db
    .selectFrom('inbox_files')
    .select('job_id')
    .where((eb) =>
      eb.and({
        environment_id: file.environmentId,
        sha256: Buffer.from(sha256, 'hex'),
        state: 'loading',
        is_duplicate: false,
      }),
    )
    .where(sql<boolean>`options = ${JSON.stringify(file.options)}::jsonb`)
    .orderBy('arrival', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.job_id ?? null;
}

/** Returns which of these files are not concluded. */
export async function openInboxFiles(db: Database, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await db
    .selectFrom('inbox_files')
    .select('file_id')
    .where('file_id', 'in', ids)
    .where('state', '<>', 'concluded')
    .execute();
  return new Set(rows.map((row) => row.file_id));
}

/** Deletes up to `limit` files that were concluded `days` ago and whose load has no stored file any more. Returns the number. */
export async function forgetExpiredInboxFiles(db: Database, days: number, limit: number): Promise<number> {
  const expired = db
    .selectFrom('inbox_files as f')
    .leftJoin('loads as l', 'l.job_id', 'f.job_id')
    .select('f.file_id')
    .where('f.state', '=', 'concluded')
    .where('f.concluded_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .where('l.file_ref', 'is', null)
    .limit(limit);
  const { numDeletedRows } = await db
    .deleteFrom('inbox_files')
    .where('file_id', 'in', expired)
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}

export function selectInboxFiles(db: Database) {
  return db
    .selectFrom('inbox_files as f')
    .innerJoin('environments as e', 'e.environment_id', 'f.environment_id')
    .select(
      camel('f.file_id', 'f.environment_id', 'f.folder', 'f.name', 'f.inode', 'f.size', 'f.modified_ns'),
    )
    .select(camel('f.has_marker', 'f.options', 'f.state', 'f.failures', 'f.claimed_at', 'f.job_id'))
    .select(camel('f.is_duplicate', 'f.reasons', 'f.outcome', 'f.placed_as'))
    .select(['e.name as environment', hex('f.sha256', 'sha256')]);
}

type FileRow = InferResult<ReturnType<typeof selectInboxFiles>>[number];

export function toInboxFile({ inode, size, modifiedNs, ...file }: FileRow): InboxFile {
  return { ...file, inode: BigInt(inode), size: BigInt(size), modifiedNs: BigInt(modifiedNs) };
}
