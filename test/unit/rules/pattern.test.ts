import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Pattern, patternProblem } from '../../../src/rules/pattern.ts';
import { runs } from '../../support/runs.ts';

const atom = fc.constantFrom(
  'a',
  'b',
  '.',
  '[ab]',
  '[^a]',
  '\\d',
  '\\w',
  '\\p{L}',
  'é',
  '\\u{1F600}',
  '\\.',
  '^',
  '$',
  '-',
  '[\\]x-z]',
  '\\ud83d\\ude00',
);
const pattern = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    atom,
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => a + b),
    fc.tuple(tie('node'), tie('node')).map(([a, b]) => `(${a}|${b})`),
    fc
      .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '{2,}', '*?'))
      .map(([a, times]) => `(?:${a})${times}`),
  ),
})).node;
const text = fc.string({
  unit: fc.constantFrom('a', 'b', '1', '.', 'é', '😀', '-', '\n', ']', 'y'),
  maxLength: 8,
});

describe('a pattern', () => {
  // proves: rules-linear
  test('matches what the engine of JavaScript matches', () => {
    fc.assert(
      fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 8 }), (source, texts) => {
        const own = new Pattern(source);
        const theirs = new RegExp(source, 'u');
        for (const each of texts) {
          const bytes = Buffer.from(`<${each}>`);
          const found = theirs.test(each);
          expect([source, each, own.test(each)]).toEqual([source, each, found]);
          expect([source, each, own.testBytes(bytes, 1, bytes.length - 1)]).toEqual([source, each, found]);
        }
      }),
      { numRuns: runs(3_000) },
    );
  });

  // proves: rules-linear
  test('that keeps the engine of JavaScript busy for hours is matched in less than a second', () => {
    const before = process.cpuUsage();
    for (const source of ['^(a+)+$', '^(a|a)*$', 'a*a*a*a*a*b', '(a|b)*a(a|b){200}c']) {
      expect(new Pattern(source).test(`${'a'.repeat(10_000)}!`)).toBe(false);
    }
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });

  test('that cannot be matched in linear time is refused', () => {
    const problems = [
      '(',
      '(?=a)',
      '(?<!a)b',
      '(a)\\1',
      '\\bword',
      '(?:a{1000}){1000}',
      '(?:(?:){1000}){1000}',
    ].map(patternProblem);
    expect(problems).toEqual([
      'is not a regular expression',
      ...Array(2).fill(expect.stringContaining('look-around')),
      ...Array(2).fill(expect.stringContaining('back-reference')),
      ...Array(2).fill(expect.stringContaining('more than 2000 steps')),
    ]);
  });
});
