import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inTurns, turn } from '../../src/base/yielding.ts';

function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

it('turns are given in order, and the event loop runs after each millisecond of work', async () => {
  const turns: string[] = [];
  const worker = async (name: string): Promise<void> => {
    for (let piece = 0; piece < 3; piece++) {
      await turn();
      work(2);
      turns.push(name);
    }
  };
  const otherWork = (async () => {
    while (turns.filter((name) => name !== 'other').length < 6) {
      await wait(1);
      turns.push('other');
    }
  })();
  await Promise.all([worker('a'), worker('b'), otherWork]);
  expect(turns.filter((name) => name !== 'other').join('')).toBe('ababab');
  const consecutive = turns.findIndex((name, at) => at > 0 && name !== 'other' && turns[at - 1] !== 'other');
  expect(consecutive).toBe(-1);
});

it('a long buffer is passed on in short pieces without loss', async () => {
  const source = (async function* () {
    yield Buffer.alloc(100_000, 'ab');
    yield Buffer.from('c');
  })();
  const pieces: Buffer[] = [];
  for await (const piece of inTurns(source)) pieces.push(piece);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(50_000);
  expect(Buffer.concat(pieces)).toEqual(Buffer.from(`${'ab'.repeat(50_000)}c`));
});
