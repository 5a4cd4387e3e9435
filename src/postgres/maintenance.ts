import { sql } from 'kysely';
import type { ClientBase } from 'pg';
import type { Logger } from 'pino';
import type { Database } from './database.ts';
import { isLockTimeout } from './sqlstate.ts';

/** Since this version an update in place (HOT) is possible although a column in a block-range index changes. */
const brinAllowsHot = 160_000;
const lockTimeout = '2s';

/**
 * Has the block-range indexes on `updated_at` where they cost nothing, and has none where they would keep every update of a
 * profile from being made in place (docs/decisions/keys-and-merge.md). Not a migration, because a database moves from
 * one version of PostgreSQL to another. Where a lock is not to be had soon, as beside a long export, the next start does it.
 */
export async function fitIndexes(client: ClientBase, advisoryLock: number): Promise<void> {
  const { rows } = await client.query<{ isOld: boolean; tables: string[] }>(
    `select
      current_setting('server_version_num')::int < $1 as "isOld",
      array(
        select name
        from unnest('{users,companies}'::text[]) name
        where to_regclass('sluice.' || name) is not null
          and (to_regclass('sluice.' || name || '_updated_idx') is null)
            <> (current_setting('server_version_num')::int < $1)
      ) as tables`,
    [brinAllowsHot],
  );
  const { isOld = false, tables = [] } = rows[0] ?? {};
  for (const table of tables) await fitIndex(client, advisoryLock, table, isOld);
}

async function fitIndex(
  client: ClientBase,
  advisoryLock: number,
  table: string,
  isOld: boolean,
): Promise<void> {
  const index = `${table}_updated_idx`;
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock($1)', [advisoryLock]);
    await client.query(`set local lock_timeout = '${lockTimeout}'`);
    await client.query(
      isOld
        ? `drop index if exists sluice.${index}`
        : `create index if not exists ${index} on sluice.${table} using brin (updated_at) with (autosummarize = on)`,
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    if (!isLockTimeout(error)) throw error;
  }
}

/** The share of a table's rows that have changed since it was last analysed, and the least number. */
const staleShare = 0.2;
const staleRows = 1_000;

/**
 * Has Postgres look anew at those of users, companies and the months of events that changed much. autovacuum does it within
 * a minute or so, but a query over a table that was empty when it was looked at last may take hours meanwhile: the planner
 * takes its rows to be few. What cannot be analyzed now is left to autovacuum.
 */
export async function analyzeStale(db: Database, log: Logger): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select format('%I.%I', schemaname, stat.relname) as name
    from pg_stat_user_tables stat
    join pg_class on pg_class.oid = relid
    where schemaname = 'sluice'
      and (stat.relname in ('users', 'companies') or relispartition)
      and n_mod_since_analyze > ${staleRows} + ${staleShare} * greatest(reltuples, 0)`.execute(db);
  for (const { name } of rows) {
    try {
      await db.transaction().execute(async (transaction) => {
        await sql`select set_config('lock_timeout', ${lockTimeout}, true)`.execute(transaction);
        await sql`analyze ${sql.raw(name)}`.execute(transaction);
      });
    } catch (error) {
      log.debug({ err: error, table: name }, 'a table could not be analyzed');
    }
  }
}
