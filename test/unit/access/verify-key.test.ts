import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  KeyCache,
  LookupTurns,
  MAX_WAITING_LOOKUPS,
  UNKNOWN_LOOKUPS_AT_A_TIME,
} from '../../../src/access/verify-key.ts';
import { TransientError } from '../../../src/base/errors.ts';
import type { Caller, KeyRefusal } from '../../../src/domain/caller.ts';

const refusal: KeyRefusal = { refused: 'unknown', keyId: null };

const caller = (keyId: string): Caller => ({
  environment: { environmentId: 1, name: 'default', appToken: 'NX-00000000' },
  scopes: ['ingest'],
  keyId,
});

/** A cache, the clock it goes by, and what it asked for. */
function open(maxKeys = 3) {
  const asked: { header: string; answer: (caller: Caller | KeyRefusal | Error) => void }[] = [];
  const clock = { now: 0 };
  const lookUp = (header: string) =>
    new Promise<Caller | KeyRefusal>((resolve, reject) => {
      asked.push({ header, answer: (is) => (is instanceof Error ? reject(is) : resolve(is)) });
    });
  const cache = new KeyCache(lookUp, { ttlMs: 1_000, maxKeys, now: () => clock.now });
  const learn = async (header: string) => {
    const found = cache.find(header);
    asked.at(-1)?.answer(caller(header));
    await found;
  };
  return { cache, clock, asked, learn };
}

test('a caller is known for the time from when it was asked for, and no longer', async () => {
  const { cache, clock, asked } = open();
  expect(cache.get('a')).toBeNull();
  const found = cache.find('a');
  clock.now = 400;
  asked[0]?.answer(caller('a'));
  expect(await found).toEqual(caller('a'));
  expect(cache.get('a')).toEqual(caller('a'));
  clock.now = 999;
  expect(cache.get('a')).toEqual(caller('a'));
  clock.now = 1_000;
  expect(cache.get('a')).toBeNull();
});

test('refusals and failures are not remembered', async () => {
  const { cache, asked } = open();
  const refused = cache.find('a');
  asked[0]?.answer(refusal);
  expect(await refused).toBe(refusal);
  const failed = cache.find('a');
  asked[1]?.answer(new Error('away'));
  await expect(failed).rejects.toThrow('away');
  expect(cache.get('a')).toBeNull();
  void cache.find('a');
  expect(asked).toHaveLength(3);
});

test('it holds so many keys and no more, and none that is absurdly long', async () => {
  const { cache, learn } = open(3);
  for (const header of ['a', 'b', 'c', 'd', 'x'.repeat(257)]) await learn(header);
  expect(['a', 'b', 'c', 'd', 'x'.repeat(257)].map((header) => cache.get(header)?.keyId)).toEqual([
    undefined,
    'b',
    'c',
    'd',
    undefined,
  ]);
});

function untilAnswered() {
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  return { answered, answer: () => answer() };
}

// proves: bad-keys
test('keys that were never good are looked up a few at a time; those that were are not kept waiting, nor forgotten for them', async () => {
  const turns = new LookupTurns(2);
  const good = async () => caller('good');
  await turns.run('good', good);
  let underWay = 0;
  const { answered, answer } = untilAnswered();
  const strangers = Array.from({ length: 50 }, (_, n) =>
    turns.run(`unknown ${n}`, async () => {
      underWay++;
      await answered;
      return refusal;
    }),
  );
  expect(await turns.run('good', good)).toEqual(caller('good'));
  expect(underWay).toBe(UNKNOWN_LOOKUPS_AT_A_TIME);
  answer();
  expect(await Promise.all(strangers)).toEqual(strangers.map(() => refusal));
  expect(underWay).toBe(50);
});

test('more keys that were never good than may wait are told to come again', async () => {
  const turns = new LookupTurns();
  const { answered, answer } = untilAnswered();
  const lookUp = async () => {
    await answered;
    return refusal;
  };
  const waiting = Array.from({ length: UNKNOWN_LOOKUPS_AT_A_TIME + MAX_WAITING_LOOKUPS }, (_, n) =>
    turns.run(`unknown ${n}`, lookUp),
  );
  await setImmediate();
  await expect(turns.run('one more', lookUp)).rejects.toThrow(TransientError);
  answer();
  await Promise.all(waiting);
});
