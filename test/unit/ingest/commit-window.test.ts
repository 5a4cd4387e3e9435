import { describe, expect, test } from 'vitest';
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

  test('begins a second write beside the first once enough records wait', async () => {
    const { begun, write } = controlled();
    const window = new CommitWindow<Item>({ write, inFlight: 2, joinsAt: 3 });
    const submit = (id: number): undefined => void window.submit(item(id));
    submit(1);
    await turn();
    submit(2);
    submit(3);
    await turn();
    expect(begun.map(({ ids }) => ids)).toEqual([[1]]);
    submit(4);
    await turn();
    expect(begun.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4]]);
    submit(5);
    for (const { end } of begun) end();
    await turn();
    expect(begun[2]?.ids).toEqual([5]);
    begun[2]?.end();
    await window.drained();
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
});
