import { sql } from 'kysely';
import type { Database } from '../database.ts';
import type { ExportClaim } from './export-claims.ts';
import { isLapsed } from './lease.ts';

/*
 * A worker that is paused in the middle of a transaction keeps its row locks, and with them whoever takes its work
 * over, or merely wants to count it done, would wait. So every such transaction names its session after the attempt
 * it works for, and an attempt that has lost its lease loses its session too. It could not have committed anyway.
 * While an export reads it has no locks that matter, but its statement and its snapshot would stay for as long as the
 * pause does: what is deleted meanwhile could not be vacuumed away.
 * Only in this database: another on the same server may have a load of the same number.
 */
const exportPrefix = 'sluice export ';

/** What the session of an attempt at an export is to be named, in its transactions. */
export function exportSessionName({ exportId, attempt }: Pick<ExportClaim, 'exportId' | 'attempt'>): string {
  return `${exportPrefix}${exportId}:${attempt}`;
}

/** Names the session after the attempt, until the transaction ends. */
export async function nameExportSession(db: Database, claim: ExportClaim): Promise<void> {
  await sql`select set_config('application_name', ${exportSessionName(claim)}, true)`.execute(db);
}

/** Ends the sessions of earlier attempts at an export; not of later ones, in case this is the one that is late. */
export async function endEarlierExportSessions(
  db: Database,
  { exportId, attempt }: Pick<ExportClaim, 'exportId' | 'attempt'>,
): Promise<void> {
  const earlier = Array.from({ length: attempt - 1 }, (_, index) =>
    exportSessionName({ exportId, attempt: index + 1 }),
  );
  if (earlier.length === 0) return;
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and application_name = any (${earlier}::text[])`.execute(db);
}

/** Ends whatever session works for an export that has ended. */
export async function endExportSessions(db: Database, exportId: number): Promise<void> {
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and application_name like ${`${exportPrefix}${exportId}:%`}`.execute(db);
}

/**
 * Ends the sessions of attempts at exports that have lost their lease, or whose export has ended; how many. One whose
 * transaction is younger than this statement may be of an attempt that was claimed since, and is left alone.
 */
export async function endSilentExportSessions(db: Database): Promise<number> {
  const { rows } = await sql<{ ended: boolean }>`
    select pg_terminate_backend(pid) as ended
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and xact_start < now()
      and application_name like ${`${exportPrefix}%`}
      and application_name not in (
        select ${exportPrefix}::text || export_id || ':' || attempt
        from exports
        where status = 'processing' and not ${isLapsed('lease_until')}
      )`.execute(db);
  return rows.length;
}
