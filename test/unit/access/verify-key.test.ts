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

function open(maxKeys = 3) {
  const lookups: { header: string; answer: (caller: Caller | KeyRefusal | Error) => void }[] = [];
  const clock = { now: 0 };
  const lookUp = (header: string) =>
    new Promise<Caller | KeyRefusal>((resolve, reject) => {
      lookups.push({ header, answer: (is) => (is instanceof Error ? reject(is) : resolve(is)) });
    });
  const cache = new KeyCache(lookUp, { ttlMs: 1_000, maxKeys, now: () => clock.now });
  const learn = async (header: string) => {
    const lookup = cache.find(header);
    lookups.at(-1)?.answer(caller(header));
    await lookup;
  };
  return { cache, clock, lookups, learn };
}

test('a caller is cached for the TTL, counted from the start of its lookup', async () => {
  const { cache, clock, lookups } = open();
  expect(cache.get('a')).toBeNull();
  const lookup = cache.find('a');
  clock.now = 400;
  lookups[0]?.answer(caller('a'));
  expect(await lookup).toEqual(caller('a'));
  expect(cache.get('a')).toEqual(caller('a'));
  clock.now = 999;
  expect(cache.get('a')).toEqual(caller('a'));
  clock.now = 1_000;
  expect(cache.get('a')).toBeNull();
});

test('refusals and failed lookups are not cached', async () => {
  const { cache, lookups } = open();
  const refusedLookup = cache.find('a');
  lookups[0]?.answer(refusal);
  expect(await refusedLookup).toBe(refusal);
  const failedLookup = cache.find('a');
  lookups[1]?.answer(new Error('away'));
  await expect(failedLookup).rejects.toThrow('away');
  expect(cache.get('a')).toBeNull();
  void cache.find('a');
  expect(lookups).toHaveLength(3);
});

test('a cache keeps at most maxKeys keys, and no key of 257 characters', async () => {
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
  const answerReady = new Promise<void>((resolve) => {
    answer = resolve;
  });
  return { answerReady, answer: () => answer() };
}

// proves: bad-keys
test('unknown keys are looked up a few at a time, without delay for a known key', async () => {
  const turns = new LookupTurns(2);
  const good = async () => caller('good');
  await turns.run('good', good);
  let underWay = 0;
  const { answerReady, answer } = untilAnswered();
  const strangers = Array.from({ length: 50 }, (_, n) =>
    turns.run(`unknown ${n}`, async () => {
      underWay++;
      await answerReady;
      return refusal;
    }),
  );
  expect(await turns.run('good', good)).toEqual(caller('good'));
  expect(underWay).toBe(UNKNOWN_LOOKUPS_AT_A_TIME);
  answer();
  expect(await Promise.all(strangers)).toEqual(strangers.map(() => refusal));
  expect(underWay).toBe(50);
});

test('more unknown keys than may wait are refused with a transient error', async () => {
  const turns = new LookupTurns();
  const { answerReady, answer } = untilAnswered();
  const lookUp = async () => {
    await answerReady;
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
