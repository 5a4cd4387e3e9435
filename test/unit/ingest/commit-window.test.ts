import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TransientError } from '../../../src/domain/errors.ts';
import { MAX_WAITING_RECORDS, MAX_WINDOW_BYTES, MAX_WINDOW_RECORDS } from '../../../src/domain/limits.ts';
import { CommitWindow } from '../../../src/ingest/commit-window.ts';

interface Item {
  readonly id: number;
  readonly bytes: number;
}

const item = (id: number, bytes = 100): Item => ({ id, bytes });
const sqlError = (code: string): Error => Object.assign(new Error('refused'), { code });

/** A writer that commits when it is told to. */
function controlled() {
  const begun: { readonly ids: number[]; readonly end: (error?: Error) => void }[] = [];
  const write = (records: readonly Item[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      begun.push({ ids: records.map(({ id }) => id), end });
    });
  return { begun, write };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a commit window', () => {
  test('lets what arrives together share a write, and answers when that has ended', async () => {
    const { begun, write } = controlled();
    const window = new CommitWindow<Item>({ write, inFlight: 1 });
    const answered: number[] = [];
    for (const id of [1, 2, 3]) void window.submit(item(id)).then(() => answered.push(id));
    await turn();
    expect(begun.map(({ ids }) => ids)).toEqual([[1, 2, 3]]);
    expect(answered).toEqual([]);
    void window.submit(item(4)).then(() => answered.push(4));
    void window.submit(item(5)).then(() => answered.push(5));
    await turn();
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await turn();
    expect(answered).toEqual([1, 2, 3]);
    expect(begun[1]?.ids).toEqual([4, 5]);
    begun[1]?.end();
    await window.drained();
    expect(answered).toEqual([1, 2, 3, 4, 5]);
  });

  test('is bounded in records and bytes, also of what waits', async () => {
    const { begun, write } = controlled();
    const window = new CommitWindow<Item>({ write, inFlight: 1 });
    const ends: Promise<unknown>[] = [];
    const submit = (each: Item): void => void ends.push(window.submit(each).catch((error: unknown) => error));
    submit(item(0));
    await turn();
    for (let id = 1; id <= MAX_WAITING_RECORDS; id++) submit(item(id));
    submit(item(-1));
    expect(await ends.at(-1)).toBeInstanceOf(TransientError);
    begun[0]?.end();
    await turn();
    expect(begun[1]?.ids).toHaveLength(MAX_WINDOW_RECORDS);
    const large = new CommitWindow<Item>({ write, inFlight: 1 });
    for (const id of [1, 2, 3]) ends.push(large.submit(item(id, MAX_WINDOW_BYTES * 0.6)));
    await turn();
    expect(begun.at(-1)?.ids).toEqual([1]);
    // Writes that nobody ends are given up after a while, when another test runs.
    for (let ended = 1; !window.isIdle || !large.isIdle; ended++) {
      begun[ended]?.end();
      await turn();
    }
    await Promise.all(ends);
  });

  test('refuses the record at fault alone, and keeps the order of the others', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (bad) => {
        const committed: number[] = [];
        const write = async (records: readonly Item[]): Promise<void> => {
          await turn();
          if (records.some(({ id }) => bad[id])) throw sqlError('22P05');
          committed.push(...records.map(({ id }) => id));
        };
        const window = new CommitWindow<Item>({ write, inFlight: 1 });
        const ends = await Promise.allSettled(bad.map((_, id) => window.submit(item(id))));
        expect(ends.map(({ status }) => status)).toEqual(bad.map((is) => (is ? 'rejected' : 'fulfilled')));
        expect(committed).toEqual(bad.flatMap((is, id) => (is ? [] : [id])));
      }),
      { numRuns: 50 },
    );
  });

  test('writes again after a deadlock, and after no other error', async () => {
    const errors = [sqlError('40P01'), sqlError('40P01')];
    let writes = 0;
    const window = new CommitWindow<Item>({
      inFlight: 1,
      write: async () => {
        writes++;
        const error = errors.shift();
        if (error !== undefined) throw error;
      },
    });
    await window.submit(item(1));
    expect(writes).toBe(3);
    errors.push(sqlError('57P01'));
    const ends = await Promise.allSettled([window.submit(item(2)), window.submit(item(3))]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(writes).toBe(4);
  });

  test('does not let callers hang on a database that does, and goes on when that does', async () => {
    const { begun, write } = controlled();
    const window = new CommitWindow<Item>({ write, inFlight: 1, deadlineMs: 50 });
    const first = window.submit(item(1));
    await turn();
    const ends = await Promise.allSettled([first, window.submit(item(2))]);
    for (const end of ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: { message: 'the database does not answer' } });
    }
    const third = window.submit(item(3));
    await turn();
    expect(begun.map(({ ids }) => ids)).toEqual([[1]]);
    begun[0]?.end();
    await turn();
    expect(begun[1]?.ids).toEqual([3]);
    begun[1]?.end();
    await third;
    await window.drained();
  });
});
