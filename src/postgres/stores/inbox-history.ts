import type { InboxFile, InboxOutcome, InboxReason } from '../../domain/inbox.ts';
import type { Database } from '../database.ts';
import { selectInboxFiles, toInboxFile } from './inbox-files.ts';

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
  readonly fileId: string;
  /** Bytes. */
  readonly size: number;
  readonly environment: string;
  readonly name: string;
  readonly outcome: InboxOutcome;
  /** Below the environment's folder. */
  readonly path: string;
  readonly jobId: string | null;
  readonly isDuplicate: boolean;
  /** Records of the file that were refused and have not been mended since. */
  readonly rejected: number;
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
  const rows = await selectInboxFiles(db)
    .leftJoin('loads as l', (join) =>
      join
        .onRef('l.job_id', '=', 'f.job_id')
        .on('f.is_duplicate', '=', false)
        .on('l.status', '=', 'completed'),
    )
    .select(['f.concluded_at', 'l.rows_rejected'])
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', 'in', environmentIds)
    .where('f.state', '=', 'concluded')
    .orderBy('f.concluded_at', 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => {
    const file = toInboxFile(row);
    return {
      fileId: file.fileId,
      size: Number(file.size),
      environment: file.environment,
      name: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
      outcome: file.outcome ?? 'failed',
      path: `${file.outcome}/${file.placedAs}`,
      jobId: file.jobId,
      isDuplicate: file.isDuplicate,
      rejected: row.rows_rejected ?? 0,
      reasons: file.reasons,
      concludedAt: row.concluded_at ?? file.claimedAt,
    };
  });
}

/** Files of an environment that are claimed and not concluded, in order of arrival. */
export async function openInboxFilesOf(
  db: Database,
  inboxId: string,
  environmentId: number,
  limit: number,
): Promise<InboxFile[]> {
  const rows = await selectInboxFiles(db)
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', '=', environmentId)
    .where('f.state', '<>', 'concluded')
    .orderBy('f.arrival')
    .limit(limit)
    .execute();
  return rows.map(toInboxFile);
}

/** One that was concluded as failed; null: the environment has no such file. */
export async function findFailedInboxFile(
  db: Database,
  inboxId: string,
  environmentId: number,
  fileId: string,
): Promise<InboxFile | null> {
  const row = await selectInboxFiles(db)
    .where('f.inbox_id', '=', inboxId)
    .where('f.environment_id', '=', environmentId)
    .where('f.file_id', '=', fileId)
    .where('f.state', '=', 'concluded')
    .where('f.outcome', '=', 'failed')
    .executeTakeFirst();
  return row === undefined ? null : toInboxFile(row);
}
