import { expect, test } from 'vitest';
import { mirrorOptions } from '../../../src/capabilities/mirror/mirror.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';

const table = new OptionTable([mirrorOptions]);

test.each([
  [{ max_removed: '5%' }, ['max_removed has no effect without mirror']],
  [{ mirror_despite_rejects: true }, ['mirror_despite_rejects has no effect without mirror']],
  [{ mirror: 'remove', existing: 'keep' }, ['existing must be replace in a mirror']],
  [{ mirror: 'remove', max_removed: '5%', mirror_despite_rejects: true }, []],
])('the options of a mirror %j are contradictory or need each other: %j', (options, sentences) => {
  const source = table.read(options);
  const problems = [...table.contradictions(source), ...table.unmetNeeds(source)];
  expect(problems.map(({ name, what }) => `${name} ${what}`)).toEqual(sentences);
});

test('the options of a mirror apply to one file, and no later load reuses them', () => {
  const source = table.read({ mirror: 'remove', max_removed: '5%', mirror_despite_rejects: true, header: 2 });
  expect(table.ofOneFile(source)).toBe('mirror');
  expect(table.reusable(source)).toEqual({ header: 2 });
  expect(table.ofOneFile(table.reusable(source))).toBeUndefined();
});
