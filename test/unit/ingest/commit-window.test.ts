import { expect, test } from 'vitest';
import { CommitWindow } from '../../../src/ingest/commit-window.ts';

interface Item {
  readonly id: number;
  readonly bytes: number;
}

const item = (id: number, bytes = 100): Item => ({ id, bytes });
const sqlError = (code: string): Error => Object.assign(new Error('refused'), { code });

function createWriter() {
  const writes: { readonly ids: number[]; readonly end: (error?: Error) => void }[] = [];
  const write = (records: readonly Item[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      writes.push({ ids: records.map(({ id }) => id), end });
    });
  return { writes, write };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('submissions of one turn share a write, and are answered at its end', async () => {
  const { writes, write } = createWriter();
  const window = new CommitWindow<Item>({ write, inFlight: 1 });
  const answeredIds: number[] = [];
  for (const id of [1, 2, 3]) void window.submit(item(id)).then(() => answeredIds.push(id));
  await turn();
  expect(writes.map(({ ids }) => ids)).toEqual([[1, 2, 3]]);
  expect(answeredIds).toEqual([]);
  void window.submit(item(4)).then(() => answeredIds.push(4));
  void window.submit(item(5)).then(() => answeredIds.push(5));
  await turn();
  expect(writes).toHaveLength(1);
  writes[0]?.end();
  await turn();
  expect(answeredIds).toEqual([1, 2, 3]);
  expect(writes[1]?.ids).toEqual([4, 5]);
  writes[1]?.end();
  await window.drained();
  expect(answeredIds).toEqual([1, 2, 3, 4, 5]);
});

test('a second write starts beside the first once enough records wait', async () => {
  const { writes, write } = createWriter();
  const window = new CommitWindow<Item>({ write, inFlight: 2, joinsAt: 3 });
  const submit = (id: number): undefined => void window.submit(item(id));
  submit(1);
  await turn();
  submit(2);
  submit(3);
  await turn();
  expect(writes.map(({ ids }) => ids)).toEqual([[1]]);
  submit(4);
  await turn();
  expect(writes.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4]]);
  submit(5);
  for (const { end } of writes) end();
  await turn();
  expect(writes[2]?.ids).toEqual([5]);
  writes[2]?.end();
  await window.drained();
});

test('a write is repeated after a deadlock, and after no other error', async () => {
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
  const results = await Promise.allSettled([window.submit(item(2)), window.submit(item(3))]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(writes).toBe(4);
});
