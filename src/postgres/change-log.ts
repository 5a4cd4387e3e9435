// Switches, prunes and measures the change log. For its locks, see
// sql/migrations/0014_create_changes.sql.
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { Logger } from 'pino';
import type { ExportRequest } from '../domain/export.ts';
import { type Database, withLockTries } from './database.ts';
import { readFigure } from './pool.ts';
import { isLockTimeout } from './sqlstate.ts';

/** SQL condition that matches a key and can use the index on key hashes. */
export const isKey = (column: string, key: RawBuilder<unknown>) =>
  sql`hashtext(${sql.ref(column)}) = hashtext(${key}) and ${sql.ref(column)} = ${key}`;

/**
 * Adds missing partitions. In a database copied from another server, the log may have positions
 * that this server has not reached. The next position is then raised above them.
 */
export async function openChangeLog(client: pg.ClientBase, isServer: boolean, log: Logger): Promise<void> {
  const { rows } = await client.query<{ raised: boolean }>('select sluice.open_change_log($1) as raised', [
    isServer,
  ]);
  if (rows[0]?.raised !== true) return;
  log.warn(
    'the database was copied from a server with higher transaction ids: cursors taken since this log was last looked after are refused',
  );
}

/**
 * Switches the log on if CHANGES_DAYS is above 0. The last server to start decides for all
 * processes.
 */
export async function switchChangeLog(client: pg.ClientBase, days: number, log: Logger): Promise<void> {
  const { rows } = await withLockTries(() =>
    client.query<{ switched: boolean }>('select sluice.switch_change_log($1) as switched', [days > 0]),
  );
  if (rows[0]?.switched !== true) return;
  const state = days > 0 ? 'kept from now on' : 'no longer kept';
  log.warn({ changes_days: days }, `changes are ${state}, whichever process makes them (CHANGES_DAYS)`);
}

/** Adds partitions for the coming days, and drops unused partitions older than `days` days. */
export async function maintainChangeLog(db: Database, days: number): Promise<void> {
  await sql`select ensure_changes_partitions()`.execute(db);
  await sql`update change_log set known_position = greatest(known_position, next_position())`.execute(db);
  await withLockTries(() => sql`select drop_old_changes(${days})`.execute(db)).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
  });
}

/**
 * Returns the reason why an export cannot continue from a cursor, or `null` if it can. `expired`:
 * the cursor is from another database, or the log has lost removals since the cursor. `log off`:
 * removals are requested, but the log is off.
 */
export async function findCursorProblem(
  db: Database,
  { since, includeRemoved }: Pick<ExportRequest, 'since' | 'includeRemoved'>,
): Promise<'expired' | 'log off' | null> {
  if (since === null && !includeRemoved) return null;
  const end = sql`pg_snapshot_xmax(${since}::pg_snapshot)::text::bigint`;
  const { rows } = await sql<{ is_off: boolean; is_expired: boolean | null }>`
    select
      ${includeRemoved} and complete_since is null as is_off,
      not lineage @> ${end}
        or ${end} > next_position()
        or (${includeRemoved} and pg_snapshot_xmin(${since}::pg_snapshot)::text::bigint < complete_since) as is_expired
    from change_log`.execute(db);
  if (rows[0]?.is_off === true) return 'log off';
  return rows[0]?.is_expired === true ? 'expired' : null;
}

export interface ChangeLog {
  readonly isOn: boolean;
  readonly bytes: number;
  /** Age in days of the oldest day that has a partition, even an empty one. 0 is today. */
  readonly days: number;
  /** Number of changes in the default partition, which should be empty. Counts up to 1 000. */
  readonly strayRows: number;
  readonly hasTomorrow: boolean;
}

const figures = `
  select
    (select complete_since is not null from sluice.change_log) as "isOn",
    sum(pg_total_relation_size(oid))::bigint as bytes,
    coalesce(today - min(day), 0) as days,
    (select count(*) from (select 1 from sluice.changes_default limit 1000) stray) as "strayRows",
    coalesce(bool_or(day = today + 1), false) as "hasTomorrow"
  from (
    select inhrelid as oid, to_date(substring(inhrelid::regclass::text from '\\d{4}_\\d\\d_\\d\\d$'), 'YYYY_MM_DD') as day,
      (now() at time zone 'UTC')::date as today
    from pg_inherits
    where inhparent = 'sluice.changes'::regclass
  ) partitions
  group by today`;

export function readChangeLog(watch: pg.Pool | pg.ClientBase): Promise<ChangeLog> {
  return readFigure(watch, figures);
}
