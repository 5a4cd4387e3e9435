import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';
import { promisesOf, proofsOf, proofsPage, readPromises, readProofs } from '../../tools/proofs.ts';
import { repeating } from '../support/tiers.ts';

const promises = readPromises();
const proofs = readProofs();

test('every promise of docs/guarantees.md has a unique id and a test that proves it', () => {
  const ids = promises.map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(100);
  expect(new Set(ids).size).toBe(ids.length);
  const provedIds = new Set(proofs.map(({ id }) => id));
  expect(ids.filter((id) => !provedIds.has(id))).toEqual([]);
});

test('every promise has a test that .ci/run does not exclude', () => {
  expect(repeating.filter((file) => !existsSync(join(packageRoot, file)))).toEqual([]);
  const provedIds = new Set(proofs.filter(({ file }) => !repeating.includes(file)).map(({ id }) => id));
  expect(promises.map(({ id }) => id).filter((id) => !provedIds.has(id))).toEqual([]);
});

test('every line of docs/guarantees.md in the form of a promise is a promise', () => {
  expect(promisesOf('## A\n- One. `one`\n- Two.\n  - Three. `three`\n')).toEqual([
    { id: 'one', section: 'A', text: 'One.' },
  ]);
  const lines = proofsPage().match(/^- /gm) ?? [];
  expect(lines).toHaveLength(promises.length);
});

test('a test claims only promises that exist, and has a title', () => {
  const ids = new Set(promises.map(({ id }) => id));
  expect(proofs.filter(({ id, title }) => !ids.has(id) || title === '')).toEqual([]);
});

test('the title of a proof is found behind the table of its cases', () => {
  const source = [
    '  // proves: one, two',
    "  test.each([['a', 1], [b('c'), 2]])('a page says %s', async () => {});",
    '// proves: three',
    'test(',
    "  'a \\'long\\' title',",
    '  () => {},',
    ');',
    '',
  ].join('\n');
  expect(proofsOf('x.test.ts', source)).toEqual([
    { id: 'one', file: 'x.test.ts', title: 'a page says %s' },
    { id: 'two', file: 'x.test.ts', title: 'a page says %s' },
    { id: 'three', file: 'x.test.ts', title: "a \\'long\\' title" },
  ]);
});
