import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Reject } from '../../../src/domain/reject.ts';
import { Rows } from '../../../src/load/map/rows.ts';
import { runs } from '../../support/runs.ts';
import { type CopiedRow, readCopyText } from './copy-text.ts';
import { readNdjsonRows } from './read-rows.ts';

interface Outcome {
  readonly users: readonly CopiedRow[];
  readonly companies: readonly CopiedRow[];
  readonly rejects: readonly Reject[];
}

const shared = new Rows();

function readLines(text: string): Outcome {
  readNdjsonRows(text, { rows: shared });
  return {
    users: readCopyText(shared.users.finish()),
    companies: readCopyText(shared.companies.finish()),
    rejects: shared.rejects,
  };
}

const property = fc.constantFrom('a', 'b', 'metadata', 'ü', 'x"metadata', '7', 'a:', 'c\\');
const scalar = fc.oneof(
  fc.constantFrom<unknown>('', '1', 'ü "q" \\ \n', '"metadata":{"a":1}', '}', null, true, 1.5),
  fc.integer(),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    { weight: 4, arbitrary: scalar },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.dictionary(property, tie('value'), { maxKeys: 3 }) },
  ),
}));
const member = fc.oneof(
  fc.tuple(fc.constant('metadata'), fc.dictionary(property, value, { maxKeys: 3 })),
  fc.tuple(fc.constantFrom('a', 'ü', '7', 'x"metadata'), value),
  fc.tuple(fc.constantFrom('company_id'), fc.constantFrom<unknown>('77', null, 77)),
  fc.tuple(
    fc.constant('company'),
    fc
      .dictionary(
        property.filter((name) => name !== 'metadata'),
        value,
        { maxKeys: 2 },
      )
      .chain((companyProperties) =>
        fc
          .dictionary(property, value, { maxKeys: 2 })
          .map((metadata) => ({ id: '77', ...companyProperties, metadata })),
      ),
  ),
);
const space = fc.constantFrom('', '', '', ' ', '\t', '\r', '  ');

/**
 * Writes JSON with repeated keys and with white space between tokens. If `escaped`, also escapes
 * characters.
 */
function writeLine(item: unknown, spaces: () => string, escaped: boolean): string {
  const text = (plain: string) => {
    const json = JSON.stringify(plain);
    return escaped
      ? json.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : json;
  };
  const writeValue = (value: unknown): string => {
    const inner = () => {
      if (typeof value === 'string') return text(value);
      if (Array.isArray(value)) return `[${value.map(writeValue).join(',')}]`;
      if (typeof value === 'object' && value !== null) return members(Object.entries(value));
      return JSON.stringify(value);
    };
    return spaces() + inner() + spaces();
  };
  const members = (entries: readonly (readonly [string, unknown])[]): string =>
    `{${entries.map(([name, value]) => `${spaces()}${text(name)}${spaces()}:${writeValue(value)}`).join(',')}}`;
  return members(item as readonly [string, unknown][]);
}

const line = fc
  .record({
    id: fc.constantFrom<unknown>('u1', 'u2', 'ü\t\\', 12),
    idFirst: fc.boolean(),
    members: fc.array(member, { maxLength: 4 }),
    spaces: fc.array(space, { minLength: 1, maxLength: 12 }),
    escaped: fc.boolean(),
  })
  .map(({ id, idFirst, members, spaces, escaped }) => {
    const idMember = ['user_id', id] as const;
    let at = 0;
    const next = () => spaces[at++ % spaces.length] ?? '';
    return writeLine(idFirst ? [idMember, ...members] : [...members, idMember], next, escaped);
  });

/** Reads a record as the documentation defines it. */
function meaning(text: string): { user: CopiedRow; company: CopiedRow | null } {
  const { user_id, company_id, company, metadata, ...properties } = JSON.parse(text) as Record<
    string,
    unknown
  >;
  const object = company as { id: string; metadata: object } | undefined;
  const { id, metadata: companyMetadata, ...companyProperties } = object ?? { id: null, metadata: {} };
  const idBeside = company_id === undefined ? null : String(company_id ?? '');
  return {
    user: {
      key: String(user_id),
      properties: { ...properties, ...(metadata as object) },
      company: object === undefined ? idBeside : id,
      flags: 0,
    },
    company:
      id === null
        ? null
        : { key: id, properties: { ...companyProperties, ...companyMetadata }, company: null, flags: 2 },
  };
}

function mergeRows(rows: readonly CopiedRow[]): CopiedRow[] {
  const rowsByKey = new Map<string, CopiedRow>();
  for (const row of rows) {
    const earlier = rowsByKey.get(row.key);
    rowsByKey.set(row.key, {
      ...row,
      properties: { ...earlier?.properties, ...row.properties },
      company: row.company ?? earlier?.company ?? null,
    });
  }
  return [...rowsByKey.values()].map(withoutRemovals);
}

/**
 * Clears the removal flag. The reader may set it for a property that is overwritten later in the
 * same record.
 */
const withoutRemovals = (row: CopiedRow): CopiedRow => ({ ...row, flags: row.flags & 2 });

describe('rows of NDJSON', () => {
  it('every line gives the rows that JSON.parse and the rules give', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), (lines) => {
        const expectedRows = lines.map(meaning);
        const { users, companies, rejects } = readLines(lines.join('\n'));
        expect(rejects).toEqual([]);
        expect(users.map(withoutRemovals)).toEqual(mergeRows(expectedRows.map(({ user }) => user)));
        expect(companies.map(withoutRemovals)).toEqual(
          mergeRows(expectedRows.flatMap(({ company }) => (company === null ? [] : [company]))),
        );
      }),
      { numRuns: runs(3_000) },
    );
  });

  const time = '"2026-01-01T00:00:00.000000Z"';
  it.each([
    [`{"user_id":"u","metadata":{"a": 1.50},"first_seen_at":${time},"last_seen_at":${time}}`, { a: 1.5 }],
    [`{"last_seen_at":${time},"user_id":"u","metadata":{"a": 1.50},"last_seen_at":${time}}`, { a: 1.5 }],
    [`{"first_seen_at":1,"user_id":"u","a":1.5,"last_seen_at":{"x":"\\u0041"}}`, { a: 1.5 }],
    [`{"user_id":"u","metadata":{"a":1.5,"first_seen_at":2}}`, { a: 1.5, first_seen_at: 2 }],
    [
      `{"user_id":"u","a":"},\\"first_seen_at\\":${time.replaceAll('"', '\\"')}"}`,
      { a: `},"first_seen_at":${time}` },
    ],
  ])('first_seen_at and last_seen_at are properties only in metadata: %s', (text, properties) => {
    expect(readLines(text)).toMatchObject({ users: [{ key: 'u', properties }], rejects: [] });
  });

  it('a broken line does not become JSON by the removal of its end', () => {
    const end = `},"first_seen_at":${time},"last_seen_at":${time}}`;
    for (const start of [
      '{"user_id":"u","a":"x',
      '{"user_id":"u"',
      '{"user_id":"u","a":{"b":1}',
      '{"user_id":"u","a":[',
    ]) {
      expect(readLines(start + end)).toMatchObject({ users: [], rejects: [{ code: 'invalid_json' }] });
    }
  });

  // proves: one-company-id
  it.each([
    ['{"user_id":"u","company_id":1,"company":{"company_id":"2"}}', 'company_id'],
    ['{"user_id":"u","company":{"id":"é","company_id":"e"}}', 'company.id'],
    ['{"user_id":"u","company":{"id":"\\u00e9"},"company_id":"e"}', 'company_id'],
  ])('a second id of a company that contradicts the first is refused: %s', (text, column) => {
    const { users, companies, rejects } = readLines(text);
    expect([users, companies]).toEqual([[], []]);
    expect(rejects).toMatchObject([
      { code: 'invalid_id', column, message: expect.stringContaining('are different ids') },
    ]);
  });

  it.each(['{}', '[]'])('a company or metadata that is %s counts as absent', (empty) => {
    const [withoutId, withId, withNull] = readLines(
      [
        `{"user_id":"a","company":${empty},"metadata":${empty}}`,
        `{"user_id":"b","company":${empty},"company_id":7,"metadata":${empty}}`,
        `{"user_id":"c","company":${empty},"company_id":null}`,
      ].join('\n'),
    ).users;
    expect([withoutId, withId, withNull]).toMatchObject([
      { key: 'a', company: null, properties: {} },
      { key: 'b', company: '7', properties: {} },
      { key: 'c', company: '', properties: {} },
    ]);
  });
});

it('a value is measured in bytes of UTF-8, escaped or not', () => {
  const fits = 'ü'.repeat(32 * 1024);
  for (const text of [fits, '\\u00fc'.repeat(32 * 1024)]) {
    expect(readLines(`{"user_id":"u","a":"${text}"}\n`).rejects).toEqual([]);
    const { rejects } = readLines(`{"user_id":"u","a":"${text}y"}\n`);
    expect(rejects).toMatchObject([
      { code: 'value_too_large', message: expect.stringContaining('65537 bytes') },
    ]);
  }
});
