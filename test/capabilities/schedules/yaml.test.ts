import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { writeYaml } from '../../../src/capabilities/schedules/console/yaml.ts';

const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.array(fc.string()));
const { value } = fc.letrec((tie) => ({
  value: fc.dictionary(fc.string(), fc.oneof({ maxDepth: 3 }, leaf, tie('value')), { minKeys: 1 }),
}));

test('an object that is written as YAML is read back unchanged', () => {
  fc.assert(
    fc.property(value, (object) => {
      const json: object = JSON.parse(JSON.stringify(object));
      expect(parse(writeYaml(json), { version: '1.2', schema: 'core', merge: false })).toEqual(json);
    }),
  );
  expect(writeYaml({ cron: '0 3 * * *', load: { map: { 'Customer No': 'user_id' } } })).toBe(
    'cron: "0 3 * * *"\nload:\n  map:\n    Customer No: user_id\n',
  );
});
