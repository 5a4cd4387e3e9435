import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { defuse } from '../../../src/base/formula.ts';
import { recordKinds } from '../../../src/domain/entity.ts';
import { exportHeader } from '../../../src/formats/csv-text.ts';
import { splitUrl } from '../../../src/load/map/event-checks.ts';
import type { Rows } from '../../../src/load/map/rows.ts';
import { runs } from '../../support/runs.ts';
import { openCsv } from '../formats/open-csv.ts';
import { copiedFields, readCopyText } from './copy-text.ts';
import { type Reading, readCsvRows, readNdjsonRows } from './read-rows.ts';

const origin = { environmentId: 7, acceptedAt: '2026-11-20T08:00:00.000001Z' };

function readCsv(text: string, reading: Reading = {}): Rows {
  const bytes = Buffer.from(text);
  const { header, end } = openCsv(bytes, { map: reading.map ?? {} });
  return readCsvRows(header, bytes.subarray(end), { origin, ...reading });
}

function readNdjson(lines: readonly unknown[], reading: Reading = {}): Rows {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  return readNdjsonRows(text, { origin, ...reading });
}

interface Event {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly user: string;
  readonly company: string | null;
  readonly source: string;
  readonly at: string;
  readonly metadata: Record<string, unknown>;
}

function eventsOf(rows: Rows): Event[] {
  return copiedFields(rows.events.text()).map((fields) => {
    const [environment, user, id, type, name, company, source, at, metadata, ...surplus] = fields;
    expect([environment, surplus]).toEqual(['7', []]);
    return { id, type, name, user, company, source, at, metadata: JSON.parse(metadata ?? '') } as Event;
  });
}

const rejectsOf = (rows: Rows): string[] =>
  rows.rejects.map(({ row, code, column }) => `${row} ${code} ${column}`);
const contentId = /^[\w-]{12}$/;

describe('an event row', () => {
  const paid = {
    type: 'track',
    name: 'Paid',
    user: 'u1',
    company: null,
    source: 'import',
    at: '2026-03-04T05:06:07.000000Z',
    metadata: { plan: 'pro' },
  };

  it('an event row has its documented columns, and all others as properties', () => {
    const csv = readCsv(
      'event_type,event_name,user_id,company_id,source,inserted_at,plan,metadata.source,event_id,metadata\n' +
        'track,Paid,u1,c1,web,2026-03-04 05:06:07.5,pro,ads,e1,"{""n"":1.50,""b"":{""c"":[true]}}"\n',
    );
    const expectedEvent = {
      ...paid,
      id: 'e1',
      company: 'c1',
      source: 'web',
      at: '2026-03-04T05:06:07.500000Z',
      metadata: { plan: 'pro', source: 'ads', n: 1.5, b: { c: [true] } },
    };
    expect(eventsOf(csv)).toEqual([expectedEvent]);
    const ndjson = readNdjson([
      {
        event_type: 'track',
        event_name: 'Paid',
        user_id: 'u1',
        company_id: 'c1',
        source: 'web',
        inserted_at: '2026-03-04T05:06:07.5Z',
        plan: 'pro',
        'metadata.source': 'ads',
        insert_id: 'e1',
        metadata: { n: 1.5, b: { c: [true] } },
      },
    ]);
    expect(eventsOf(ndjson)).toEqual([expectedEvent]);
  });

  it.each(
    'yesterday 2026-02-29T00:00:00Z 2026-03-04T24:00:00Z 2026-03-04T05:06:07.Z 1999-12-31T23:59:59Z 2026-11-21T08:00:00.002Z 17726007671234567 -1'.split(
      ' ',
    ),
  )('an event with the time %s is refused', (time) => {
    const csv = readCsv(`event_type,event_name,user_id,when\ntrack,Paid,u1,${time}\n`, {
      map: { when: 'inserted_at' },
    });
    expect(rejectsOf(csv)).toEqual(['1 invalid_date when']);
    const record = { event_type: 'track', event_name: 'Paid', user_id: 'u1', inserted_at: time };
    expect(rejectsOf(readNdjson([record]))).toEqual(['1 invalid_date inserted_at']);
  });

  it('an event without type, name or user, or with a long field, is refused', () => {
    const long = 'x'.repeat(257);
    const records: readonly Readonly<Record<string, string>>[] = [
      { event_type: 'click', event_name: 'Paid', user_id: 'u1' },
      { event_type: '', event_name: 'Paid', user_id: 'u1' },
      { event_type: 'track', event_name: '', user_id: 'u1' },
      { event_type: 'track', event_name: 'Paid', user_id: '' },
      { event_type: 'track', event_name: long, user_id: 'u1' },
      { event_type: 'track', event_name: 'Paid', user_id: long },
      { event_type: 'track', event_name: 'Paid', user_id: 'u1', company_id: long },
      { event_type: 'track', event_name: 'Paid', user_id: 'u1', source: long },
      { event_type: 'track', event_name: 'Paid', user_id: 'u1', event_id: 'a', insert_id: 'b' },
    ];
    const columns = ['event_type', 'event_name', 'user_id', 'company_id', 'source', 'event_id', 'insert_id'];
    const cells = records.map((record) => columns.map((name) => record[name] ?? '').join(','));
    const expectedRejects = [
      '1 unknown_event_type event_type',
      '2 unknown_event_type event_type',
      '3 missing_event_name event_name',
      '4 missing_id user_id',
      '5 value_too_large event_name',
      '6 id_too_long user_id',
      '7 id_too_long company_id',
      '8 value_too_large source',
      '9 invalid_id insert_id',
    ];
    expect(rejectsOf(readCsv(`${columns.join(',')}\n${cells.join('\n')}\n`))).toEqual(expectedRejects);
    expect(rejectsOf(readNdjson(records))).toEqual(expectedRejects);
  });

  it('an event has the parts of its address as properties, unless it has its own', () => {
    const url = 'https://u:p@WWW.Example.com:8080/a/b?x=1#top';
    const parts = { hostname: 'www.example.com', pathname: '/a/b', search: '?x=1', hash: '#top' };
    const csv = `event_type,user_id,url,pathname\npage_view,u1,${url},\npage_view,u1,${url},/own\n`;
    expect(eventsOf(readCsv(csv)).map(({ metadata }) => metadata)).toEqual([
      parts,
      { ...parts, pathname: '/own' },
    ]);
    const record = { event_type: 'page_view', user_id: 'u1', url };
    const ndjson = readNdjson([record, { ...record, pathname: '/own' }]);
    expect(eventsOf(ndjson).map(({ metadata }) => metadata)).toEqual([parts, { ...parts, pathname: '/own' }]);
    expect(splitUrl('//a.example')).toEqual({ hostname: 'a.example', pathname: '/' });
    expect(splitUrl('/only?q')).toEqual({ pathname: '/only', search: '?q' });
    expect(splitUrl('no address')).toEqual({ url: 'no address' });
  });
});

it('a profile of an event file has its stated kind, with or without a time', () => {
  const rows = readCsv(
    'event_type,user_id,company_id,event_name,source,url,plan,inserted_at,metadata\n' +
      'identify_user,u1,c1,Ignored,Ignored,kept,"say ""pro""\n\\",,"{""n"":1}"\n' +
      'identify_company,u1,c1,,,,big,2026-03-04T05:06:07Z,\n',
  );
  expect(rejectsOf(rows)).toEqual([]);
  expect(readCopyText(rows.users.finish())).toEqual([
    { key: 'u1', company: 'c1', flags: 0, properties: { url: 'kept', plan: 'say "pro"\n\\', n: 1 } },
  ]);
  const company = { key: 'c1', company: null, flags: 0, properties: { plan: 'big' } };
  expect(readCopyText(rows.companies.finish())).toEqual([company]);
  const ndjson = readNdjson([
    { event_type: 'identify_user', user_id: 'u1', company_id: 'c1', source: 'x', event_name: 'y', n: 1 },
    {
      event_type: 'identify_company',
      company_id: 'c1',
      inserted_at: 1772600767,
      metadata: { plan: 'big' },
    },
    { user_id: 'u2', inserted_at: 'a property, as the record does not say what it is' },
  ]);
  expect(readCopyText(ndjson.users.finish()).map(({ key, properties }) => [key, properties])).toEqual([
    ['u1', { n: 1 }],
    ['u2', { inserted_at: 'a property, as the record does not say what it is' }],
  ]);
  expect(readCopyText(ndjson.companies.finish())).toEqual([company]);
});

// proves: wrong-kind
it('a profile or event that the job does not take is refused, never converted', () => {
  const csv =
    'event_type,user_id,company_id\nidentify_user,u1,\nidentify_company,,c1\ntrack,u1,\nclick,u1,\n,u1,\n';
  const users = readCsv(csv, { entity: 'users' });
  expect(rejectsOf(users)).toEqual([2, 3, 4, 5].map((row) => `${row} unexpected_event_row event_type`));
  expect(users.users.rows).toBe(1);
  const records = [
    { event_type: 'identify_user', user_id: 'u1' },
    { event_type: 'identify_company', company_id: 'c1', user_id: 'u1' },
    { event_type: 'track', user_id: 'u1', company_id: 'c1' },
    { event_type: 7, user_id: 'u1', company_id: 'c1' },
    { event_type: null, user_id: 'u2', company_id: 'c2' },
  ];
  const companies = readNdjson(records, { entity: 'companies' });
  expect(rejectsOf(companies)).toEqual([1, 3, 4].map((row) => `${row} unexpected_event_row event_type`));
  expect(companies.companies.rows).toBe(2);
  expect([companies.users.rows, companies.events.rows]).toEqual([0, 0]);
});

// proves: formulas
test('a CSV of events from an export gives the same rows', () => {
  const header = 'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata';
  const texts = ['=1+1', "'=1+1", '@x', "'plain", '-5'];
  const lines = texts.map((value, index) => {
    const cell = defuse(value);
    return `e${index},track,${cell},${cell},${cell},${cell},2026-03-04T05:06:07.000001Z,"{""f"": ""=1""}"`;
  });
  const rows = readCsv(`${exportHeader(header.split(','), true)}\n${lines.join('\n')}\n`);
  expect(eventsOf(rows)).toEqual(
    texts.map((value, index) => ({
      id: `e${index}`,
      type: 'track',
      name: value,
      user: value,
      company: value,
      source: value,
      at: '2026-03-04T05:06:07.000001Z',
      metadata: { f: '=1' },
    })),
  );
});

const text = fc
  .array(fc.constantFrom(...'aZ7 ",\n\r\t\\\b\u001fü😀\'{'), {
    minLength: 1,
    maxLength: 8,
  })
  .map((characters) => characters.join(''));
const maybe = (arbitrary: fc.Arbitrary<string>) => fc.oneof(fc.constant(''), arbitrary);
const record = fc.record({
  event_type: fc.constantFrom(...recordKinds, 'click'),
  event_name: maybe(text),
  user_id: maybe(fc.oneof(text, fc.constant('u1'))),
  company_id: maybe(fc.oneof(text, fc.constant('c1'))),
  event_id: maybe(fc.constantFrom('e1', 'e2', '"')),
  source: maybe(text),
  inserted_at: maybe(
    fc.constantFrom('2026-03-04T05:06:07.25Z', '2025-01-01 00:00:00', '1772600767', 'never'),
  ),
  url: maybe(fc.constantFrom('https://a.example/p?q', '/p', 'none')),
  'a "b"': maybe(text),
  z: maybe(text),
  metadata: fc.option(fc.record({ n: fc.integer(), t: text, deep: fc.array(text) }), { nil: undefined }),
});
const columns = [
  ...['event_type', 'event_name', 'user_id', 'company_id', 'event_id', 'source', 'inserted_at', 'url'],
  ...['z', 'a "b"', 'metadata'],
] as const;

function outcomeOf(rows: Rows): unknown {
  const events = eventsOf(rows).map((event) => ({
    ...event,
    id: contentId.test(event.id) ? 'content' : event.id,
  }));
  return {
    events,
    repeated: Object.values(rows.events.countByKind()).reduce((sum, { repeated }) => sum + repeated, 0),
    months: [...rows.events.months],
    names: [...rows.events.names],
    untimed: copiedFields(rows.events.idText()).length,
    users: readCopyText(rows.users.finish()),
    companies: readCopyText(rows.companies.finish()),
    rejects: rejectsOf(rows),
  };
}

// proves: content-ids
test('records of all kinds give the same rows from CSV and from NDJSON', () => {
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 12 }),
      fc.constantFrom(',', ';', '\t', '|'),
      fc.constantFrom('\n', '\r\n', '\r'),
      (records, delimiter, newline) => {
        const quote = (cell: string) => `"${cell.replaceAll('"', '""')}"`;
        const cellOf = (cell: string) =>
          /["\r\n]/.test(cell) || cell.includes(delimiter) || cell.startsWith("'") ? quote(cell) : cell;
        const lines = records.map((record) =>
          columns
            .map((name) => (name === 'metadata' ? JSON.stringify(record.metadata) : record[name]) ?? '')
            .map(cellOf)
            .join(delimiter),
        );
        const csv = [columns.map(cellOf).join(delimiter), ...lines].join(newline) + newline;
        const objects = records.map((record) =>
          Object.fromEntries(
            // Omits empty values. In a CSV, an empty cell is a missing value. In an object, an
            // empty kind would be refused.
            columns.flatMap((name) =>
              record[name] === '' || record[name] === undefined ? [] : [[name, record[name]]],
            ),
          ),
        );
        expect(outcomeOf(readCsv(csv))).toEqual(outcomeOf(readNdjson(objects)));
      },
    ),
    { numRuns: runs(300) },
  );
});

// proves: content-ids
test('a content id depends only on the occurrence, not on the chunk', () => {
  const header = 'event_type,event_name,user_id,inserted_at,plan\n';
  const line = (n: number) => `track,Paid,u${n % 5},2026-03-04T05:06:0${n % 2}Z,"pro,${n % 3}"\n`;
  const lines = Array.from({ length: 60 }, (_, n) => line(n % 20));
  const wholeIds = eventsOf(readCsv(header + lines.join(''))).map(({ id }) => id);
  expect(new Set(wholeIds).size).toBe(60);
  const halves = [lines.slice(0, 20), lines.slice(20, 40)].map((half) =>
    eventsOf(readCsv(header + half.join(''))).map(({ id }) => id),
  );
  expect(halves).toEqual([wholeIds.slice(0, 20), wholeIds.slice(0, 20)]);
});
