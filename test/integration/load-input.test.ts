import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/base/errors.ts';
import type { RejectCode } from '../../src/domain/reject.ts';
import type { Load } from '../../src/load/read-store.ts';
import {
  type FileOptions,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
} from '../support/files/load-file.ts';
import type { StoredProfile } from '../support/oracles/serial-oracle.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

const KiB = 1024;
const MiB = 1024 * KiB;

interface Outcome {
  readonly environmentId: number;
  readonly jobId: string;
  readonly load: Load;
  readonly users: Readonly<Record<string, StoredProfile>>;
  readonly companies: Readonly<Record<string, StoredProfile>>;
}

async function loadFile(content: string | Uint8Array, options: FileOptions = {}): Promise<Outcome> {
  const environmentId = await newEnvironment(t.system);
  const manual = await startManually(t.system, environmentId, content, options);
  const load = await runManually(manual);
  expect(load.failure).toBeNull();
  const { tally } = load;
  const ends = tally.inserted + tally.updated + tally.unchanged + tally.superseded + tally.rejected;
  expect(tally.read, 'every record has an end').toBe(ends);
  return { environmentId, jobId: manual.jobId, load, ...(await readProfiles(t.system, environmentId)) };
}

interface Bad {
  readonly raw: string | Buffer;
  readonly code: RejectCode;
  readonly column: string | null;
  readonly message: RegExp;
}

interface Good {
  readonly raw: string;
  readonly id: string;
}

function bad(raw: string | Buffer, code: RejectCode, column: string | null, message: RegExp): Bad {
  return { raw, code, column, message };
}

type Item = Bad | Good;

const isBad = (item: Item): item is Bad => 'code' in item;

/** Loads each bad record between two good records. Checks every reject. */
async function expectRejects(
  header: string,
  bads: readonly Bad[],
  good: (id: string) => string,
  options: FileOptions,
  terminator = '\n',
): Promise<void> {
  const around = (index: number): Good => ({ raw: good(`good${index}`), id: `good${index}` });
  const items: Item[] = [around(0), ...bads.flatMap((each, index): Item[] => [each, around(index + 1)])];
  const parts = [...(header === '' ? [] : [header]), ...items.map(({ raw }) => raw)];
  const content = Buffer.concat(
    parts.flatMap((part) => [Buffer.from(part as string), Buffer.from(terminator)]),
  );
  const expected: object[] = [];
  let offset = header === '' ? 0 : header.length + terminator.length;
  let line = header === '' ? 1 : 2;
  for (const [index, item] of items.entries()) {
    const raw = Buffer.from(item.raw as string);
    if (isBad(item)) {
      expected.push({
        row: index + 1,
        line,
        byteOffset: offset,
        code: item.code,
        column: item.column,
        raw: raw.toString('latin1'),
      });
    }
    offset += raw.length + terminator.length;
    line += 1 + (raw.toString('latin1').match(/\r\n|\r|\n/g)?.length ?? 0);
  }
  for (const chunkBytes of [500, 10 * MiB]) {
    const { load, users, jobId } = await loadFile(content, {
      source: { encoding: 'utf-8' },
      ...options,
      chunkBytes,
    });
    const rejects = await readRejects(t.system, jobId);
    expect(
      rejects.map(({ row, line: at, byteOffset, code, column, raw }) => ({
        row,
        line: at,
        byteOffset,
        code,
        column,
        raw: Buffer.from(raw).toString('latin1'),
      })),
    ).toEqual(expected);
    for (const [index, { message }] of rejects.entries()) {
      expect(message).toMatch(bads[index]?.message ?? /never/);
      expect(message).not.toMatch(/\p{Cc}|Ã|undefined|\[object/u);
      expect(message.length).toBeLessThan(300);
    }
    const goods = items.filter((item): item is Good => !isBad(item)).map(({ id }) => id);
    expect(Object.keys(users).sort()).toEqual(goods.sort());
    expect(load.tally).toMatchObject({ read: items.length, inserted: goods.length, rejected: bads.length });
  }
}

const longId = `${'é'.repeat(128)}x`;
const many = (count: number) => Array.from({ length: count }, (_, n) => `"p${n}":1`).join(',');
const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

// proves: bad-record-alone
describe('rejects of a CSV', () => {
  const csv: Record<string, Bad[]> = {
    'wrong number of fields': [
      bad('u1,a', 'wrong_field_count', null, /3 columns, this record 2/),
      bad('u1', 'wrong_field_count', null, /3 columns, this record 1/),
      bad('u1,a,b,c', 'wrong_field_count', null, /3 columns, this record 4/),
      bad('"u1","a"', 'wrong_field_count', null, /3 columns, this record 2/),
      bad('"u1","a\nb"', 'wrong_field_count', null, /3 columns, this record 2/),
    ],
    ids: [
      bad(',a,', 'missing_id', 'user_id', /user_id is empty/),
      bad('"",a,', 'missing_id', 'user_id', /user_id is empty/),
      bad('  ,a,', 'missing_id', 'user_id', /user_id is empty/),
      bad('" \t\n",a,', 'missing_id', 'user_id', /user_id is empty/),
      bad('\u00a0\u2003,a,', 'missing_id', 'user_id', /user_id is empty/),
      bad(`${longId},a,`, 'id_too_long', 'user_id', /257 bytes; at most 256/),
      bad(`"${longId}","a\nb",`, 'id_too_long', 'user_id', /257 bytes; at most 256/),
      bad(`u1,a,${longId}`, 'id_too_long', 'company_id', /257 bytes; at most 256/),
    ],
    'U+0000': [
      bad('u1,a\0b,', 'nul_character', 'name', /U\+0000/),
      bad('u\x001,a,', 'nul_character', 'user_id', /U\+0000/),
      bad('u1,a,"c\0"', 'nul_character', 'company_id', /U\+0000/),
    ],
    'bytes that are no UTF-8': [
      bad(Buffer.from('u1,\xff,', 'latin1'), 'invalid_utf8', 'name', /Byte 4 is not UTF-8: 0xFF,/),
      bad(Buffer.from('\xc3,a,', 'latin1'), 'invalid_utf8', 'user_id', /Byte 1 is not UTF-8: 0xC3$/),
      bad(Buffer.from('u1,caf\xe9,', 'latin1'), 'invalid_utf8', 'name', /Byte 7 is not UTF-8: 0xE9$/),
      bad(Buffer.from('u1,\xed\xa0\x80,', 'latin1'), 'invalid_utf8', 'name', /Byte 4 is not UTF-8: 0xED$/),
      bad(Buffer.from('u1,"\xc0\x80",', 'latin1'), 'invalid_utf8', 'name', /Byte 5 is not UTF-8/),
    ],
    quotes: [
      bad('u1,a"b,', 'invalid_quote', null, /quote/),
      bad('"u1"x,a,', 'invalid_quote', null, /quote/),
      bad('u1,"a"b",', 'invalid_quote', null, /quote/),
    ],
  };

  test('a bad record of a CSV is named exactly, and costs no other record', async () => {
    const all = Object.values(csv).flat();
    await expectRejects('user_id,name,company_id', all, (id) => `${id},x,c`, {});
  });

  test('a stray opening quote costs its line, not the rest of the file', async () => {
    const bads = [bad('u1,"oops,', 'unclosed_quote', null, /never closed/)];
    for (const terminator of ['\n', '\r\n', '\r']) {
      await expectRejects('user_id,name,company_id', bads, (id) => `${id},x,c`, {}, terminator);
    }
  });

  test('a bad cell of metadata is named exactly, and costs no other record', async () => {
    const cell = (json: string) => `u1,"${json.replaceAll('"', '""')}"`;
    await expectRejects(
      'user_id,metadata',
      [
        bad('u1,{', 'invalid_json', 'metadata', /not valid JSON/),
        bad('u1,größe', 'invalid_json', 'metadata', /not valid JSON/),
        bad('u1,[]', 'invalid_type', 'metadata', /must be a JSON object/),
        bad('u1,null', 'invalid_type', 'metadata', /must be a JSON object/),
        bad(cell('{"__proto__":1}'), 'forbidden_property', 'metadata.__proto__', /__proto__/),
        bad(cell('{"a":{"constructor":1}}'), 'forbidden_property', 'metadata.a.constructor', /constructor/),
        bad(cell('{"a":"\\u0000"}'), 'nul_character', 'metadata.a', /U\+0000/),
        bad(cell('{"a":"\\ud800"}'), 'lone_surrogate', 'metadata.a', /surrogate/),
        bad(cell('{"a":1e999999}'), 'number_out_of_range', 'metadata.a', /beyond/),
        bad(cell(`{"a":${deep(32)}}`), 'too_deep', 'metadata.a', /32 levels/),
        bad(cell(`{"a":${deep(10_000)}}`), 'too_deep', 'metadata', /32 levels/),
      ],
      (id) => `${id},${'{}'}`,
      {},
    );
  });

  test('values up to 64 KiB are kept, one byte more is refused, and the message reports where raw is cut', async () => {
    const fits = `${'x'.repeat(64 * KiB - 2)}é`;
    const content = `user_id,name,b\nfits,${fits},\nlarge,${fits}y,\nquoted,"${fits}y",\nlast,x,y\n`;
    const { users, jobId } = await loadFile(content);
    expect(Object.keys(users)).toEqual(['fits', 'last']);
    expect(users['fits']?.metadata['name']).toBe(fits);
    const rejects = await readRejects(t.system, jobId);
    expect(rejects.map(({ row, line, code, column }) => [row, line, code, column])).toEqual([
      [2, 3, 'value_too_large', 'name'],
      [3, 4, 'value_too_large', 'name'],
    ]);
    for (const { raw, byteOffset, message } of rejects) {
      expect(raw).toHaveLength(64 * KiB);
      expect(
        Buffer.from(content)
          .subarray(byteOffset, byteOffset + raw.length)
          .equals(raw),
      ).toBe(true);
      expect(message).toMatch(/65537 bytes; at most 65536.*cut at 65536/);
    }
  });

  test.each([
    ['in a cell', (size: number) => `big,${'x'.repeat(size)}`],
    ['in a quoted cell', (size: number) => `big,"${'x'.repeat(size)}"`],
  ])('a record of more than 1 MiB is refused with its first 64 KiB: %s', async (_, record) => {
    for (const size of [MiB, 3 * MiB]) {
      const content = `user_id,name\na,1\n${record(size)}\nb,2\n`;
      const { users, jobId } = await loadFile(content, { chunkBytes: 64 * KiB });
      expect(Object.keys(users)).toEqual(['a', 'b']);
      const rejects = await readRejects(t.system, jobId);
      expect(rejects).toHaveLength(1);
      expect(rejects[0]).toMatchObject({ row: 2, line: 3, byteOffset: 17, code: 'record_too_large' });
      expect(rejects[0]?.raw).toHaveLength(64 * KiB);
    }
  });
});

// proves: bad-record-alone
describe('rejects of an NDJSON', () => {
  const user = (rest: string) => `{"user_id":"u1",${rest}}`;
  const ndjson: Record<string, Bad[]> = {
    'text that is no JSON': [
      bad('{"user_id":"u1"', 'invalid_json', null, /not valid JSON/),
      bad('größe', 'invalid_json', null, /not valid JSON/),
      bad('{"user_id":"u1"}{}', 'invalid_json', null, /not valid JSON/),
      bad('{"user_id":"u\t1"}', 'invalid_json', null, /not valid JSON/),
      bad('{"user_id":"u\x001"}', 'invalid_json', null, /not valid JSON/),
      bad("{'user_id':'u1'}", 'invalid_json', null, /not valid JSON/),
      bad('{"user_id":"u1","a":NaN}', 'invalid_json', null, /not valid JSON/),
      bad('{"user_id":"u1","a":01}', 'invalid_json', null, /not valid JSON/),
    ],
    'JSON that is no object': [
      bad('7', 'not_an_object', null, /must be a JSON object/),
      bad('null', 'not_an_object', null, /must be a JSON object/),
      bad('"u1"', 'not_an_object', null, /must be a JSON object/),
      bad('[{"user_id":"u1"}]', 'not_an_object', null, /must be a JSON object/),
    ],
    ids: [
      bad('{"a":1}', 'missing_id', null, /neither user_id nor company_id/),
      bad('{}', 'missing_id', null, /neither/),
      bad('{"user_id":null}', 'missing_id', 'user_id', /user_id is missing/),
      bad('{"user_id":""}', 'missing_id', 'user_id', /user_id is empty/),
      bad('{"user_id":"  "}', 'missing_id', 'user_id', /user_id is empty/),
      bad('{"user_id":"\\t\\n"}', 'missing_id', 'user_id', /user_id is empty/),
      bad('{"user_id":"\u00a0"}', 'missing_id', 'user_id', /user_id is empty/),
      bad('{"company_id":" \\u2003"}', 'missing_id', 'company_id', /company_id is empty/),
      bad('{"event_type":"track","user_id":" ","event_name":"e"}', 'missing_id', 'user_id', /empty/),
      bad(
        '{"event_type":"track","user_id":"u","event_name":" "}',
        'missing_event_name',
        'event_name',
        /missing/,
      ),
      bad('{"user_id":true}', 'invalid_id', 'user_id', /string or a whole number/),
      bad('{"user_id":12.5}', 'invalid_id', 'user_id', /string or a whole number/),
      bad('{"user_id":1e3}', 'invalid_id', 'user_id', /string or a whole number/),
      bad(user('"company_id":0.5'), 'invalid_id', 'company_id', /string or a whole number/),
      bad('{"user_id":["u1"]}', 'invalid_id', 'user_id', /string or a whole number/),
      bad(`{"user_id":"${longId}"}`, 'id_too_long', 'user_id', /257 bytes/),
      bad('{"user_id":"\\u0000"}', 'nul_character', 'user_id', /U\+0000/),
      bad('{"user_id":"\\udc00"}', 'lone_surrogate', 'user_id', /surrogate/),
      bad(user('"company_id":""'), 'missing_id', 'company_id', /company_id is empty/),
      bad(user('"company_id":{}'), 'invalid_id', 'company_id', /string or a whole number/),
      bad(user('"company":{"id":0.5}'), 'invalid_id', 'company.id', /string or a whole number/),
      bad(user('"company":{"name":"A"}'), 'missing_id', 'company.company_id', /missing/),
      bad(user(`"company":{"id":"${longId}"}`), 'id_too_long', 'company.id', /257 bytes/),
    ],
    'wrong types': [
      bad(user('"metadata":[1]'), 'invalid_type', 'metadata', /metadata must be an object/),
      bad(user('"metadata":"x"'), 'invalid_type', 'metadata', /metadata must be an object/),
      bad(user('"company":"acme"'), 'invalid_type', 'company', /company must be an object/),
      bad(user('"company":{"id":"c","metadata":1}'), 'invalid_type', 'company.metadata', /must be an object/),
    ],
    'U+0000 and half surrogate pairs': [
      bad(user('"a":"\\u0000"'), 'nul_character', 'a', /U\+0000/),
      bad(user('"a":[{"b":"x\\u0000y"}]'), 'nul_character', 'a.b', /U\+0000/),
      bad(user('"a\\u0000":1'), 'nul_character', 'a␀', /U\+0000/),
      bad(user('"metadata":{"a":{"b\\u0000":1}}'), 'nul_character', 'metadata.a.b␀', /U\+0000/),
      bad(user('"a":"\\ud800"'), 'lone_surrogate', 'a', /surrogate/),
      bad(user('"a":"\\udc00\\ud800"'), 'lone_surrogate', 'a', /surrogate/),
      bad(user('"\\ud800":1'), 'lone_surrogate', '\ufffd', /surrogate/),
      bad(user('"company":{"id":"c","x":"\\ud800"}'), 'lone_surrogate', 'company.x', /surrogate/),
    ],
    'bytes that are no UTF-8': [
      bad(Buffer.from('{"user_id":"u1","a":"\xff"}', 'latin1'), 'invalid_utf8', null, /UTF-8/),
      bad(Buffer.from('{"user_id":"u1","a":"\xed\xa0\x80"}', 'latin1'), 'invalid_utf8', null, /UTF-8/),
    ],
    'property names': [
      bad(user(`"${'é'.repeat(256)}":1`), 'invalid_property_name', `${'é'.repeat(40)}…`, /this one 256/),
      bad(user('"__proto__":1'), 'forbidden_property', '__proto__', /__proto__ cannot/),
      bad(user('"constructor":{"x":1}'), 'forbidden_property', 'constructor', /constructor cannot/),
      bad(user('"metadata":{"prototype":1}'), 'forbidden_property', 'metadata.prototype', /prototype cannot/),
      bad(user('"a":[{"b":{"__proto__":{"x":1}}}]'), 'forbidden_property', 'a.b.__proto__', /__proto__/),
      bad(user('"metadata.__proto__":1'), 'forbidden_property', '__proto__', /__proto__/),
      bad(
        user('"company":{"id":"c","constructor":1}'),
        'forbidden_property',
        'company.constructor',
        /cannot/,
      ),
    ],
    depth: [
      bad(user(`"a":${deep(32)}`), 'too_deep', 'a', /deeper than 32 levels/),
      bad(
        user(`"metadata":{"a":${'{"x":'.repeat(100)}1${'}'.repeat(100)}}`),
        'too_deep',
        'metadata.a.x.x',
        /32/,
      ),
      bad(deep(100), 'not_an_object', null, /must be a JSON object/),
      bad('['.repeat(100), 'invalid_json', null, /not valid JSON/),
      // The next records are so deep that they are refused before they are parsed, because parsing
      // them would be slow. Their rejects therefore do not name the property.
      bad(user(`"a":${deep(10_000)}`), 'too_deep', null, /deeper than 32 levels/),
      bad(user(`"a":${'{"x":'.repeat(10_000)}1${'}'.repeat(10_000)}`), 'too_deep', null, /32/),
      bad('['.repeat(10_000), 'too_deep', null, /32/),
    ],
    numbers: [
      bad(user('"a":1e999999'), 'number_out_of_range', 'a', /beyond/),
      bad(user('"a":[-1E-999999]'), 'number_out_of_range', 'a', /beyond/),
      bad(user('"a":1e1001'), 'number_out_of_range', 'a', /beyond/),
      bad(user(`"a":${'1'.repeat(60_000)}`), 'number_out_of_range', 'a', /beyond/),
    ],
  };

  test.each(['\n', '\r\n'])(
    'a bad record of an NDJSON is named exactly, and costs no other record, with lines ending in %j',
    async (terminator) => {
      const all = Object.values(ndjson).flat();
      const options = { filename: 'users.ndjson', format: 'ndjson' } as const;
      await expectRejects('', all, (id) => `{"user_id":"${id}"}`, options, terminator);
    },
  );

  test('a value over 64 KiB and a record over 1 MiB of an NDJSON are refused alone', async () => {
    const value = 'x'.repeat(64 * KiB);
    const lines = [
      `{"user_id":"fits","a":"${value}"}`,
      `{"user_id":"u1","a":"${value}y"}`,
      `{"user_id":"u1","a":{"b":["${value}"]}}`,
      `{"user_id":"u1","metadata":{"größe":"${value}y"}}`,
      `{"user_id":"u1","a":"${'x'.repeat(MiB)}"}`,
      '{"user_id":"last"}',
    ];
    for (const chunkBytes of [1, 4 * MiB]) {
      const { users, jobId } = await loadFile(`${lines.join('\n')}\n`, { chunkBytes });
      expect(Object.keys(users)).toEqual(['fits', 'last']);
      const rejects = await readRejects(t.system, jobId);
      expect(rejects.map(({ row, line, code, column }) => [row, line, code, column])).toEqual([
        [2, 2, 'value_too_large', 'a'],
        [3, 3, 'value_too_large', 'a'],
        [4, 4, 'value_too_large', 'metadata.größe'],
        [5, 5, 'record_too_large', null],
      ]);
    }
  });
});

describe('unusable headers', () => {
  test.each([
    ['user_id,__proto__\nu,1\n', 'invalid_field', /__proto__/],
    [`user_id,${'x'.repeat(256)}\nu,1\n`, 'invalid_field', /255 characters/],
    ['user_id,,a\nu,1\nv,2\nw,3\n', 'invalid_field', /without a name/],
    ['user_id,a,metadata.a\nu,1,2\n', 'invalid_field', /both mean a/],
    ['id,name\nu,1\n', 'unrecognised_columns', /columns seen: id, name/],
    ['user_id,a,a\nu,1,2\n', 'invalid_field', /more than once/],
  ])('the unusable header of %j is refused before there is a job', async (content, code, message) => {
    const environmentId = await newEnvironment(t.system);
    const start = startManually(t.system, environmentId, content);
    const error = await start.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InputError);
    expect((error as InputError).problems[0].code).toBe(code);
    expect((error as InputError).message).toMatch(message);
    const jobs = await t.system.db
      .selectFrom('loads')
      .select('job_id')
      .where('environment_id', '=', environmentId)
      .execute();
    expect(jobs).toEqual([]);
  });
});

describe('unusual values', () => {
  const odd = [
    ...'\\N \\. \\ \\\\n a\'b"c\\d 😀 a\u2028 \u0001 é\u0301'.split(' '),
    'a\tb',
    '$1 {} %s',
    ' x ',
  ];

  test('odd texts of a CSV are kept as id, as company and as value, plain or quoted', async () => {
    const cell = (text: string, quote: boolean) =>
      quote || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const all = [...odd, 'two\nlines', 'two\r\nlines', 'cr\rhere', ',', '"'];
    for (const quote of [false, true]) {
      const lines = all.map((text) => {
        const quoted = cell(text, quote || text === ',');
        return `${quoted},${quoted},${quoted}`;
      });
      for (const chunkBytes of [64, MiB]) {
        const { users, companies } = await loadFile(`user_id,company_id,v\n${lines.join('\n')}\n`, {
          chunkBytes,
        });
        const expected = all.map((text) => [text, { metadata: { v: text }, company: text }]);
        expect(users).toEqual(Object.fromEntries(expected));
        expect(Object.keys(companies).sort()).toEqual([...all].sort());
      }
    }
  });

  test('odd texts of an NDJSON are kept as id, as company, as value and as property name', async () => {
    const all = [...odd, 'two\nlines', '\rx', 'NULL'];
    for (const escaped of [false, true]) {
      const write = (value: unknown) => {
        const json = JSON.stringify(value);
        return escaped
          ? json.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : json;
      };
      const lines = all.map((text) =>
        write({ user_id: text, company_id: text, metadata: { [text]: [text, { [text]: text }] } }),
      );
      const { users, companies } = await loadFile(`${lines.join('\n')}\n`, { chunkBytes: 200 });
      const expected = all.map((text) => [
        text,
        { metadata: { [text]: [text, { [text]: text }] }, company: text },
      ]);
      expect(users).toEqual(Object.fromEntries(expected));
      expect(Object.keys(companies).sort()).toEqual([...all].sort());
    }
  });

  test('numbers of a file keep every digit', async () => {
    const numbers: Record<string, string> = {
      '9007199254740993': '9007199254740993',
      '-9223372036854775809': '-9223372036854775809',
      '123456789012345678901234567890': '123456789012345678901234567890',
      '0.1234567890123456789': '0.1234567890123456789',
      '-0': '0',
      '1E5': '100000',
      '1.5e-3': '0.0015',
      '1e400': `1${'0'.repeat(400)}`,
      '0.1': '0.1',
      '1e21': `1${'0'.repeat(21)}`,
      '0.000000123': '0.000000123',
    };
    for (const place of ['beside', 'metadata', 'nested', 'csv']) {
      const values = Object.keys(numbers)
        .map((text, index) => `"n${index}":${text}`)
        .join(',');
      const nested = `"a":{"b":[{${values}}]}`;
      const lines: Record<string, string> = {
        beside: `{"user_id":"u",${values}}\n`,
        metadata: `{"user_id":"u","metadata":{${values}}}\n`,
        nested: `{"user_id":"u","metadata":{${nested},"t":"\\u00e9"}}\n`,
        csv: `user_id,metadata\nu,"{${values.replaceAll('"', '""')}}"\n`,
      };
      const { environmentId } = await loadFile(lines[place] ?? '');
      const path = place === 'nested' ? '{a,b,0}' : '{}';
      for (const [index, exact] of Object.values(numbers).entries()) {
        const { rows } = await sql<{ text: string; type: string }>`
          select metadata #> ${path}::text[] ->> ${`n${index}`} as text,
            jsonb_typeof(metadata #> ${path}::text[] -> ${`n${index}`}) as type
          from users where environment_id = ${environmentId}`.execute(t.system.db);
        expect([place, rows[0]]).toEqual([place, { text: exact, type: 'number' }]);
      }
    }
  });

  test('of equal keys in an object the last counts', async () => {
    const { users } = await loadFile(
      '{"user_id":"x","user_id":"u","a":1,"a":2,"b":{"c":1,"c":2},"metadata":{"d":1,"d":null,"e":null,"e":1}}\n' +
        '{"user_id":"v","n":1e2,"n":1e1,"b":{"c":1e1,"c":2e1}}\n',
    );
    expect(users['u']?.metadata).toEqual({ a: 2, b: { c: 2 }, e: 1 });
    expect(users['v']?.metadata).toEqual({ n: 10, b: { c: 20 } });
    expect(users['x']).toBeUndefined();
  });

  test('2 500 columns, and 10 000 keys of one record, are stored', async () => {
    const names = Array.from({ length: 2_500 }, (_, index) => `column ${index}`);
    const { users } = await loadFile(
      `user_id,${names.join(',')}\nu,${names.map((_, index) => index).join(',')}\nshort,1\n`,
    );
    expect(Object.keys(users)).toEqual(['u']);
    expect(Object.keys(users['u']?.metadata ?? {})).toHaveLength(2_500);
    expect(users['u']?.metadata['column 2499']).toBe('2499');
    const keys = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, index]));
    const wide = await loadFile(`${JSON.stringify({ user_id: 'u', metadata: keys })}\n{"user_id":"v"}\n`);
    expect(wide.users['u']?.metadata).toEqual(keys);
    expect(Object.keys(wide.users)).toEqual(['u', 'v']);
  });

  test('ids of 256 bytes, names of 127 emoji and 31 levels within a property are stored', async () => {
    const id = 'é'.repeat(128);
    const name = '😀'.repeat(127);
    const line = `{"user_id":"${id}","company_id":"${id}","metadata":{"${name}":${deep(31)}}}\n`;
    const { users, companies } = await loadFile(line);
    expect(users[id]?.metadata).toEqual({ [name]: JSON.parse(deep(31)) });
    expect(Object.keys(companies)).toEqual([id]);
    const csv = await loadFile(`user_id,company_id,"${name}"\n"${id}","${id}",x\n`);
    expect(csv.users[id]).toEqual({ metadata: { [name]: 'x' }, company: id });
  });
});

describe('encodings and line ends', () => {
  const utf16be = (content: string) => Buffer.from(content, 'utf16le').swap16();

  // proves: encoding-exact
  test.each(['utf-16le', 'utf-16be'])(
    'half a character in %s refuses its record alone, and is never stored as another',
    async (encoding) => {
      const inOrder = (content: string) =>
        encoding === 'utf-16be' ? utf16be(content) : Buffer.from(content, 'utf16le');
      const halves = ['\ud800', '\udc00', 'a\ud83d', '\ud83d\ud83d\ude00'];
      for (const half of halves) {
        const csv = inOrder(`user_id,a\nu1,x\nu2,${half}\nu3,y\n`);
        const ndjson = inOrder(`{"user_id":"u1"}\n{"user_id":"u2","a":"${half}"}\n{"user_id":"u3"}\n`);
        const array = inOrder(`[{"user_id":"u1"},{"user_id":"u2","a":"${half}"},{"user_id":"u3"}]`);
        for (const [content, filename] of [
          [csv, 'u.csv'],
          [ndjson, 'u.ndjson'],
          [array, 'u.json'],
        ] as const) {
          const { users, jobId } = await loadFile(content, { filename, source: { encoding } });
          expect(Object.keys(users)).toEqual(['u1', 'u3']);
          const [reject, ...others] = await readRejects(t.system, jobId);
          expect(reject).toMatchObject({ row: 2, code: 'invalid_utf8' });
          expect(reject?.message).toContain("not a character of the file's encoding");
          expect(others).toEqual([]);
        }
      }
      const odd = Buffer.concat([inOrder('user_id,a\nu1,x\nu2,y'), Buffer.of(0x7a)]);
      const { users, jobId } = await loadFile(odd, { source: { encoding } });
      expect(Object.keys(users)).toEqual(['u1']);
      expect(await readRejects(t.system, jobId)).toMatchObject([{ row: 2, code: 'invalid_utf8' }]);
    },
  );

  test('a file that is UTF-8 for its first mebibyte stays UTF-8, and a later bad record is refused alone', async () => {
    const head = `user_id,a\n${`u1,${'é'.repeat(500)}\n`.repeat(1_100)}`;
    const content = Buffer.concat([Buffer.from(head), Buffer.from('u2,caf\xe9\nu3,x\n', 'latin1')]);
    const { users, jobId } = await loadFile(content, { chunkBytes: 10 * MiB });
    expect(Object.keys(users)).toEqual(['u1', 'u3']);
    expect(await readRejects(t.system, jobId)).toMatchObject([
      { column: 'a', message: 'Byte 7 is not UTF-8: 0xE9' },
    ]);
  });

  test('rows and lines are counted right with mixed line ends, blank lines and an open last line', async () => {
    const content = 'user_id,a\r\nu1,1\ru2,2\n\n\r\nbad\r\n\ru3,"x\r\ny"\rbad again';
    for (const chunkBytes of [1, 5, 12, MiB]) {
      const { users, jobId } = await loadFile(content, { chunkBytes });
      expect(Object.keys(users)).toEqual(['u1', 'u2', 'u3']);
      expect(users['u3']?.metadata['a']).toBe('x\r\ny');
      const rejects = await readRejects(t.system, jobId);
      expect(rejects.map(({ row, line, byteOffset }) => ({ row, line, byteOffset }))).toEqual([
        { row: 3, line: 6, byteOffset: content.indexOf('bad') },
        { row: 5, line: 10, byteOffset: content.indexOf('bad again') },
      ]);
      expect(rejects.map(({ raw }) => Buffer.from(raw).toString())).toEqual(['bad', 'bad again']);
    }
  });

  test('quoted line breaks and quotes survive chunk edges anywhere', async () => {
    const content =
      'user_id,a\n"u""1","x\n""y"\nu2,"\n\n"\n"u\n3",""""\nu4,"no end\nu5,5\n"u6","\r\n"\r\nu8,"8"\nu7,a"b\nu1,"z"';
    const whole = await loadFile(content);
    const shown = async ({ jobId, users, load }: Outcome) => ({
      users,
      tally: { ...load.tally, updated: 0, superseded: load.tally.superseded + load.tally.updated },
      rejects: await readRejects(t.system, jobId),
    });
    const expected = await shown(whole);
    expect(Object.keys(whole.users)).toEqual(['u\n3', 'u"1', 'u1', 'u2', 'u8']);
    expect(expected.rejects.map(({ code, line }) => [code, line])).toEqual([
      ['invalid_quote', 9],
      ['invalid_quote', 14],
    ]);
    for (let chunkBytes = 16; chunkBytes <= content.length; chunkBytes += 7) {
      expect(await shown(await loadFile(content, { chunkBytes })), `chunks of ${chunkBytes}`).toEqual(
        expected,
      );
    }
  });
});

test('a record with more properties than allowed columns is refused, and leaves no name', async () => {
  const names = `{${many(10_001)}}`;
  const lines = [
    `{"user_id":"a",${many(10_001)}}`,
    `{"user_id":"b","metadata":${names}}`,
    '{"user_id":"c","x":1}',
  ];
  const { load, jobId, environmentId } = await loadFile(`${lines.join('\n')}\n`);
  expect(load.tally).toMatchObject({ read: 3, inserted: 1, rejected: 2 });
  const rejects = await readRejects(t.system, jobId);
  expect(rejects.map(({ code, column }) => [code, column])).toEqual([
    ['record_too_large', null],
    ['record_too_large', 'metadata'],
  ]);
  const { rows } = await sql`
    select key from properties where environment_id = ${environmentId} and not is_auto_property`.execute(
    t.system.db,
  );
  expect(rows).toEqual([{ key: 'x' }]);
});

describe('a record that only the database refuses', () => {
  /** A number that has more decimal places than the type `numeric` allows. */
  const poison = `0.${'1'.repeat(17_000)}`;
  const line = (id: string, rest: string) => `{"user_id":"${id}",${rest}}`;

  // proves: bad-record-alone
  test('a record that only the database refuses is refused alone, and its neighbours and others of its key are stored', async () => {
    const lines = [
      ...Array.from({ length: 50 }, (_, index) => line(`a${index}`, `"n":${index}`)),
      line('p', '"a":1,"company_id":"c1"'),
      line('p', `"b":${poison}`),
      line('p', '"c":3'),
      line('q', `"b":${poison}`),
      line('last', '"n":1'),
      '{"user_id":"broken"',
    ];
    for (const chunkBytes of [300, MiB]) {
      const { users, companies, load, jobId } = await loadFile(`${lines.join('\n')}\n`, { chunkBytes });
      expect(Object.keys(users)).toHaveLength(52);
      expect(users['p']).toEqual({ metadata: { a: 1, c: 3 }, company: 'c1' });
      expect(Object.keys(companies)).toEqual(['c1']);
      expect(load.tally).toMatchObject({ read: 56, inserted: 52, superseded: 1, rejected: 3 });
      const rejects = await readRejects(t.system, jobId);
      expect(rejects.map(({ row, line: at, code }) => [row, at, code])).toEqual([
        [52, 52, 'refused_by_database'],
        [54, 54, 'refused_by_database'],
        [56, 56, 'invalid_json'],
      ]);
      expect(rejects[0]?.message).toMatch(/The database refuses the record: .*numeric/);
      expect(Buffer.from(rejects[0]?.raw ?? []).toString()).toBe(lines[51]);
    }
  });

  test('a user is refused as a whole for the fault of its company, which keeps the values of others', async () => {
    const lines = [
      line('u1', '"a":1,"company":{"id":"c","x":1}'),
      line('u2', `"a":1,"company":{"id":"c","y":${poison}}`),
      line('u3', '"a":1,"company":{"id":"c","z":1}'),
    ];
    for (const chunkBytes of [1, MiB]) {
      const { users, companies, load } = await loadFile(`${lines.join('\n')}\n`, { chunkBytes });
      expect(Object.keys(users)).toEqual(['u1', 'u3']);
      expect(companies).toEqual({ c: { metadata: { x: 1, z: 1 } } });
      expect(load.tally).toMatchObject({ read: 3, inserted: 2, rejected: 1 });
    }
  });

  test('a refused user writes nothing of its company', async () => {
    const { users, companies } = await loadFile(
      `${line('u1', `"a":${poison},"company":{"id":"c","x":1}`)}\n${line('u2', '"a":1')}\n`,
    );
    expect(Object.keys(users)).toEqual(['u2']);
    expect(companies).toEqual({});
  });

  test('a record that only the database refuses does not stop the replay of its chunk', async () => {
    const environmentId = await newEnvironment(t.system);
    const pairs = [line('k', '"x":1'), line('p', `"b":${poison}`), line('k', '"x":2'), line('q', '"x":2')];
    // The refused record is longer than a chunk, so a chunk ends after this record.
    const manual = await startManually(t.system, environmentId, `${pairs.join('\n')}\n`, { chunkBytes: 100 });
    expect(manual.chunkCount).toBe(2);
    const load = await runManually(manual, [1, 0]);
    expect(load.failure).toBeNull();
    const { users } = await readProfiles(t.system, environmentId);
    expect(users['k']?.metadata).toEqual({ x: 2 });
    expect(Object.keys(users)).toEqual(['k', 'q']);
  });

  test('a record that only the database refuses is counted in a dry run', async () => {
    const content = `${line('u1', '"a":1')}\n${line('p', `"b":${poison}`)}\n`;
    const dry = await loadFile(content, { dryRun: true });
    expect(dry.load.tally).toMatchObject({ read: 2, inserted: 1, rejected: 1 });
    expect(dry.users).toEqual({});
  });

  test('of records that are refused only together, the last is refused', async () => {
    await sql`alter table users add constraint not_both check (not metadata ?& array['left', 'right'])`.execute(
      t.system.db,
    );
    const lines = [
      line('a', '"left":1'),
      line('b', '"left":1'),
      line('c', '"n":1'),
      line('b', '"right":1'),
      line('d', '"n":1'),
    ];
    const { users, jobId } = await loadFile(`${lines.join('\n')}\n`);
    await sql`alter table users drop constraint not_both`.execute(t.system.db);
    expect(Object.keys(users)).toEqual(['a', 'b', 'c', 'd']);
    expect(users['b']?.metadata).toEqual({ left: 1 });
    const rejects = await readRejects(t.system, jobId);
    expect(rejects.map(({ row, code }) => [row, code])).toEqual([[4, 'refused_by_database']]);
  });
});
