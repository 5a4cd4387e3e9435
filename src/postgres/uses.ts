import { sql } from 'kysely';
import { TransientError } from '../base/errors.ts';
import { pollUntil } from '../base/retry.ts';
import { columnOf, type Database } from './database.ts';

// Records which capabilities an environment uses, so that they cost others nothing. A use is
// permanent. A statement for single records may have been composed before a use began. Each
// therefore reads the uses under a lock, and fails at an unknown one.

/**
 * In the transaction that writes the capability's data. After the commit, call
 * `awaitEarlierWriters`.
 */
export async function beginUse(db: Database, environmentId: number, name: string): Promise<void> {
  await sql`
    insert into environment_uses (environment_id, name)
    values (${environmentId}, ${name})
    on conflict do nothing`.execute(db);
}

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
 * Waits for earlier statements of single records, which may not know the latest uses.
 * @throws TransientError if a statement does not end in time
 */
export async function awaitEarlierWriters(db: Database, signal: AbortSignal): Promise<void> {
  let earlier: readonly string[] | null = null;
  const haveEnded = await pollUntil({ everyMs: pollMs, forMs: waitMs, signal }, async () => {
    earlier = await writers(db, earlier);
    return earlier.length === 0;
  });
  if (haveEnded) return;
  signal.throwIfAborted();
  throw new TransientError('a transaction that writes records does not end');
}

/**
 * Transactions that have a lock on the uses, and may have read them. Only those in `among`, if it
 * is set.
 */
function writers(db: Database, among: readonly string[] | null = null): Promise<string[]> {
  return columnOf<string>(db)`
    select virtualtransaction as id
    from pg_locks
    where locktype = 'relation' and mode = 'RowShareLock' and relation = 'environment_uses'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and (${among}::text[] is null or virtualtransaction = any(${among}::text[]))`;
}
