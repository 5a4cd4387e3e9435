import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Pattern, patternProblem } from '../../../src/capabilities/rules/pattern.ts';
import { RuledProperty } from '../../../src/capabilities/rules/property.ts';
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

// proves: rules-linear
test('a pattern matches exactly what the engine of JavaScript matches', () => {
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 8 }), (source, texts) => {
      const matcher = new Pattern(source);
      const regExp = new RegExp(source, 'u');
      for (const input of texts) {
        const bytes = Buffer.from(`<${input}>`);
        const isMatch = regExp.test(input);
        expect([source, input, matcher.test(input)]).toEqual([source, input, isMatch]);
        expect([source, input, matcher.testBytes(bytes, 1, bytes.length - 1)]).toEqual([
          source,
          input,
          isMatch,
        ]);
      }
    }),
    { numRuns: runs(3_000) },
  );
});

// proves: rules-linear
test.each([
  ['^(a+)+$', 'a'],
  ['(.{1,30}){1,30}[xy]', 'é'],
  ['[aé]*a[aé]{200}[xy]', 'aéa'],
  [`(${Array.from({ length: 120 }, (_, n) => `wört${n}`).join('|')})!`, 'wört1'],
])('the pattern %s takes less than 50 ms for the longest text it is matched with', (source, unit) => {
  const slowPattern = new Pattern(source);
  const length = Math.min(slowPattern.maxLength, 60_000);
  const texts = [unit.repeat(length).slice(0, length), mixed(unit, length)];
  expect(slowPattern.test('a')).toBe(source.startsWith('^'));
  const cpuMs = (input: string): number => {
    const cpuBefore = process.cpuUsage();
    expect(slowPattern.test(input)).toBe(source === '^(a+)+$');
    const { user, system } = process.cpuUsage(cpuBefore);
    return (user + system) / 1000;
  };
  for (const input of texts) {
    // Takes the best of ten attempts: compilation slows down the first few, and other processes can
    // slow down any of them.
    let best = cpuMs(input);
    for (let attempt = 1; attempt < 10 && best >= 50; attempt++) best = Math.min(best, cpuMs(input));
    expect(best).toBeLessThan(50);
  }
});

test('a pattern never matches a text over its maximum length', () => {
  const bounded = new Pattern('(.{1,30}){1,30}');
  expect([
    bounded.test('a'.repeat(bounded.maxLength)),
    bounded.test('a'.repeat(bounded.maxLength + 1)),
  ]).toEqual([true, false]);
});

test('a value over the maximum length breaks a rule with a pattern, with a reason', () => {
  const property = new RuledProperty('notes', { pattern: '(.{1,30}){1,30}' }, false);
  const { maxLength } = new Pattern('(.{1,30}){1,30}');
  expect(property.judge('a'.repeat(maxLength))).toBeNull();
  expect(property.judge('a'.repeat(maxLength + 1))).toBe('pattern');
  expect(property.explain('pattern')).toBe(
    `has a text of more than ${maxLength} characters, too long for the pattern of its rule`,
  );
});

test('a pattern that cannot be matched in linear time is refused with a reason', () => {
  const problems = ['(', '(?=a)', '(?<!a)b', '(a)\\1', 'a{1001}', 'a{900}b{900}c{900}'].map(patternProblem);
  expect(problems).toEqual([
    ...Array(5).fill(expect.stringContaining('no look-around and no back-references: ')),
    expect.stringMatching(/^has 27\d\d steps with all its repetitions, and may have 2000;/),
  ]);
  expect(patternProblem('\\ud83d\\ude00')).toContain('write \\u{1F600}');
  expect(patternProblem('^\\bword\\u{1F600}$')).toBeNull();
});

function mixed(unit: string, length: number): string {
  let seed = 1;
  return Array.from({ length }, () => {
    seed = (seed * 48271) % 2147483647;
    return unit[seed % unit.length];
  }).join('');
}
