import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SHOWN_RECORDS } from '../../../src/base/limits.ts';
import {
  INSPECTED_BYTES,
  type Inspection,
  inspectFile,
  lookBy,
} from '../../../src/capabilities/inspection/inspect-file.ts';
import { INSPECTED_RECORDS } from '../../../src/capabilities/inspection/limits.ts';
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

describe('the inspection of a file', () => {
  // proves: inspection
  test('says of each column what it becomes and why, of what type its values are, how many there are, and the first', async () => {
    const found = await inspect(
      'user_id,company_id,plan,visits,first_seen_at\nu1,acme,pro,3,x\nu2,,pro,,x\nu3,acme,free,1,\n',
    );
    expect(found.problem).toBeNull();
    expect(found).toMatchObject({ entity: 'users', records: 3, whole_file: true });
    const property = 'every other column is a property';
    const described = found.columns.map(
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
    expect(described).toEqual([
      ['user_id', 'user_id', 'its name says so', 3, 3, ['1 × u1', '1 × u2', '1 × u3']],
      ['company_id', 'company_id', 'its name says so', 2, 1, ['2 × acme']],
      ['plan', 'metadata.plan', property, 3, 2, ['2 × pro', '1 × free']],
      ['visits', 'metadata.visits', property, 2, 2, ['1 × 3', '1 × 1']],
      ['first_seen_at', null, 'it is kept for every profile, and nobody can set it', 2, 1, ['2 × x']],
    ]);
  });

  // proves: personal-hints
  test('names columns of e-mail addresses, phone numbers, card numbers and IP addresses', async () => {
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
    const found = await inspect(`user_id,Mail,phone,card,ip,visits\n${lines.join('\n')}\n`);
    const rules = found.columns.map(({ becomes, looks_like }) => personalRule(becomes, looks_like));
    expect(rules).toEqual([
      null,
      'Mail: { personal: hash }',
      'phone: { personal: hash }',
      'card: { personal: drop }',
      'ip: { personal: drop }',
      null,
    ]);
  });

  test('shows the first records as they would be stored, each where it stands in the file', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => `u${n},"a\tb \\ ${n}"`);
    const found = await inspect(`user_id,name\n${lines.join('\n')}\n`);
    expect(found.rows).toHaveLength(SHOWN_RECORDS);
    expect(found.rows[3]).toEqual({
      row: 4,
      event_type: 'identify_user',
      user_id: 'u3',
      metadata: { name: 'a\tb \\ 3' },
    });
  });

  // proves: inspection
  test('counts what would be refused, and shows it with its line and reason', async () => {
    const found = await inspect('user_id,name\nu1,a\n,b\nu2,c,d\n,e\n');
    expect(found.rejects).toMatchObject({ count: 3, by_code: { missing_id: 2, wrong_field_count: 1 } });
    expect(found.rejects.items[0]).toMatchObject({
      row: 2,
      line: 3,
      error_code: 'missing_id',
      raw: ',b',
    });
    expect(column(found, 'name')).toMatchObject({ filled: 1 });
  });

  test.each([
    ['Kunden-Nr;Name\n17;Anna\n', 'Kunden-Nr', 'user_id'],
    ['Name;Customer ID;id\nAnna;17;1\n', 'Customer ID', 'user_id'],
    ['Account ID,Name\na1,Acme\n', 'Account ID', 'company_id'],
    ['{"Customer ID":"17","name":"Anna"}\n', 'Customer ID', 'user_id'],
  ])(
    'proposes which column of %j may be the id, and shows what it would come to',
    async (text, name, ours) => {
      const found = await inspect(text);
      expect(found.problem?.problems[0].code).toBe('unrecognised_columns');
      expect(found.map).toEqual({ [name]: ours });
      expect(column(found, name)).toMatchObject({
        becomes: ours,
        reason: `its name looks like that of a ${ours} (filled in 1 of 1 record, 1 distinct value)`,
        filled: 1,
      });
      expect(found.rows).toHaveLength(1);
      const loaded = await inspect(text, { map: found.map });
      expect(loaded.problem).toBeNull();
      expect(loaded.rows).toEqual(found.rows);
    },
  );

  test.each([
    [
      'is empty in many records',
      'Customer ID,E-mail,Name\n,a@x.io,Ann\n2,b@x.io,Bob\n,c@x.io,Eve\n',
      'E-mail',
    ],
    ['has few values', 'client_id,login,town\n7,ann,Rome\n7,bob,Oslo\n7,eve,Bonn\n', 'login'],
    ['is as good as any', 'Customer ID,town\n7,Rome\n7,Oslo\n7,Bonn\n', 'Customer ID'],
  ])('proposes an id by its values where the column with the best name %s', async (_, text, name) => {
    expect((await inspect(text)).map).toEqual({ [name]: 'user_id' });
  });

  test('proposes no date as an id', async () => {
    const text = 'begun,colour\n2026-01-01,red\n2026-01-02,blue\n2026-01-03,green\n';
    expect((await inspect(text)).map).toEqual({ colour: 'user_id' });
  });

  test.each([
    ['one record says nothing of its columns', 'colour,size\nred,3\n'],
    ['no column is full and without repetition', 'colour,size\nred,3\n,4\nblue,3\n'],
  ])(
    'proposes nothing where no name looks like an id and %s, and shows the columns all the same',
    async (_, text) => {
      const found = await inspect(text);
      expect(found.problem).not.toBeNull();
      expect(found).toMatchObject({ map: {}, records: 0, rows: [] });
      expect(found.columns.map(({ name }) => name)).toEqual(['colour', 'size']);
      expect(column(found, 'colour')).toMatchObject({ becomes: null, type: 'string' });
      expect(column(found, 'colour')?.samples[0]).toBe('red');
    },
  );

  test('names a column by its position where the header gives it no name of its own', async () => {
    const map = { column_1: 'user_id' };
    const found = await inspect(',name,age\n0,Ann,31\n1,Bob,47\n', { map });
    expect(found.problem).toBeNull();
    expect(found.rows).toMatchObject([{ user_id: '0' }, { user_id: '1' }]);
  });

  test('says of UTF-16 that ends within a character what is left of it, and names no other encoding', async () => {
    const bytes = Buffer.from('\ufeffuser_id,name\nu1,Zo\u00eb\nu2,Ann', 'utf16le');
    const found = await inspect(bytes.subarray(0, -1));
    expect(found.readAs.encoding).toBe('utf-16le');
    const [cut] = found.rejects.items;
    expect(cut).toMatchObject({ line: 3, error_code: 'invalid_utf8' });
    expect(cut?.message).toMatch(/no character of the file's encoding$/);
    const raw = Buffer.from(cut?.raw_base64 ?? '', 'base64');
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

  test('names the option for remarks where one seems to be the header, and proposes no word of it as an id', async () => {
    const text = '# exported, by hand\nname,town\nAnn,Rome\nBob,Oslo\nEve,Bonn\n';
    const found = await inspect(text);
    expect(found.problem?.message).toContain('say comment=#');
    expect(found.map).toEqual({});
    const said = await inspect(text, { source: { comment: '#' } });
    expect(said.map).toEqual({ name: 'user_id' });
  });

  test('says how many columns a wide file has, and shows all of them', async () => {
    const names = Array.from({ length: 101 }, (_, n) => `c${n}`);
    const { readAs, columns, column_names } = await inspect(
      `user_id,${names.join()}\nu1${',x'.repeat(101)}\n`,
    );
    expect(readAs.csv?.columns).toHaveLength(100);
    expect(readAs.csv?.columnCount).toBe(102);
    expect([columns.length, column_names?.length]).toEqual([102, 102]);
  });

  // proves: inspection
  test('looks at the beginning of a large file only, at whole records, and leaves nothing behind', async () => {
    const record = (n: number): string => `u${n},${'x'.repeat(1_000)}\n`;
    let pulled = 0;
    async function* source() {
      yield Buffer.from('user_id,name\n');
      for (let n = 0; n < 40_000; n++) {
        pulled = n;
        yield Buffer.from(record(n));
      }
    }
    const options = { entity: 'auto', map: {}, preset: null } as const;
    const limits = { maxUploadBytes: 1e12, maxInflatedBytes: 1e12, minBytesPerSecond: 0, stallMs: 20_000 };
    const { signal } = new AbortController();
    const store = createFileSystemStore(folder);
    const found = await inspectFile(store, source(), {}, options, limits, signal, lookBy(null));
    expect(found).toMatchObject({ whole_file: false, rejects: { count: 0 } });
    expect(found.records).toBeGreaterThan(INSPECTED_BYTES / 1_100);
    expect(found.records).toBeLessThanOrEqual(INSPECTED_RECORDS);
    expect(pulled).toBeLessThan(20_000);
    const left = await readdir(folder, { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
  });
});
