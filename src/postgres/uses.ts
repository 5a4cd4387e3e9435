import { sql } from 'kysely';
import { TransientError } from '../base/errors.ts';
import { pollUntil } from '../base/retry.ts';
import { columnOf, type Database } from './database.ts';

// Records which capabilities each environment uses, so that a capability costs nothing in other
// environments. A use is permanent. A process may have composed a statement for single records
// before an environment began to use a capability. Therefore, each statement reads the table of
// uses under a lock, and fails if the table has a use that the statement does not know.

/**
 * Records a use. Must be called in the transaction that writes the capability's data. After the
 * commit, call `awaitEarlierWriters`.
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
 * Waits for all statements of single records that began before this call. They may not know the
 * latest uses.
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
 * Returns the transactions that may have read the table of uses. Each such transaction has a lock
 * on the table. If `among` is set, returns only transactions in `among`.
 */
function writers(db: Database, among: readonly string[] | null = null): Promise<string[]> {
  return columnOf<string>(db)`
    select virtualtransaction as id
    from pg_locks
    where locktype = 'relation' and mode = 'RowShareLock' and relation = 'environment_uses'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and (${among}::text[] is null or virtualtransaction = any(${among}::text[]))`;
}
