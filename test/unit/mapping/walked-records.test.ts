import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type LoadEntity, propertyEntities } from '../../../src/domain/entity.ts';
import { JsonRecords } from '../../../src/load/map/json-records.ts';
import { Rows } from '../../../src/load/map/rows.ts';
import { runs } from '../../support/runs.ts';
import { copiedFields } from './copy-text.ts';
import { readNdjsonRows, wholeChunk } from './read-rows.ts';

const origin = { environmentId: 7, acceptedAt: '2026-11-20T08:00:00.000001Z' };
const actualRows = new Rows();
const expectedRows = new Rows();

/**
 * Returns the expected rows. Reads lines with JSON.parse and writes values with JSON.stringify,
 * except for values whose original text the parser must keep.
 */
function readParsed(lines: readonly string[], entity: LoadEntity, isRewritten = false): Rows {
  const rows = expectedRows;
  rows.reset({ origin });
  const jsonRecords = new JsonRecords({ entity, map: {}, isRewritten }, rows);
  const bytes = Buffer.from(`${lines.join('\n')}\n`);
  let start = 0;
  for (const [line, text] of lines.entries()) {
    const lineBytes = Buffer.from(text);
    const end = start + lineBytes.length;
    const isCrLf = lineBytes.at(-1) === 13;
    if (!/^[ \t\r]*$/.test(text)) {
      const content = isCrLf ? lineBytes.subarray(0, -1) : lineBytes;
      const record = rows.records.add(start, start + content.length, line);
      const reason = jsonRecords.parse(content.toString(), record);
      if (reason !== null) rows.addReject(rows.records.reject(record, reason, wholeChunk(bytes), bytes));
    }
    start = end + 1;
  }
  return rows;
}

const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/**
 * Reads a value as jsonb does: the last of several equal names counts, and numbers keep all digits.
 */
function asJsonb(text: string | null): unknown {
  const digitsAsText = (text ?? '').replace(token, (found) =>
    found.startsWith('"') ? found : `"#${found}"`,
  );
  return JSON.parse(digitsAsText.replaceAll(/"__proto__"/g, '"proto"'));
}

const profilesOf = (text: Buffer) =>
  copiedFields(text).map(([key, properties, ...otherFields]) => [
    key,
    asJsonb(properties ?? null),
    ...otherFields,
  ]);

/**
 * Returns everything that a load uses from a chunk. Events are compared byte by byte, because their
 * content ids depend on each byte.
 */
function resultOf(rows: Rows) {
  const { users, companies, events, records } = rows;
  return {
    rejects: rows.rejects,
    kinds: Array.from({ length: records.count }, (_, record) => rows.kinds.of(record)),
    types: propertyEntities.map((entity) => [...rows.types[entity].types()].sort()),
    profiles: [users, companies].map((out) => ({
      rows: profilesOf(out.finish()),
      records: out.records(),
      removes: out.removes,
      nested: out.nested,
      counted: out.counted,
      repeated: out.repeated,
    })),
    events: events.text().toString(),
    names: [...events.names],
    months: [...events.months],
  };
}

function isWalked(text: string, isRewritten = false): boolean {
  const bytes = Buffer.from(text);
  const records = new JsonRecords({ entity: 'auto', map: {}, isRewritten }, new Rows());
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
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      digits(24),
      fc.option(digits(24)),
      fc.constantFrom('', '', '', 'e5', 'E-7', 'e+400', 'e1001', 'e'),
    )
    .map(([sign, integerDigits, fraction, power]) => {
      const integer = integerDigits.replace(/^0+(?=\d)/, '');
      return `${sign}${integer}${fraction === null ? '' : `.${fraction}`}${power}`;
    }),
  fc.constantFrom(...'-0 0 -0.0 1.50 19.90 0.000001 0.0000001 1e400 01 +1 .5 1.'.split(' ')),
  fc.constantFrom('123456789012345', '1234567890123456', '0.1234567890123456', `${'9'.repeat(301)}`),
);
const piece = fc.oneof(
  {
    weight: 60,
    arbitrary: fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => JSON.stringify(text).slice(1, -1)),
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
const join = (open: string, close: string, items: fc.Arbitrary<readonly string[]>) =>
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
    { weight: 4, arbitrary: join('[', ']', fc.array(tie('value'), { maxLength: 3 })) },
    {
      weight: 4,
      arbitrary: join(
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
  { weight: 20, arbitrary: join('{', '}', fc.array(property, { maxLength: 4 })) },
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
/** Members of an event. In a profile record, they are ordinary properties. */
const eventMembers = fc
  .tuple(
    kindMember,
    fc.option(fc.tuple(fc.constant('"event_name"'), fc.oneof(fc.constant('"Paid"'), textText)), { freq: 6 }),
    fc.array(eventMember, { maxLength: 2 }),
  )
  .map(([kind, name, otherMembers]) => [kind, ...(name === null ? [] : [name]), ...otherMembers]);
const seenTimes =
  '"first_seen_at":"2026-01-01T00:00:00.000000Z","last_seen_at":"2026-01-01T00:00:00.000000Z"';
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
      { weight: 5, arbitrary: fc.constant(`,${seenTimes}`) },
      fc.constant(','),
    ),
  )
  .map(([idMember, event, members, idFirst, gap, end]) => {
    const otherMembers = [...(event ?? []), ...members];
    const idMembers = idMember === null ? [] : [idMember];
    const allMembers = idFirst ? [...idMembers, ...otherMembers] : [...otherMembers, ...idMembers];
    return `{${gap}${allMembers.map(([name, each]) => `${name}:${gap}${each}`).join(`,${gap}`)}${end}${gap}}`;
  });
const damage = fc.tuple(fc.nat(), fc.constantFrom('', '"', '{', '}', ',', '\\', '\0', 'x'));
const line = fc
  .tuple(record, fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: damage }))
  .map(([text, damageOrNull]) => {
    const intact = text.replaceAll('\n', ' ');
    if (damageOrNull === null) return intact;
    const at = damageOrNull[0] % (intact.length + 1);
    return (intact.slice(0, at) + damageOrNull[1] + intact.slice(at + 1)).toWellFormed();
  });

// proves: json-walker
it('walked records give the same rows, types, counts and refusals as parsed ones', () => {
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 6 }),
      fc.constantFrom<LoadEntity>('auto', 'auto', 'users', 'companies'),
      (lines, entity) => {
        const bytes = Buffer.from(`${lines.join('\n')}\n`);
        expect(resultOf(readNdjsonRows(bytes, { entity, origin, rows: actualRows }))).toEqual(
          resultOf(readParsed(lines, entity)),
        );
      },
    ),
    { numRuns: runs(1_500) },
  );
});

/** Records as the receiver rewrites them. The last member contains the implied profiles. */
const rewrittenLine = fc
  .tuple(record, fc.array(record, { maxLength: 3 }), line)
  .map(([text, profiles, otherLine]) =>
    profiles.length === 0
      ? otherLine
      : `${text.slice(0, -1)},"sluice_profiles":[${profiles.join(',')}]}`.replaceAll('\n', ' '),
  );

it('walked records with implied profiles give the same rows and refusals as parsed ones', () => {
  fc.assert(
    fc.property(fc.array(rewrittenLine, { minLength: 1, maxLength: 6 }), (lines) => {
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      const reading = { entity: 'auto', origin, rows: actualRows, isRewritten: true } as const;
      expect(resultOf(readNdjsonRows(bytes, reading))).toEqual(resultOf(readParsed(lines, 'auto', true)));
    }),
    { numRuns: runs(500) },
  );
});

it('implied profiles are walked only in rewritten files', () => {
  const event = '"event_type":"track","event_name":"Paid","user_id":"u1"';
  const profiles =
    '[{"event_type":"identify_user","user_id":"u1","metadata":{"plan":"pro"}},{"company_id":"c"}]';
  const text = `{${event},"sluice_profiles":${profiles}}`;
  expect(isWalked(text, true)).toBe(true);
  expect(isWalked(text)).toBe(false);
});

it.each([
  ['{"user_id":"u1","company_id":"c1","metadata":{"plan":"pro","score":527,"at":"2026-01-02"}}'],
  ['{"user_id": "u1", "company_id": null, "metadata": {"plan": "pro", "tags": ["a", {"b": 1}]}}'],
  ['{"user_id":17,"name":"größe \\"x\\" \\n","price":19.95,"paid":true,"left":null,"id":12345678901234567}'],
  ['{"user_id":"u1","metadata":{"price":1.50}}'],
  [`{"user_id":"u1","company_id":null,"metadata":{"price":1.50},${seenTimes}}`],
  ['{"company_id":"c1","name":"Acme"}'],
  ['{"event_type":"track","event_name":"Paid","user_id":"u1","inserted_at":"2026-03-04T05:06:07Z","sum":7}'],
  ['{"event_type": "page_view", "user_id": "u1", "event_id": "e1", "metadata": {"hostname": "a.example"}}'],
])('a record in the usual form of programs is walked: %s', (text) => {
  expect(isWalked(text)).toBe(true);
});

it('the properties of a walked record are in the order of jsonb', () => {
  const unordered = '"metadata":{"title":"t","b":1,"aa":2,"a":3}';
  const event = '"event_type":"track","event_name":"Paid","inserted_at":"2026-03-04T05:06:07Z"';
  const text = `{"user_id":"u1",${unordered}}\n{"user_id":"u1",${event},${unordered}}\n`;
  const rows = readNdjsonRows(text, { origin });
  expect(rows.users.finish().toString()).toContain('{"a":3,"b":1,"aa":2,"title":"t"}');
  expect(rows.events.text().toString()).toContain('{"a":3,"b":1,"aa":2,"title":"t"}');
});
