import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { TransientError } from '../base/errors.ts';
import { columnOf, type Database } from './database.ts';

/*
 * What environments use of the capabilities, so that whoever uses none pays for none. A use begins once, for good. Statements of single
 * records may be composed by a process that does not know of it yet: they look at this table themselves, under a lock.
 */

/** Begins a use. Call it in the transaction that writes what the capability will look up; then `writersKnow`. */
export async function beginUse(db: Database, environmentId: number, name: string): Promise<void> {
  await sql`
    insert into environment_uses (environment_id, name)
    values (${environmentId}, ${name})
    on conflict do nothing`.execute(db);
}

/** Beside a row of `loads`: what its environment uses. */
export const usesOfLoad = sql<readonly string[]>`array(
  select u.name from environment_uses u where u.environment_id = loads.environment_id
)`.as('uses');

export async function readUses(
  db: Database,
  environmentIds: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const { rows } = await sql<{ id: number; names: string[] }>`
    select environment_id as id, array_agg(name order by name) as names
    from environment_uses
    where environment_id = any(${[...environmentIds]}::integer[])
    group by environment_id`.execute(db);
  return new Map(rows.map(({ id, names }) => [id, names]));
}

const waitMs = 30_000;
const pollMs = 20;

/**
 * Returns when all have ended who may write single records by what they saw before now. Later ones see what is committed now.
 * @throws TransientError if one does not end.
 */
export async function writersKnow(db: Database, signal: AbortSignal): Promise<void> {
  const until = performance.now() + waitMs;
  let earlier = await writers(db);
  while (earlier.length > 0) {
    if (performance.now() > until) throw new TransientError('a transaction that writes records does not end');
    await delay(pollMs, undefined, { signal });
    earlier = await writers(db, earlier);
  }
}

/** Lists the transactions that may have looked at the table, of `among`, if set. The lock comes before the look. */
function writers(db: Database, among: readonly string[] | null = null): Promise<string[]> {
  return columnOf<string>(db)`
    select virtualtransaction as id
    from pg_locks
    where locktype = 'relation' and mode = 'RowShareLock' and relation = 'environment_uses'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and (${among}::text[] is null or virtualtransaction = any(${among}::text[]))`;
}
