import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_OPERATOR_FILE_BYTES, MAX_OPERATOR_FILE_ITEMS } from '../../../src/base/limits.ts';
import { MAX_OPERATOR_FILE_PROBLEMS } from '../../../src/base/operator-file/source.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { readDefinitionsFile } from '../../../src/lookups/definitions.ts';
import { runs } from '../../support/runs.ts';

const readText = (text: string) => readDefinitionsFile(Buffer.from(text), []);

function problems(text: string | Uint8Array): string[] {
  const reading = readDefinitionsFile(typeof text === 'string' ? Buffer.from(text) : text, []);
  return reading.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

const segment = (definition: string): string =>
  `segments:\n- key: a\n  title: A\n  definition: ${definition}\n`;
const definitionOf = (text: string): unknown => readText(segment(text)).value?.segments[0]?.definition;

test('a valid file is read with defaults for all omitted fields', () => {
  const text = `
segments:
  - key: trial
    title: On trial
    definition: { property: plan, equals: trial }
surveys:
  - { key: nps, title: NPS }
features:
  - { key: Report Exported, display_name: Export }
`;
  expect(readText(text).value).toEqual({
    segments: [
      {
        key: 'trial',
        title: 'On trial',
        usage: 'analytics',
        category: 'custom',
        is_hidden: false,
        is_protected: false,
        status: 'active',
        made_by: 'file',
        definition: { property: 'plan', equals: 'trial' },
      },
    ],
    surveys: [{ key: 'nps', title: 'NPS', platform: 'web', modules: [] }],
    embeds: [],
    flows: [],
    banners: [],
    spotlights: [],
    resource_center_modules: [],
    checklists: [],
    features: [{ key: 'Report Exported', display_name: 'Export', data_type: 'feature' }],
    event_retention: [],
  });
});

test('YAML is read as version 1.2 even if the file names 1.1', () => {
  const values = '[yes, on, 2026-11-20, true, 12, 1.5e3, "007", 1_000]';
  const expected = { property: 'p', in: ['yes', 'on', '2026-11-20', true, 12, 1500, '007', '1_000'] };
  expect(definitionOf(`{ property: p, in: ${values} }`)).toEqual(expected);
  const old = readText(`%YAML 1.1\n---\n${segment(`{ property: p, in: ${values} }`)}`);
  expect(old.value?.segments[0]?.definition).toEqual(expected);
});

describe('the problems of a file', () => {
  test('all problems are reported at once, with line and column, in the order of the file', () => {
    const text = `
segments:
  - key: a b
    tittle: Tippfehler
    usage: 7
    is_hidden: yes
    definition:
      all:
        - { property: plan, equals: null }
        - { property: score, greatr_than: 5 }
  - title: Nameless
    definition: { event: x, at_least: 0 }
surveys:
  - key: nps
    title: ''
    modules:
      - { key: q, type: nps, question: Q }
      - { key: q, type: nps }
embeds:
  - { key: e, title: E, type: popup }
checklist: []
features:
`;
    expect(problems(text)).toEqual([
      '3:5 segments[0].title is missing; a segment must have it',
      '3:10 segments[0].key must be letters, digits, `_`, `.` and `-`, the first a letter or a digit; it is "a b"',
      '4:5 segments[0].tittle is unknown; a segment has key, title, usage, category, is_hidden, is_protected, status, made_by, definition',
      '5:12 segments[0].usage must be text, not the number 7; put it in quotes',
      '6:16 segments[0].is_hidden must be true or false, not "yes"',
      '9:29 segments[0].definition.all[0].equals must be a string, a number, true or false, not null; `exists: false` asks for a property that is missing or null',
      expect.stringMatching(/^10:11 segments\[0\]\.definition\.all\[1\] has no operator/),
      expect.stringMatching(/^10:30 segments\[0\]\.definition\.all\[1\]\.greatr_than is no operator/),
      '11:5 segments[1].key is missing; a segment must have it',
      expect.stringMatching(/^12:29 segments\[1\]\.definition\.at_least must be a whole number from 1/),
      '15:12 surveys[0].title is empty',
      '18:9 surveys[0].modules[1].question is missing; a module must have it',
      '18:16 surveys[0].modules[1].key is "q", as in line 17; each item needs a key of its own',
      '20:31 embeds[0].type must be banner or card, not "popup"',
      expect.stringMatching(/^21:1 checklist is unknown; a definitions file has segments, surveys/),
      '22:10 features must be a list, not nothing; an empty one is written []',
    ]);
  });

  test.each([
    ['segments: [1, 2', 1, /is no YAML and no JSON here/],
    ['{"segments": [}', 1, /is no YAML and no JSON here/],
    ['embeds:\n  - key: a\n title: b', 3, /is no YAML and no JSON here/],
    ['', 1, /^the file is empty; .*`segments: \[\]`/],
    ['# nothing but words', 1, /^the file is empty/],
    ['segments: []\n---\nsegments: []', 2, /^the file holds a second document here/],
    ['- a', 1, /^the file must be an object with segments, .*, not a list/],
    ['just words', 1, /^the file must be an object with .*, not "just words"/],
  ])('the file %j is refused with one problem at its line', (text, line, message) => {
    const [problem, ...otherProblems] = readText(text).problems;
    expect(problem).toMatchObject({ line, message: expect.stringMatching(message) });
    expect(otherProblems).toEqual([]);
  });

  test('a repeated name in one object is refused at its place', () => {
    const text = '{"embeds": [\n {"key": "a", "title": "A",\n "type": "card", "title": "B"}]}';
    expect(problems(text)).toEqual(['3:18 embeds[0].title stands here again; line 2 has it already']);
  });

  test.each([
    ['007', 'is 007, which is no number to JSON; put it in quotes if it is text'],
    ['0x1F', 'is 0x1F, which is no number to JSON; put it in quotes if it is text'],
    ['+1', 'is +1, which is no number to JSON; put it in quotes if it is text'],
    ['.inf', 'is .inf, which is no number to JSON; put it in quotes if it is text'],
    ['1e400', 'is beyond ±1.8e308'],
    ['12345678901234567890', 'has more digits than are kept of a number; put it in quotes'],
    ['"a\\0b"', 'holds U+0000 or half a surrogate pair, which is no text'],
    ['"\\ud800"', 'holds U+0000 or half a surrogate pair, which is no text'],
    ['!!str 12', 'has a tag (tag:yaml.org,2002:str); leave it out'],
    ['!!binary aGk=', 'has a tag (tag:yaml.org,2002:binary); leave it out'],
    ['!mine x', 'has a tag (!mine); leave it out'],
  ])('the value %s is refused once, at its place', (value, message) => {
    const text = segment(`\n    property: p\n    equals: ${value}`);
    const valueProblems = readText(text).problems;
    expect(valueProblems).toMatchObject([{ line: 6, message: `segments[0].definition.equals ${message}` }]);
  });
});

describe('a hostile file', () => {
  test('aliases are refused, so that a short file cannot grow', () => {
    const lines = [
      'a: &a [x, x]',
      ...'bcdefghijk'.split('').map((name, i) => {
        const previous = 'abcdefghij'[i];
        return `${name}: &${name} [*${previous}, *${previous}, *${previous}, *${previous}]`;
      }),
    ];
    const aliasProblems = problems(lines.join('\n'));
    expect(aliasProblems).toContain('2:8 b[0] is an alias (*); write the value out');
    expect(aliasProblems.length).toBeGreaterThan(10);
  });

  test.each([
    ['lists', '['.repeat(20_000)],
    ['closed lists', '['.repeat(5_000) + ']'.repeat(5_000)],
    ['objects', '{a: '.repeat(5_000)],
    ['lists in a line', '- '.repeat(5_000)],
    ['names', '? '.repeat(5_000)],
  ])('deep nesting is refused, not followed: %s', (_, text) => {
    expect(problems(text)).toEqual([
      expect.stringMatching(/^1:\d+ the file is nested too deep here: at most 64/),
    ]);
  });

  test('a file that is too long is refused unread', () => {
    expect(problems(Buffer.alloc(MAX_OPERATOR_FILE_BYTES + 1, 0x20))).toEqual([
      `1:1 the file has ${MAX_OPERATOR_FILE_BYTES + 1} bytes; at most ${MAX_OPERATOR_FILE_BYTES} are allowed`,
    ]);
  });

  test('a file with countless problems reports the first ones and counts them all', () => {
    const { problems, problemCount } = readText(`features: [${'{},'.repeat(MAX_OPERATOR_FILE_ITEMS)}]`);
    expect(problems).toHaveLength(MAX_OPERATOR_FILE_PROBLEMS);
    expect(problemCount).toBe(2 * MAX_OPERATOR_FILE_ITEMS);
  });

  test('the name __proto__ is unknown like any other name', () => {
    const text =
      '{"__proto__": {"segments": 1}, "embeds": [{"__proto__": {}, "key": "a", "title": "A", "type": "card"}]}';
    expect(problems(text)).toEqual([
      expect.stringMatching(/^1:2 __proto__ is unknown/),
      expect.stringMatching(/^1:\d+ embeds\[0\]\.__proto__ is unknown/),
    ]);
  });

  test('any bytes are read, or refused with problems at places that exist', () => {
    const sample = readFileSync(join(packageRoot, 'docs', 'samples', 'definitions.yaml'), 'utf8').slice(
      0,
      3_000,
    );
    const scraps = [
      '{',
      '}',
      '[',
      ']',
      ': ',
      '- ',
      '? ',
      '\n',
      '\n  ',
      '"',
      "'",
      '&a',
      '*a',
      '!t ',
      '|',
      '>',
      '#',
      '%',
      ',',
      '\t',
      '---\n',
      '...',
      'key',
      '7',
      '\r',
      '\u0000',
      '\ud800',
      '\ufeff',
    ];
    const noise = fc.array(
      fc.oneof(fc.constantFrom(...scraps), fc.string({ unit: 'binary', maxLength: 3 })),
      { maxLength: 12 },
    );
    const at = fc.integer({ min: 0, max: sample.length });
    const spliced = fc
      .tuple(at, fc.integer({ min: 0, max: 20 }), noise)
      .map(([from, length, parts]) => sample.slice(0, from) + parts.join('') + sample.slice(from + length));
    const text = fc.oneof(
      noise.map((parts) => parts.join('')),
      spliced,
    );
    fc.assert(
      fc.property(text, (text) => {
        const { value: items, problems } = readText(text);
        expect(items === null).toBe(problems.length > 0);
        const lines = text.split('\n').length;
        for (const { line, column, message } of problems) {
          expect([line >= 1 && line <= lines, column >= 1, message.length > 5]).toEqual([true, true, true]);
        }
      }),
      { numRuns: runs(150) },
    );
  });
});
