import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withoutHidden } from '../../../src/base/wording.ts';
import { type Definitions, embedTypes } from '../../../src/domain/definitions.ts';
import { fileFormats, readDefinitionsFile, writeDefinitionsFile } from '../../../src/lookups/definitions.ts';
import { runs } from '../../support/runs.ts';

/** Strings that YAML would read as other values if they were not quoted. */
const tricky = [
  'yes',
  'null',
  '~',
  '007',
  '1e3',
  '- a',
  '# x',
  'a: b',
  'a #b',
  ' a ',
  '*a',
  '&a',
  '!a',
  '{}',
  '[',
  '%',
  '@',
  '`',
  '"',
  "'",
  '2026-11-20',
  '<<',
  '...',
  '---',
  '?',
  '|',
  '>',
  '😀',
  '\u2028',
  '\u00a0',
];
const line = fc
  .oneof(fc.constantFrom(...tricky), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 150 }))
  .filter((text) => withoutHidden(text) === text);
const title = line.filter((text) => Array.from(text).length <= 100);
const key = fc.oneof(
  fc.constantFrom('yes', '7', '1.5', '0x1F', '1e3'),
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,20}$/),
);
const keyed = <T extends { key: string }>(item: fc.Arbitrary<T>) =>
  fc.uniqueArray(item, { selector: (entry) => entry.key, maxLength: 4 });

const value = fc.oneof(title, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
const definition = fc.letrec<{ node: object; condition: object }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    tie('condition'),
    fc.record({ all: fc.array(tie('node'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ not: tie('node') }),
  ),
  condition: fc.oneof(
    fc.record({ property: title, equals: value }),
    fc.record({ company_property: title, in: fc.array(value, { minLength: 1, maxLength: 4 }) }),
    fc.record({ event: title, within_days: fc.integer({ min: 1, max: 99 }) }),
  ),
}));

const items: fc.Arbitrary<Definitions> = fc.record({
  segments: keyed(
    fc.record({
      key,
      title,
      usage: title,
      category: title,
      is_hidden: fc.boolean(),
      is_protected: fc.boolean(),
      status: title,
      made_by: fc.constantFrom('file', 'api'),
      definition: definition.node.filter((node) => !/^(?:\{"(?:all|not)":\[?){9}/.test(JSON.stringify(node))),
    }),
  ),
  surveys: keyed(
    fc.record({
      key,
      title,
      platform: title,
      modules: keyed(
        fc.record({
          key,
          type: title,
          question: fc.array(line, { minLength: 1, maxLength: 3 }).map((lines) => lines.join('\n')),
        }),
      ),
    }),
  ),
  embeds: keyed(fc.record({ key, title, type: fc.constantFrom(...embedTypes) })),
  flows: keyed(fc.record({ key, title, type: title })),
  banners: keyed(fc.record({ key, title, type: title })),
  spotlights: keyed(fc.record({ key, title, type: title })),
  event_retention: keyed(fc.record({ key: title, days: fc.nat({ max: 36_500 }) })),
  resource_center_modules: keyed(fc.record({ key, display_name: title, data_type: title })),
  checklists: keyed(fc.record({ key, display_name: title, data_type: title })),
  features: keyed(
    fc.record({
      key: title.filter((text) => Buffer.byteLength(text) <= 256),
      display_name: title,
      data_type: title,
    }),
  ),
});

test.each(fileFormats)('any definitions written as %s are read back unchanged', (format) => {
  fc.assert(
    fc.property(items, (definitions) => {
      const text = writeDefinitionsFile(definitions, format);
      const reading = readDefinitionsFile(Buffer.from(text), []);
      expect(reading.problems).toEqual([]);
      // Compares both values as JSON, because JSON is stored. In JSON, -0 is 0.
      expect(JSON.parse(JSON.stringify(reading.value))).toEqual(JSON.parse(JSON.stringify(definitions)));
    }),
    { numRuns: runs(100) },
  );
});
