import type pg from 'pg';
import type { RowBuffer } from '../mapping/row-buffer.ts';
import { isDataError } from '../postgres/sqlstate.ts';

/** Records (by their number within the chunk) that the database refuses, and what it says. */
export type Refused = ReadonlyMap<number, string>;

type Groups = readonly (readonly number[])[];

/**
 * Adds to `refused` the records of `buffer` that the database refuses to merge. Halves them until those at fault stand
 * alone; of records that are refused only together, the last is at fault. Every trial is undone.
 */
export async function findRefused(
  client: pg.PoolClient,
  buffer: RowBuffer,
  refused: Map<number, string>,
  merge: (groups: Groups) => Promise<unknown>,
): Promise<void> {
  const trial = async (records: readonly number[]): Promise<string | null> => {
    const tried = new Set(records);
    const outcome = await attempt(client, 'undo', () => merge(buffer.groups((record) => tried.has(record))));
    return 'error' in outcome ? outcome.error.message : null;
  };
  const search = async (records: readonly number[]): Promise<boolean> => {
    const error = records.length === 0 ? null : await trial(records);
    if (error === null) return false;
    const middle = records.length >> 1;
    if (middle === 0) return refuse(records, error);
    const first = await search(records.slice(0, middle));
    const second = await search(records.slice(middle));
    return first || second || refuse(await shortestRefused(records, middle), error);
  };
  /** The fewest records from the beginning on that are refused; more than `fine` of them. */
  const shortestRefused = async (records: readonly number[], fine: number): Promise<readonly number[]> => {
    let most = records.length;
    for (let least = fine + 1; least < most; ) {
      const middle = (least + most) >> 1;
      if ((await trial(records.slice(0, middle))) === null) least = middle + 1;
      else most = middle;
    }
    return records.slice(0, most);
  };
  const refuse = (records: readonly number[], error: string): boolean => {
    const last = records.at(-1);
    if (last !== undefined) refused.set(last, `the database refuses the record: ${error}`);
    return true;
  };
  await search(buffer.records().filter((record) => !refused.has(record)));
}

/** Runs `work` in a savepoint. What the database says against the data is a result. */
export async function attempt<T>(
  client: pg.PoolClient,
  then: 'keep' | 'undo',
  work: () => Promise<T>,
): Promise<{ readonly result: T } | { readonly error: Error }> {
  await client.query('savepoint attempt');
  try {
    const result = await work();
    await client.query(
      then === 'keep'
        ? 'release savepoint attempt'
        : 'rollback to savepoint attempt; release savepoint attempt',
    );
    return { result };
  } catch (error) {
    if (!(error instanceof Error && isDataError(error))) throw error;
    await client.query('rollback to savepoint attempt; release savepoint attempt');
    return { error };
  }
}
