import { expect, test } from 'vitest';
import { explainProblem, InputError, inputError } from '../../../src/base/errors.ts';
import { named, say, using, write } from '../../../src/base/sentence.ts';
import {
  type GivenSource,
  OptionTable,
  requireFitting,
  toGivenSource,
  yamlKeys,
} from '../../../src/domain/option-table.ts';
import { flag } from '../../../src/domain/source-option.ts';

const table = new OptionTable([{ options: { own_flag: flag('an option of a capability') } }]);

test('two options of loads with the same name are refused when the program is put together', () => {
  const own = { options: { own_flag: flag('an option of a capability') } };
  expect(() => new OptionTable([own, own])).toThrow('two options own_flag');
  expect(() => new OptionTable([{ options: { header: flag('an option of the core') } }])).toThrow(
    'two options header',
  );
});

// proves: source-options
test.each<[string, unknown, unknown]>([
  ['encoding', 'latin1', { encoding: 'windows-1252' }],
  ['delimiter', 'tab', { delimiter: '\t' }],
  ['delimiter', 'blanks', { delimiter: 'blanks' }],
  ['delimiter', '\\x01', { delimiter: '\x01' }],
  ['delimiter', '|~|', { delimiter: '|~|' }],
  ['quote', 'none', { quote: '' }],
  ['quote', "'", { quote: "'" }],
  ['escape', '\\', { escape: '\\' }],
  ['escape', "'", { escape: "'", quote: "'" }],
  ['header', 'none', { header: 'none' }],
  ['header', '3', { header: 3 }],
  ['header_rows', '2', { headerRows: 2 }],
  ['skip_rows', '0', { skipRows: 0 }],
  ['skip_footer', 1, { skipFooter: 1 }],
  ['comment', '#', { comment: '#' }],
  ['null', ['NULL', '\\N', 'NULL'], { nulls: ['NULL', '\\N'] }],
  ['null', [], {}],
  ['ragged', 'pad', { ragged: 'pad' }],
  ['apostrophes', 'keep', { apostrophes: 'keep' }],
  ['own_flag', false, {}],
  ['sheet', 'Kunden 2026', { sheet: 'Kunden 2026' }],
  ['records', 'data.users', { records: 'data.users' }],
])('the option %s %j means %j', (name, optionText, options) => {
  expect(table.problem(name, optionText)).toBeNull();
  expect(table.read({ [name]: optionText })).toEqual(options);
  expect(table.read(toGivenSource(table.read({ [name]: optionText })))).toEqual(options);
});

// proves: source-options
test.each<[string, unknown]>([
  ['encoding', 'windows-9999'],
  ['delimiter', ''],
  ['delimiter', '"'],
  ['delimiter', '\\x00'],
  ['delimiter', ';;;;;;;;;'],
  ['delimiter', '\ud800'],
  ['quote', ''],
  ['quote', 'q'],
  ['escape', '\\\\'],
  ['header', '0'],
  ['header_rows', 0],
  ['skip_rows', '-1'],
  ['skip_footer', '1000001'],
  ['comment', ' #'],
  ['null', ['']],
  ['null', 'a\0b'],
  ['null', Array.from({ length: 21 }, (_, index) => `n${index}`)],
  ['ragged', 'drop'],
  ['apostrophes', 'mend'],
  ['apostrophes', 'true'],
  ['own_flag', 'yes'],
  ['records', 'data..users'],
])('the option %s refuses %j with the values that it accepts', (name, value) => {
  expect(table.problem(name, value)).toMatch(/^must be /);
});

// proves: source-options
test.each<[GivenSource, string]>([
  [{ delimiter: "'", quote: "'" }, 'quote is part of the delimiter'],
  [{ delimiter: '\\', escape: '\\' }, 'escape is part of the delimiter'],
  [{ quote: "'", escape: '"' }, "escape must be none, a backslash or ', as quote is"],
  [{ quote: 'none', escape: '"' }, 'escape must be none or a backslash, as quote is none'],
  [{ comment: ';;', delimiter: ';' }, 'comment starts with the delimiter'],
  [{ comment: '"#' }, 'comment starts with the quote character'],
  [{ header: 'none', header_rows: 2 }, 'header_rows has no effect where header is none'],
])('the options %j are refused as contradictory', (options, sentence) => {
  const problems = table.contradictions(table.read(options));
  expect(problems.map(({ name, what }) => `${name} ${what}`)).toEqual([sentence]);
});

// proves: source-options
test('an option is refused without the option that it needs, which may be alone', () => {
  const needy = { ...flag('an option with a need'), needs: 'sheet' };
  const needs = new OptionTable([{ options: { needy_flag: needy } }]);
  const unmet = (options: GivenSource) => needs.unmetNeeds(needs.read(options));
  expect(unmet({ needy_flag: true })).toEqual([{ name: 'needy_flag', what: 'has no effect without sheet' }]);
  expect(unmet({ needy_flag: true, sheet: 'A' })).toEqual([]);
  expect(unmet({ sheet: 'A' })).toEqual([]);
});

// proves: source-options
test.each([
  [{ sheet: 'A' }, 'csv', 'sheet says how to read a workbook; the file was read as a CSV'],
  [{ records: 'a.b' }, 'csv', 'records says how to read JSON; the file was read as a CSV'],
  [{ delimiter: ';' }, 'ndjson', 'delimiter says how to read a CSV; the file was read as NDJSON'],
  [
    { encoding: 'utf-8' },
    'parquet',
    'encoding says how to read a CSV or NDJSON or JSON; the file was read as a Parquet file',
  ],
] as const)('the option %j with a file of format %s is refused', (source, format, message) => {
  expect(() => requireFitting(source, format)).toThrow(InputError);
  expect(() => requireFitting(source, format)).toThrow(message);
});

test.each([
  [
    say`load it with ${named('encoding', 'utf-8')}`,
    'load it with encoding=utf-8',
    'load it with --encoding utf-8',
    'load it with `encoding: utf-8`',
  ],
  [
    say`say ${named('entity', 'users')} or ${named('own_flag', 'true')}`,
    'say entity=users or own_flag=true',
    'say --entity users or --own-flag',
    'say `entity: users` or `own_flag: true`',
  ],
  [
    say`say ${named('records', 'data.users')}, or ${named('header')}`,
    'say records=data.users, or header=',
    'say --records data.users, or --header',
    'say `records: data.users`, or `header:`',
  ],
  [
    say`map one ${using('map', 'Their Header=user_id')}`,
    'map one with map=Their Header=user_id',
    'map one with --map "Their Header=user_id"',
    'map one in the file with `map: { "Their Header": user_id }`',
  ],
])('the sentence %j names options in the style of HTTP, the command line and YAML', (sentence, ...texts) => {
  const inFile = { ...yamlKeys, preposition: 'in the file with' };
  expect([write(sentence), write(sentence, table.flags), write(sentence, inFile)]).toEqual(texts);
});

test('a problem that names options keeps its parts through a sandbox', () => {
  const { problems } = inputError('invalid_field', say`say ${named('ragged', 'pad')}`, 'header');
  const [problem] = new InputError(...structuredClone(problems)).problems;
  expect(problem.message).toBe('say ragged=pad');
  expect(explainProblem(problem, table.flags)).toBe('say --ragged pad (header)');
});

test('a stored message names options as a command line has them', () => {
  expect(table.withFlags('or ragged=pad, or own_flag=true')).toBe('or --ragged pad, or --own-flag');
  expect(table.withFlags('with map=event=event_name; if')).toBe('with --map "event=event_name"; if');
});
