import { expect, test } from 'vitest';
import { readMapping } from '../../../src/capabilities/inbox/mapping.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';

const parseMapping = (text: string) => readMapping(new OptionTable([]), Buffer.from(text), '');

// proves: source-options
test('a mapping.yaml specifies the form of the files beside it, by options of uploads', () => {
  const { options, problems } = parseMapping(`encoding: utf-16
delimiter: "\\t"
quote: none
escape: "\\\\"
header: 2
header_rows: 2
skip_rows: 3
skip_footer: 1
comment: "#"
null: ["NULL", n/a]
ragged: pad
sheet: Kunden
records: data.users
`);
  expect(problems).toEqual([]);
  expect(options?.source).toEqual({
    encoding: 'utf-16le',
    delimiter: '\t',
    quote: '',
    escape: '\\',
    header: 2,
    headerRows: 2,
    skipRows: 3,
    skipFooter: 1,
    comment: '#',
    nulls: ['NULL', 'n/a'],
    ragged: 'pad',
    sheet: 'Kunden',
    records: 'data.users',
  });
});

test('a mapping.yaml may name columns by number, and sets no omitted option', () => {
  expect(parseMapping('header: none\nmap: { "1": user_id }\n').options).toMatchObject({
    map: { '1': 'user_id' },
    source: { header: 'none' },
  });
  expect(parseMapping('map: {}\n').options?.source).toEqual({});
});

test.each([
  ['header: first', 'header must be none, or a number from 1 to 10000, not "first"'],
  ['ragged: drop', 'ragged must be refuse or pad, not "drop"'],
  ['header: none\nheader_rows: 2', 'header_rows has no effect where header is none'],
  ['options_of: A b', /^options_of must be the job_id of an earlier load; it is "A b"$/],
  ['quote: [a]', /^quote must be none, or .*, not a list; put text in quotes$/],
])('a mapping.yaml with %j is refused', (text, message) => {
  const { problems } = parseMapping(`${text}\n`);
  expect(problems.map((problem) => problem.message)).toEqual([
    typeof message === 'string' ? message : expect.stringMatching(message),
  ]);
});
