import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { inTurns, turn } from '../../src/base/yielding.ts';

/** Works for so many milliseconds. */
function work(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

it('works in order, and lets the event loop turn after every millisecond of work', async () => {
  const seen: string[] = [];
  const worker = async (name: string): Promise<void> => {
    for (let piece = 0; piece < 3; piece++) {
      await turn();
      work(2);
      seen.push(name);
    }
  };
  const others = (async () => {
    while (seen.filter((name) => name !== 'other').length < 6) {
      await wait(1);
      seen.push('other');
    }
  })();
  await Promise.all([worker('a'), worker('b'), others]);
  expect(seen.filter((name) => name !== 'other').join('')).toBe('ababab');
  const together = seen.findIndex((name, at) => at > 0 && name !== 'other' && seen[at - 1] !== 'other');
  expect(together).toBe(-1);
});

it('hands a long buffer out in short pieces, none of it lost', async () => {
  const source = (async function* () {
    yield Buffer.alloc(100_000, 'ab');
    yield Buffer.from('c');
  })();
  const pieces: Buffer[] = [];
  for await (const piece of inTurns(source)) pieces.push(piece);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(50_000);
  expect(Buffer.concat(pieces)).toEqual(Buffer.from(`${'ab'.repeat(50_000)}c`));
});
