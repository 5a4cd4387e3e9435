import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from './database.ts';

/** Of a table's rows, changed since Postgres looked at it last; and so many in any case. */
const staleShare = 0.2;
const staleRows = 1_000;
const lockTimeout = '2s';

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
