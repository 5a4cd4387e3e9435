import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SHOWN_RECORDS } from '../../../src/base/limits.ts';
import { INSPECTED_RECORDS } from '../../../src/capabilities/inspection/api.ts';
import {
  INSPECTED_BYTES,
  type Inspection,
  inspectFile,
  inspectorWith,
} from '../../../src/capabilities/inspection/inspect-file.ts';
import { personalRule } from '../../../src/domain/looks.ts';
import { createFileSystemStore } from '../../../src/files/file-system.ts';
import { explainRefusals } from '../../../src/load/rejects/rejects.ts';
import { inspectText as inspect } from './support/inspect-text.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'inspect-'));
});
afterAll(() => rm(folder, { recursive: true }));

const column = ({ columns }: Inspection, name: string) => columns.find((each) => each.name === name);

// proves: inspection
test('each column is described by its role, the reason, its type and its values', async () => {
  const inspection = await inspect(
    'user_id,company_id,plan,visits,first_seen_at\nu1,acme,pro,3,x\nu2,,pro,,x\nu3,acme,free,1,\n',
  );
  expect(inspection.problem).toBeNull();
  expect(inspection).toMatchObject({ entity: 'users', records: 3, whole_file: true });
  const property = 'every other column is a property';
  const description = inspection.columns.map(
    ({ name, becomes, reason, type, filled, distinct, samples, frequent }) => {
      expect(type).toBe('string');
      expect(frequent.map(({ value }) => value)).toEqual(samples);
      return [
        name,
        becomes,
        reason,
        filled,
        distinct,
        frequent.map(({ value, count }) => `${count} × ${value}`),
      ];
    },
  );
  expect(description).toEqual([
    ['user_id', 'user_id', 'its name says so', 3, 3, ['1 × u1', '1 × u2', '1 × u3']],
    ['company_id', 'company_id', 'its name says so', 2, 1, ['2 × acme']],
    ['plan', 'metadata.plan', property, 3, 2, ['2 × pro', '1 × free']],
    ['visits', 'metadata.visits', property, 2, 2, ['1 × 3', '1 × 1']],
    ['first_seen_at', null, 'it is kept for every profile, and nobody can set it', 2, 1, ['2 × x']],
  ]);
});

// proves: personal-hints
test('columns of e-mail, phone, card and IP values get a proposed rule', async () => {
  const rows = [
    '4111111111111111',
    '5500000000000004',
    '6011000000000004',
    '4012888888881881',
    '4222222222222',
  ];
  const lines = rows.map(
    (card, n) => `u${n},u${n}@example.com,+43 660 123456${n},${card},203.0.113.${n},${n}`,
  );
  const inspection = await inspect(`user_id,Mail,phone,card,ip,visits\n${lines.join('\n')}\n`);
  const rules = inspection.columns.map(({ becomes, looks_like }) => personalRule(becomes, looks_like));
  expect(rules).toEqual([
    null,
    'Mail: { personal: hash }',
    'phone: { personal: hash }',
    'card: { personal: drop }',
    'ip: { personal: drop }',
    null,
  ]);
});

test('the first records are shown as they would be stored, with their rows', async () => {
  const lines = Array.from({ length: 30 }, (_, n) => `u${n},"a\tb \\ ${n}"`);
  const inspection = await inspect(`user_id,name\n${lines.join('\n')}\n`);
  expect(inspection.rows).toHaveLength(SHOWN_RECORDS);
  expect(inspection.rows[3]).toEqual({
    row: 4,
    event_type: 'identify_user',
    user_id: 'u3',
    metadata: { name: 'a\tb \\ 3' },
  });
});

// proves: inspection
test('records that would be refused are counted and shown with line and reason', async () => {
  const inspection = await inspect('user_id,name\nu1,a\n,b\nu2,c,d\n,e\n');
  expect(inspection.rejects).toMatchObject({ count: 3, by_code: { missing_id: 2, wrong_field_count: 1 } });
  expect(inspection.rejects.items[0]).toMatchObject({
    row: 2,
    line: 3,
    error_code: 'missing_id',
    raw: ',b',
  });
  expect(column(inspection, 'name')).toMatchObject({ filled: 1 });
});

test.each([
  ['Kunden-Nr;Name\n17;Anna\n', 'Kunden-Nr', 'user_id'],
  ['Name;Customer ID;id\nAnna;17;1\n', 'Customer ID', 'user_id'],
  ['Account ID,Name\na1,Acme\n', 'Account ID', 'company_id'],
  ['{"Customer ID":"17","name":"Anna"}\n', 'Customer ID', 'user_id'],
])('the likely id column of %j is proposed, and its rows are shown', async (text, name, idField) => {
  const inspection = await inspect(text);
  expect(inspection.problem?.problems[0].code).toBe('unrecognised_columns');
  expect(inspection.map).toEqual({ [name]: idField });
  expect(column(inspection, name)).toMatchObject({
    becomes: idField,
    reason: `its name looks like that of a ${idField} (filled in 1 of 1 record, 1 distinct value)`,
    filled: 1,
  });
  expect(inspection.rows).toHaveLength(1);
  const mapped = await inspect(text, { map: inspection.map });
  expect(mapped.problem).toBeNull();
  expect(mapped.rows).toEqual(inspection.rows);
});

test.each([
  ['is empty in many records', 'Customer ID,E-mail,Name\n,a@x.io,Ann\n2,b@x.io,Bob\n,c@x.io,Eve\n', 'E-mail'],
  ['has few values', 'client_id,login,town\n7,ann,Rome\n7,bob,Oslo\n7,eve,Bonn\n', 'login'],
  ['is equally good', 'Customer ID,town\n7,Rome\n7,Oslo\n7,Bonn\n', 'Customer ID'],
])('an id is proposed by its values if the best-named column %s', async (_, text, name) => {
  expect((await inspect(text)).map).toEqual({ [name]: 'user_id' });
});

test('a date is never proposed as an id', async () => {
  const text = 'begun,colour\n2026-01-01,red\n2026-01-02,blue\n2026-01-03,green\n';
  expect((await inspect(text)).map).toEqual({ colour: 'user_id' });
});

test.each([
  ['one record is too few', 'colour,size\nred,3\n'],
  ['no column is full and without repetition', 'colour,size\nred,3\n,4\nblue,3\n'],
])('nothing is proposed without a likely name if %s, but the columns are shown', async (_, text) => {
  const inspection = await inspect(text);
  expect(inspection.problem).not.toBeNull();
  expect(inspection).toMatchObject({ map: {}, records: 0, rows: [] });
  expect(inspection.columns.map(({ name }) => name)).toEqual(['colour', 'size']);
  expect(column(inspection, 'colour')).toMatchObject({ becomes: null, type: 'string' });
  expect(column(inspection, 'colour')?.samples[0]).toBe('red');
});

test('a column without a name is mapped by its position', async () => {
  const map = { column_1: 'user_id' };
  const inspection = await inspect(',name,age\n0,Ann,31\n1,Bob,47\n', { map });
  expect(inspection.problem).toBeNull();
  expect(inspection.rows).toMatchObject([{ user_id: '0' }, { user_id: '1' }]);
});

test('UTF-16 that ends within a character is reported, without another encoding', async () => {
  const bytes = Buffer.from('\ufeffuser_id,name\nu1,Zo\u00eb\nu2,Ann', 'utf16le');
  const inspection = await inspect(bytes.subarray(0, -1));
  expect(inspection.readAs.encoding).toBe('utf-16le');
  const [cutRecord] = inspection.rejects.items;
  expect(cutRecord).toMatchObject({ line: 3, error_code: 'invalid_utf8' });
  expect(cutRecord?.message).toMatch(/not a character of the file's encoding$/);
  const raw = Buffer.from(cutRecord?.raw_base64 ?? '', 'base64');
  const sample = {
    row: 1,
    line: 3,
    byteOffset: 0,
    code: 'invalid_utf8',
    message: '',
    column: null,
    raw,
  } as const;
  const reason = explainRefusals({ header: null, byCode: { invalid_utf8: 1 }, sample, recognise: null });
  expect(reason).not.toContain('encoding=');
});

test('the option for comments is proposed if a comment looks like the header', async () => {
  const text = '# exported, by hand\nname,town\nAnn,Rome\nBob,Oslo\nEve,Bonn\n';
  const inspection = await inspect(text);
  expect(inspection.problem?.message).toContain('say comment=#');
  expect(inspection.map).toEqual({});
  const withOption = await inspect(text, { source: { comment: '#' } });
  expect(withOption.map).toEqual({ name: 'user_id' });
});

test('all columns of a wide file are counted and shown', async () => {
  const names = Array.from({ length: 101 }, (_, n) => `c${n}`);
  const { readAs, columns, column_names } = await inspect(`user_id,${names.join()}\nu1${',x'.repeat(101)}\n`);
  expect(readAs.csv?.columns).toHaveLength(100);
  expect(readAs.csv?.columnCount).toBe(102);
  expect([columns.length, column_names?.length]).toEqual([102, 102]);
});

// proves: inspection
test('only whole records at the start of a large file are read, without leftovers', async () => {
  const record = (n: number): string => `u${n},${'x'.repeat(1_000)}\n`;
  let lastRecord = 0;
  async function* source() {
    yield Buffer.from('user_id,name\n');
    for (let n = 0; n < 40_000; n++) {
      lastRecord = n;
      yield Buffer.from(record(n));
    }
  }
  const options = { entity: 'auto', map: {}, preset: null } as const;
  const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };
  const { signal } = new AbortController();
  const store = createFileSystemStore(folder);
  const inspection = await inspectFile(store, source(), {}, options, limits, signal, inspectorWith(null));
  expect(inspection).toMatchObject({ whole_file: false, rejects: { count: 0 } });
  expect(inspection.records).toBeGreaterThan(INSPECTED_BYTES / 1_100);
  expect(inspection.records).toBeLessThanOrEqual(INSPECTED_RECORDS);
  expect(lastRecord).toBeLessThan(20_000);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  expect(entries.filter((entry) => entry.isFile())).toEqual([]);
});
