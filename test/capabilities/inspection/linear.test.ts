import { test } from 'vitest';
import { expectLinear, numbered, repeated, type Scanner } from '../../support/oracles/linear.ts';
import { inspectText } from './support/inspect-text.ts';

const run = (input: Buffer): Promise<unknown> => inspectText(input).catch(() => null);

const scanners: readonly Scanner[] = [
  {
    name: 'an inspection of long records',
    generate: repeated(`u1${',1'.repeat(3000)}\n`, `user_id${',c'.repeat(3000)}\n`),
    run,
  },
  {
    name: 'an inspection of keys that occur once',
    generate: numbered((n) => `{"user_id":"u${n}","k${n}":"2024-05-01"}\n`),
    run,
  },
];

// proves: linear
test.each(scanners)('$name: twice the bytes cost at most 3 times the time', (scanner) =>
  expectLinear(scanner),
);
