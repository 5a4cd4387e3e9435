import { sql } from 'kysely';
import type {
  InboxFile,
  InboxFolder,
  InboxOptions,
  InboxOutcome,
  InboxReason,
  InboxState,
} from '../../domain/inbox.ts';
import { endedStatuses } from '../../domain/load.ts';
import type { Database } from '../database.ts';

/** Environments of which claimed files wait to be taken in. */
export async function environmentsWithClaims(db: Database, inboxId: string): Promise<number[]> {
  const rows = await db
    .selectFrom('inbox_files')
    .select('environment_id')
    .distinct()
    .where('inbox_id', '=', inboxId)
    .where('state', '=', 'claimed')
    .execute();
  return rows.map((row) => row.environment_id);
}

/** The first of an environment's claimed files, in order of arrival. */
export async function claimedFiles(
  db: Database,
  inboxId: string,
  environmentId: number,
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectFiles(db)
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', '=', environmentId)
    .where('f.state', '=', 'claimed')
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toFile);
}

/** The files whose fate is known and which still lie in the hidden folder, in order of arrival. */
export async function filesToConclude(db: Database, inboxId: string, limit: number): Promise<InboxFile[]> {
  const rows = await selectFiles(db)
    .leftJoin('loads as l', (join) =>
      join.onRef('l.job_id', '=', 'f.job_id').onRef('l.environment_id', '=', 'f.environment_id'),
    )
    .where('f.inbox_id', '=', inboxId)
    .where((eb) =>
      eb.or([
        eb('f.state', '=', 'refused'),
        eb.and([
          eb('f.state', '=', 'loading'),
          eb.or([
            // A record that has outlived its retention says nothing any more; a place that is fixed stays.
            eb('l.job_id', 'is', null),
            eb('l.status', 'in', endedStatuses),
            eb('f.placed_as', 'is not', null),
          ]),
        ]),
      ]),
    )
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toFile);
}

/** A load under way of the same bytes, taken from the inbox before with the same options; its job id or null. */
export async function findTwin(db: Database, file: InboxFile, sha256: string): Promise<string | null> {
  const row = await db
    .selectFrom('inbox_files')
    .select('job_id')
    .where('environment_id', '=', file.environmentId)
    .where('sha256', '=', Buffer.from(sha256, 'hex'))
    .where('state', '=', 'loading')
    .where('is_duplicate', '=', false)
    .where(sql<boolean>`options = ${JSON.stringify(file.options)}::jsonb`)
    .orderBy('arrival', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.job_id ?? null;
}

/** Those of the ids that the ledger has as not concluded. */
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

/** By environment: how many are claimed, and how many are further than that but not concluded. */
export async function countOpenInboxFiles(
  db: Database,
  inboxId: string,
): Promise<Map<number, { readonly claimed: number; readonly loading: number }>> {
  const rows = await db
    .selectFrom('inbox_files')
    .select((eb) => [
      'environment_id',
      eb.fn.countAll<number>().filterWhere('state', '=', 'claimed').as('claimed'),
      eb.fn.countAll<number>().filterWhere('state', '<>', 'claimed').as('loading'),
    ])
    .where('inbox_id', '=', inboxId)
    .where('state', '<>', 'concluded')
    .groupBy('environment_id')
    .execute();
  return new Map(rows.map(({ environment_id, ...counts }) => [environment_id, counts]));
}

/** A file that was concluded. */
export interface RecentInboxFile {
  readonly environment: string;
  readonly name: string;
  readonly outcome: InboxOutcome;
  /** Below the environment's folder. */
  readonly path: string;
  readonly jobId: string | null;
  readonly isDuplicate: boolean;
  readonly reasons: readonly InboxReason[];
  readonly concludedAt: Date;
}

/** The newest first. */
export async function recentInboxFiles(
  db: Database,
  inboxId: string,
  environmentIds: readonly number[],
  limit: number,
): Promise<RecentInboxFile[]> {
  if (environmentIds.length === 0) return [];
  const rows = await selectFiles(db)
    .select('f.concluded_at')
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', 'in', environmentIds)
    .where('f.state', '=', 'concluded')
    .orderBy('f.concluded_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => {
    const file = toFile(row);
    return {
      environment: file.environment,
      name: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
      outcome: file.outcome ?? 'failed',
      path: `${file.outcome}/${file.placedAs}`,
      jobId: file.jobId,
      isDuplicate: file.isDuplicate,
      reasons: file.reasons,
      concludedAt: row.concluded_at ?? file.claimedAt,
    };
  });
}

/** Concluded that long ago, and not kept for a load that has its stored file still. */
export async function expiredInboxFiles(db: Database, days: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('inbox_files as f')
    .leftJoin('loads as l', 'l.job_id', 'f.job_id')
    .select('f.file_id')
    .where('f.state', '=', 'concluded')
    .where('f.concluded_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .where('l.file_ref', 'is', null)
    .limit(limit)
    .execute();
  return rows.map((row) => row.file_id);
}

function selectFiles(db: Database) {
  return db
    .selectFrom('inbox_files as f')
    .innerJoin('environments as e', 'e.environment_id', 'f.environment_id')
    .select([
      'f.file_id',
      'f.environment_id',
      'e.name as environment',
      'f.folder',
      'f.name',
      'f.inode',
      'f.size',
      'f.modified_ns',
      'f.has_marker',
      'f.options',
      'f.state',
      'f.failures',
      'f.claimed_at',
      'f.sha256',
      'f.job_id',
      'f.is_duplicate',
      'f.reasons',
      'f.outcome',
      'f.placed_as',
    ]);
}

type FileRow = Awaited<ReturnType<ReturnType<typeof selectFiles>['execute']>>[number];

function toFile(row: FileRow): InboxFile {
  return {
    fileId: row.file_id,
    environmentId: row.environment_id,
    environment: row.environment,
    folder: row.folder as InboxFolder,
    name: row.name,
    inode: BigInt(row.inode),
    size: BigInt(row.size),
    modifiedNs: BigInt(row.modified_ns),
    hasMarker: row.has_marker,
    options: row.options as unknown as InboxOptions,
    state: row.state as InboxState,
    failures: row.failures,
    claimedAt: row.claimed_at,
    sha256: row.sha256?.toString('hex') ?? null,
    jobId: row.job_id,
    isDuplicate: row.is_duplicate,
    reasons: row.reasons as unknown as InboxReason[],
    outcome: row.outcome as InboxOutcome | null,
    placedAs: row.placed_as,
  };
}
