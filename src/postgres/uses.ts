import { sql } from 'kysely';
import { type InputError, TransientError } from '../base/errors.ts';
import { pollUntil } from '../base/retry.ts';
import type { Reason } from '../domain/reject.ts';
import { columnOf, type Database, type QueryFile } from './database.ts';

// Records which capabilities an environment uses, so that a capability costs nothing in
// environments that do not use it. A use is permanent. A statement for single records may have been
// composed before a use began. Every such statement therefore reads the uses under a lock, and
// fails if it does not know one of the uses.

/**
 * Records that the environment uses the capability. Must be called in the transaction that writes
 * the capability's data. After the commit, call `awaitEarlierWriters`.
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
 * Returns the transactions that have a lock on the uses and may have read them. If `among` is set,
 * returns only those of its transactions.
 */
function writers(db: Database, among: readonly string[] | null = null): Promise<string[]> {
  return columnOf<string>(db)`
    select virtualtransaction as id
    from pg_locks
    where locktype = 'relation' and mode = 'RowShareLock' and relation = 'environment_uses'::regclass
      and database = (select oid from pg_database where datname = current_database())
      and (${among}::text[] is null or virtualtransaction = any(${among}::text[]))`;
}

/**
 * Lets a capability refuse all records of certain users. Environments that do not use the
 * capability do not check the users, so they have no extra cost.
 */
export interface RefusalSeam {
  readonly use: string;
  /** Reason for which records of a file are refused. */
  readonly reason: Reason;
  /** Returns the error for a single record. */
  error(): InputError;
  /**
   * Returns an SQL expression with the value of `id`, which violates `constraint` if that user is
   * refused. `id` and `environment` are SQL expressions.
   */
  guard(id: string, environment: string): string;
  readonly constraint: string;
  /**
   * Returns the refused ids. `ids` may be a text[] in binary form. The result does not change while
   * a load runs.
   */
  find(db: Database, environmentId: number, ids: readonly string[] | Buffer): Promise<ReadonlySet<string>>;
}

/**
 * Adds checks to a statement for single records, for the capabilities that refuse some users of its
 * environments.
 */
export interface Guard {
  readonly environments: readonly number[];
  /**
   * Ids of environments, each with a capability that it uses, such as `1 name`. The statement fails
   * if an environment uses a capability that is not listed here (`isUnknownUse`).
   */
  readonly uses: readonly string[];
  compose(query: QueryFile): QueryFile;
}

/**
 * A comment in a statement marks each user id to check and its environment's column: `i.u /*
 * guarded, of i.e *\/`.
 */
const guarded = /(\w+\.\w+) \/\* guarded, of (\w+\.\w+) \*\//g;

/**
 * Adds the checks to a statement. The new statement has its own name, because it is prepared
 * separately.
 */
export function composeGuards(
  { name, text }: QueryFile,
  uses: readonly string[],
  refusals: readonly RefusalSeam[],
): QueryFile {
  const seams = refusals.filter(({ use }) => uses.includes(use));
  if (seams.length === 0) return { name, text };
  const withGuards = text.replace(guarded, (_, id: string, environment: string) =>
    seams.reduce((inner, seam) => seam.guard(inner, environment), id),
  );
  return { name: [name, ...uses].join('+'), text: withGuards };
}
