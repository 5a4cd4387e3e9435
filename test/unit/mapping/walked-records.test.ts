import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LoadEntity, propertyEntities } from '../../../src/domain/entity.ts';
import { JsonRecords } from '../../../src/load/map/json-records.ts';
import { Rows } from '../../../src/load/map/rows.ts';
import { copiedFields } from './copy-text.ts';
import { readNdjsonRows, wholeChunk } from './read-rows.ts';

const origin = { environmentId: 7, acceptedAt: '2026-11-20T08:00:00.000001Z' };
const actualRows = new Rows();
const expectedRows = new Rows();

/** Each parsed by JSON.parse and written by JSON.stringify, or carried as it stands where the parser says so. */
function readParsed(lines: readonly string[], entity: LoadEntity): Rows {
  const rows = expectedRows;
  rows.reset({ origin });
  const parsed = new JsonRecords({ entity, map: {} }, rows);
  const bytes = Buffer.from(`${lines.join('\n')}\n`);
  let start = 0;
  for (const [line, text] of lines.entries()) {
    const own = Buffer.from(text);
    const end = start + own.length;
    const isCrLf = own.at(-1) === 13;
    if (!/^[ \t\r]*$/.test(text)) {
      const content = isCrLf ? own.subarray(0, -1) : own;
      const record = rows.records.add(start, start + content.length, line);
      const reason = parsed.parse(content.toString(), record);
      if (reason !== null) rows.addReject(rows.records.reject(record, reason, wholeChunk(bytes), bytes));
    }
    start = end + 1;
  }
  return rows;
}

const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** What jsonb makes of it: the last of repeated names, the digits of numbers as they are written. */
function asJsonb(text: string | null): unknown {
  const marked = (text ?? '').replace(token, (each) => (each.startsWith('"') ? each : `"#${each}"`));
  return JSON.parse(marked.replaceAll(/"__proto__"/g, '"proto"'));
}

const profilesOf = (text: Buffer) =>
  copiedFields(text).map(([key, properties, ...others]) => [key, asJsonb(properties ?? null), ...others]);

/** All that the rest of a load sees of a chunk. Events to the byte: their content ids are made of it. */
function seenOf(rows: Rows) {
  const { users, companies, events, records } = rows;
  return {
    rejects: rows.rejects,
    kinds: Array.from({ length: records.count }, (_, record) => rows.kinds.of(record)),
    types: propertyEntities.map((entity) => [...rows.types[entity].types()].sort()),
    profiles: [users, companies].map((out) => ({
      ...{ rows: profilesOf(out.finish()), records: out.records(), removes: out.removes },
      ...{ nested: out.nested, counted: out.counted, repeated: out.repeated },
    })),
    events: events.text().toString(),
    names: [...events.names],
    months: [...events.months],
  };
}

function isWalked(text: string): boolean {
  const bytes = Buffer.from(text);
  const records = new JsonRecords({ entity: 'auto', map: {} }, new Rows());
  return records.walk(bytes, 0, bytes.length) !== null;
}

const digits = (max: number) =>
  fc.string({ unit: fc.constantFrom('0', '0', '1', '5', '9'), minLength: 1, maxLength: max });
const numberText = fc.oneof(
  { weight: 40, arbitrary: fc.integer().map(String) },
  {
    weight: 20,
    arbitrary: fc.constantFrom(
      '0',
      '19.95',
      '-0.5',
      '0.000001',
      '123456789012345',
      '1234567890123456',
      '1.50',
    ),
  },
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => JSON.stringify(each)),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      digits(24),
      fc.option(digits(24)),
      fc.constantFrom('', '', '', 'e5', 'E-7', 'e+400', 'e1001', 'e'),
    )
    .map(([sign, whole, fraction, power]) => {
      const integer = whole.replace(/^0+(?=\d)/, '');
      return `${sign}${integer}${fraction === null ? '' : `.${fraction}`}${power}`;
    }),
  fc.constantFrom(...'-0 0 -0.0 1.50 19.90 0.000001 0.0000001 1e400 01 +1 .5 1.'.split(' ')),
  fc.constantFrom('123456789012345', '1234567890123456', '0.1234567890123456', `${'9'.repeat(301)}`),
);
const piece = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }).map((each) => JSON.stringify(each).slice(1, -1)),
  },
  fc.constantFrom('\\"', '\\\\', '\\/', '\\b', '\\n', '\\t', '\\\\u0041', '\\u0041', '\\u0000', '\\ud800'),
  fc.constantFrom(
    '\\ud83d\\ude00',
    '\\x',
    '\\',
    '\t',
    '\0',
    '"',
    '"metadata":',
    '\\"metadata\\":',
    '\\"user_id\\":1',
  ),
  fc.constantFrom(
    '2026-01-02',
    '2026-01-02T03:04:05Z',
    '2026-13-02',
    '20\\"6-01-02',
    ',1234567890123456',
    '1e5',
  ),
  fc.constantFrom('é', '\u2028', '\x7f', '😀', ' ', '{', '}', ']'),
);
const textText = fc.array(piece, { maxLength: 3 }).map((pieces) => `"${pieces.join('')}"`);
const propertyName = fc.oneof(
  { weight: 80, arbitrary: fc.constantFrom('"a"', '"b"', '"c d"', '"größe"', '"plan"', '"at"') },
  fc.constantFrom(...'"7" "10" "" "__proto__" "constructor" "\\u0061" "x\\"y" "metadata.a"'.split(' ')),
  fc.constantFrom('"first_seen_at"', '"metadata"', '"url"', '"sluice_job"', `"${'é'.repeat(200)}"`),
  fc.constantFrom(`"${'n'.repeat(255)}"`, `"${'n'.repeat(256)}"`),
);
const blank = fc.oneof(
  { weight: 60, arbitrary: fc.constant('') },
  { weight: 8, arbitrary: fc.constant(' ') },
  fc.constantFrom('  ', '\t', '\r', '\f'),
);
/** Members between commas, and around them blanks, all of one make or of any. */
const joined = (open: string, close: string, items: fc.Arbitrary<readonly string[]>) =>
  fc
    .tuple(
      items,
      fc.oneof({ weight: 5, arbitrary: fc.constant('') }, { weight: 2, arbitrary: fc.constant(' ') }, blank),
    )
    .map(([texts, gap]) => open + gap + texts.join(`,${gap}`) + gap + close);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    { weight: 25, arbitrary: textText },
    { weight: 20, arbitrary: numberText },
    { weight: 10, arbitrary: fc.constantFrom('true', 'false', 'null', '[]', '{}') },
    { weight: 1, arbitrary: fc.constantFrom('nul', 'True', '', 'undefined') },
    { weight: 4, arbitrary: joined('[', ']', fc.array(tie('value'), { maxLength: 3 })) },
    {
      weight: 4,
      arbitrary: joined(
        '{',
        '}',
        fc.array(
          fc.tuple(propertyName, tie('value')).map(([name, each]) => `${name}:${each}`),
          { maxLength: 3 },
        ),
      ),
    },
    { weight: 1, arbitrary: fc.nat(40).map((depth) => '['.repeat(depth) + ']'.repeat(depth)) },
  ),
}));
const property = fc.tuple(propertyName, blank, value).map(([name, gap, each]) => `${name}:${gap}${each}`);
const metadata = fc.oneof(
  { weight: 20, arbitrary: joined('{', '}', fc.array(property, { maxLength: 4 })) },
  { weight: 1, arbitrary: value },
);
const id = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom('"u1"', '"u2"', '"ü"', '12') },
  fc.constantFrom(
    '""',
    'null',
    '1.50',
    '-1',
    '-0',
    '1e3',
    '12345678901234567890',
    '"\\u0000"',
    `"${'i'.repeat(257)}"`,
  ),
  fc.constantFrom(`"${'i'.repeat(256)}"`, '"a\\tb"', '{}', '[]', 'true'),
);
const time = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('"2026-03-04T05:06:07.5Z"', '"2026-03-04 05:06:07"') },
  fc.constantFrom('"2026-03-04T05:06:07.5Z"', '"2026-03-04 05:06:07"', '"2026-03-04"', '1772600767'),
  fc.constantFrom('"1999-01-01T00:00:00Z"', '"2026-03-04T05:06:07+02:00"', 'null', '""', '"x"'),
);
const eventMember = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(fc.constant('"inserted_at"'), time) },
  fc.tuple(fc.constant('"source"'), textText),
  fc.tuple(fc.constantFrom('"event_id"', '"insert_id"'), id),
);
const ownMember = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(fc.constant('"metadata"'), metadata) },
  { weight: 12, arbitrary: fc.tuple(propertyName, value) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('"company_id"'), id) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('"user_id"'), id) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('"company"'), metadata) },
  { weight: 1, arbitrary: eventMember },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('"first_seen_at"', '"last_seen_at"'), time) },
);
const kindMember = fc.tuple(
  fc.constant('"event_type"'),
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('"track"', '"page_view"') },
    fc.constantFrom('"identify_user"', '"identify_company"', '"x"', 'null', '3'),
  ),
);
/** What records of events have; one of profiles that has them has properties of those names. */
const eventMembers = fc
  .tuple(
    kindMember,
    fc.option(fc.tuple(fc.constant('"event_name"'), fc.oneof(fc.constant('"Paid"'), textText)), { freq: 6 }),
    fc.array(eventMember, { maxLength: 2 }),
  )
  .map(([kind, name, others]) => [kind, ...(name === null ? [] : [name]), ...others]);
const seen = '"first_seen_at":"2026-01-01T00:00:00.000000Z","last_seen_at":"2026-01-01T00:00:00.000000Z"';
const record = fc
  .tuple(
    fc.option(fc.tuple(fc.constantFrom('"user_id"', '"user_id"', '"user_id"', '"company_id"'), id), {
      freq: 20,
    }),
    fc.option(eventMembers, { freq: 1 }),
    fc.array(ownMember, { maxLength: 4 }),
    fc.boolean(),
    blank,
    fc.oneof(
      { weight: 30, arbitrary: fc.constant('') },
      { weight: 5, arbitrary: fc.constant(`,${seen}`) },
      fc.constant(','),
    ),
  )
  .map(([own, event, members, idFirst, gap, end]) => {
    const rest = [...(event ?? []), ...members];
    const all = own === null ? rest : idFirst ? [own, ...rest] : [...rest, own];
    return `{${gap}${all.map(([name, each]) => `${name}:${gap}${each}`).join(`,${gap}`)}${end}${gap}}`;
  });
const damage = fc.tuple(fc.nat(), fc.constantFrom('', '"', '{', '}', ',', '\\', '\0', 'x'));
/** Now and then one that was damaged. */
const line = fc
  .tuple(record, fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: damage }))
  .map(([text, damaged]) => {
    // Lines are what is between line feeds.
    const whole = text.replaceAll('\n', ' ');
    if (damaged === null) return whole;
    const at = damaged[0] % (whole.length + 1);
    return (whole.slice(0, at) + damaged[1] + whole.slice(at + 1)).toWellFormed();
  });

describe('records of NDJSON that are walked', () => {
  // proves: json-walker
  it('become the same rows, types, counts and refusals as those that are parsed, whatever is in them', () => {
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 1, maxLength: 6 }),
        fc.constantFrom<LoadEntity>('auto', 'auto', 'users', 'companies'),
        (lines, entity) => {
          const bytes = Buffer.from(`${lines.join('\n')}\n`);
          expect(seenOf(readNdjsonRows(bytes, { entity, origin, rows: actualRows }))).toEqual(
            seenOf(readParsed(lines, entity)),
          );
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it.each([
    ['{"user_id":"u1","company_id":"c1","metadata":{"plan":"pro","score":527,"at":"2026-01-02"}}'],
    ['{"user_id": "u1", "company_id": null, "metadata": {"plan": "pro", "tags": ["a", {"b": 1}]}}'],
    [
      '{"user_id":17,"name":"größe \\"x\\" \\n","price":19.95,"paid":true,"left":null,"id":12345678901234567}',
    ],
    ['{"user_id":"u1","metadata":{"price":1.50}}'],
    [`{"user_id":"u1","company_id":null,"metadata":{"price":1.50},${seen}}`],
    ['{"company_id":"c1","name":"Acme"}'],
    [
      '{"event_type":"track","event_name":"Paid","user_id":"u1","inserted_at":"2026-03-04T05:06:07Z","sum":7}',
    ],
    ['{"event_type": "page_view", "user_id": "u1", "event_id": "e1", "metadata": {"hostname": "a.example"}}'],
  ])('are those that programs write: %s', (text) => {
    expect(isWalked(text)).toBe(true);
  });

  it('give properties in the order of jsonb', () => {
    const own = '"metadata":{"title":"t","b":1,"aa":2,"a":3}';
    const event = '"event_type":"track","event_name":"Paid","inserted_at":"2026-03-04T05:06:07Z"';
    const text = `{"user_id":"u1",${own}}\n{"user_id":"u1",${event},${own}}\n`;
    const rows = readNdjsonRows(text, { origin });
    expect(rows.users.finish().toString()).toContain('{"a":3,"b":1,"aa":2,"title":"t"}');
    expect(rows.events.text().toString()).toContain('{"a":3,"b":1,"aa":2,"title":"t"}');
  });
});
