import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import { uuidv7 } from '../../../src/base/uuid.ts';
import type { causePage, RejectPage as RejectsPage } from '../../../src/load/rejects/api.ts';
import { hazardousText } from '../../support/files/formulas.ts';
import { runs } from '../../support/runs.ts';
import { openServer, refusalOf } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

const csvReasons =
  'sluice_job,sluice_row,sluice_line,sluice_error_code,sluice_message,sluice_column,sluice_raw,sluice_raw_base64';

async function load(body: string | Buffer, type = 'text/csv', query = ''): Promise<string> {
  const answer = await server.json<{ job_id: string }>(`/v1/imports${query}`, {
    method: 'POST',
    body: new Uint8Array(Buffer.from(body)),
    headers: { 'content-type': type },
  });
  expect(answer.status).toBe(200);
  await t.ended(answer.body.job_id);
  return answer.body.job_id;
}

async function download(jobId: string, accept: string): Promise<string> {
  const response = await server.fetch(`/v1/background_jobs/${jobId}/rejects`, { headers: { accept } });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain(accept);
  return response.text();
}

async function page(jobId: string, query = ''): Promise<RejectsPage> {
  const { status, body } = await server.json<RejectsPage>(`/v1/background_jobs/${jobId}/rejects${query}`);
  expect(status).toBe(200);
  return body;
}

const codesOf = async (jobId: string) => (await page(jobId)).data.map((reject) => reject.error_code);
const userOf = (userId: string) =>
  t.system.db.selectFrom('users').select('metadata').where('user_id', '=', userId).executeTakeFirst();

/** A file with every kind of record that does not fit the columns. */
const messy = Buffer.concat([
  Buffer.from('user_id,name,note\n'),
  Buffer.from(',Ada,"says ""hi"", twice"\n'),
  Buffer.from('m2,too,many,cells\n'),
  Buffer.from('m3,few\n'),
  Buffer.from('m4,a"b,stray\n'),
  Buffer.concat([Buffer.from('m6,'), Buffer.from([0xff, 0xfe]), Buffer.from(',bytes\n')]),
  Buffer.from('m7,nul\0,x\n'),
  Buffer.from(`${'m8'.repeat(200)},long id,"two\nlines"\n`),
  // UTF-8 is detected only in files with about 20 or more non-ASCII characters.
  Buffer.from(`good,Grace,${'é'.repeat(20)}\n`),
  // The quoted cell of this record is never closed. The cell could include everything that follows,
  // so this record must be the last.
  Buffer.from('m5,"never closed,x\n'),
]);

describe('rejects as JSON', () => {
  // proves: bad-record-alone
  test('each reject has its place, column, code, message and record', async () => {
    const jobId = await load('user_id,name\nok,x\n,Ada\n');
    expect(await page(jobId)).toEqual({
      data: [
        {
          row: 2,
          line: 3,
          byte_offset: 18,
          column: 'user_id',
          error_code: 'missing_id',
          message: expect.any(String),
          raw: ',Ada',
          raw_base64: null,
          cells: ['', 'Ada'],
        },
      ],
      metadata: {
        cursor: { after: null, before: null },
        limit: 50,
        total_count: 1,
        columns: ['user_id', 'name'],
      },
    });
  });

  // proves: bad-record-alone
  test('a reject that is not UTF-8 is shown as text and as its exact bytes', async () => {
    const { data } = await page(await load(messy));
    const reject = data.find((each) => each.error_code === 'invalid_utf8');
    expect(reject?.raw).toBe('m6,\ufffd\ufffd,bytes');
    expect(reject?.raw_base64).toBe(Buffer.from('m6,\xff\xfe,bytes', 'latin1').toString('base64'));
    expect(data.filter((each) => each.raw_base64 !== null)).toHaveLength(1);
  });
});

type Causes = Static<typeof causePage.schema>;

async function causesOf(jobId: string): Promise<Causes> {
  const { status, body } = await server.json<Causes>(`/v1/background_jobs/${jobId}/rejects?group_by=cause`);
  expect(status).toBe(200);
  return body;
}

describe('rejects by cause', () => {
  const dates = ['01/12/2025', '31/12/2025', 'n/a'].map((time, n) => `track,u${n},opened,${time}\n`);
  const events = `event_type,user_id,event_name,inserted_at\ntrack,u,opened,2025-01-01\n${dates.join('')}`;

  test('the causes of rejects are counted, with samples', async () => {
    const { data, metadata } = await causesOf(await load(events));
    expect(metadata).toEqual({ total_count: 3, causes: 2, other_causes: 0, other_count: 0 });
    expect(data[0]).toEqual({
      id: expect.any(String),
      error_code: 'invalid_date',
      column: 'inserted_at',
      shape: '99/99/9999',
      count: 2,
      first_row: 2,
      samples: [
        { row: 2, line: 3, value: '01/12/2025', raw: 'track,u0,opened,01/12/2025' },
        { row: 3, line: 4, value: '31/12/2025', raw: 'track,u1,opened,31/12/2025' },
      ],
    });
    expect(data[1]).toMatchObject({
      shape: 'n/a',
      count: 1,
    });
  });

  test('the rejects of one cause can be paged and downloaded', async () => {
    const jobId = await load(events);
    const id = (await causesOf(jobId)).data[0]?.id;
    const first = await page(jobId, `?cause=${id}&limit=1`);
    expect([first.metadata.total_count, first.data.map(({ row }) => row)]).toEqual([2, [2]]);
    const second = await page(jobId, `?cause=${id}&limit=1&cursor=${first.metadata.cursor.after}`);
    expect([second.metadata.cursor.after, second.data.map(({ row }) => row)]).toEqual([null, [3]]);
    const path = `/v1/background_jobs/${jobId}/rejects?cause=${id}`;
    const csv = await (await server.fetch(path, { headers: { accept: 'text/csv' } })).text();
    expect(
      csv
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => line.replace(jobId, 'JOB').split(',', 6).join()),
    ).toEqual(['track,u0,opened,01/12/2025,JOB,2', 'track,u1,opened,31/12/2025,JOB,3']);
  });

  // proves: causes-exact
  test('every kind of reject has a cause, and the counts of all causes add up to the rejects of the job', async () => {
    const jobId = await load(messy);
    const { data, metadata } = await causesOf(jobId);
    const { data: rejects } = await page(jobId);
    expect(metadata).toMatchObject({ total_count: rejects.length, causes: data.length });
    expect(data.reduce((sum, { count }) => sum + count, 0)).toBe(rejects.length);
    expect(data.map(({ error_code }) => error_code).sort()).toEqual(
      rejects.map(({ error_code }) => error_code).sort(),
    );
  });

  // proves: causes-exact
  test('the most frequent causes are listed, and the others are counted', async () => {
    const time = (n: number) =>
      ['!', '#', '$', '%', '&', '(', ')'].map((mark, bit) => ((n >> bit) & 1 ? mark : '.')).join('');
    const lines = Array.from({ length: 70 }, (_, n) => `track,u,opened,${time(n)}\n`);
    const jobId = await load(`event_type,user_id,event_name,inserted_at\n${lines.join('')}${lines[69]}`);
    const { data, metadata } = await causesOf(jobId);
    expect(metadata).toEqual({ total_count: 71, causes: 70, other_causes: 20, other_count: 20 });
    expect([data.length, data[0]?.count]).toEqual([50, 2]);
  });

  test.each([
    ['group_by=column', 'invalid_field'],
    ['cause=x', 'invalid_field'],
    ['cause=0000000000000-trim', 'invalid_field'],
    ['cursor=x', 'invalid_cursor'],
    ['limit=501', 'invalid_field'],
  ])('rejects with ?%s are 400 %s', async (query, code) => {
    const jobId = await load('user_id,name\n,x\n');
    expect(await refusalOf(server, `/v1/background_jobs/${jobId}/rejects?${query}`)).toEqual([400, [code]]);
  });

  // proves: shapes
  test('the values, shapes and records of causes are bounded in length', async () => {
    const long = `"${'x1/'.repeat(5_000)}"`;
    const { data } = await causesOf(
      await load(`event_type,user_id,event_name,inserted_at\ntrack,u,o,${long}\n`),
    );
    expect(JSON.stringify(data).length).toBeLessThan(1_000);
  });
});

describe('long records', () => {
  const long = Array.from(
    { length: 300 },
    (_, n) => `{"name":"${n} ${'x'.repeat(4_990)}ü${'y'.repeat(10)}"}`,
  );

  test('a page of long rejects has at most a megabyte of cut records and leads to the next, and files have them whole', async () => {
    const jobId = await load(`${long.join('\n')}\n`, 'application/x-ndjson');
    const rows: number[] = [];
    let pages = 0;
    let path: string | null = `/v1/background_jobs/${jobId}/rejects?limit=500`;
    while (path !== null) {
      const response: Response = await server.fetch(path);
      const text = await response.text();
      expect(text.length).toBeLessThan(1024 * 1024 + 8_192);
      const body = JSON.parse(text) as RejectsPage;
      rows.push(...body.data.map((reject) => reject.row));
      for (const { row, raw } of body.data) {
        expect(raw).toBe(`${long[row - 1]?.slice(0, 4_096)}…`);
      }
      pages++;
      path = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1] ?? null;
      expect(path === null).toBe(body.metadata.cursor.after === null);
    }
    expect(rows).toEqual(long.map((_, n) => n + 1));
    expect(pages).toBe(2);
    const lines = (await download(jobId, 'application/x-ndjson')).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).name)).toEqual(long.map((line) => JSON.parse(line).name));
    const csv = await download(jobId, 'text/csv');
    expect(csv.match(/üyyyyyyyyyy/g)).toHaveLength(long.length);
  });
});

describe('rejects as CSV', () => {
  test('a CSV of rejects has the header of the source and the reasons, and each record unchanged', async () => {
    const jobId = await load('user_id;name\nok;x\n;"Ada; of ""Lovelace"""\n');
    const [header, line, ...rest] = (await download(jobId, 'text/csv')).split('\n');
    expect(header).toBe(`user_id;name;${csvReasons.replaceAll(',', ';')}`);
    expect(line).toMatch(/^;"Ada; of ""Lovelace""";[0-9a-f-]{36};2;3;missing_id;[^;]+;user_id;;$/);
    expect(rest).toEqual(['']);
  });

  test.each<[string, string | Buffer, string]>([
    ["' for quotes", "user_id,'name'\n'e1','Ann, M.'\n'','Bob, N.'\n'e3','it''s, so'\n", ''],
    ['escapes by backslash', 'user_id,name\ne1,"Ann \\"A\\", M."\n,"Bob \\"B\\", N."\n', ''],
    ['|| between cells', 'user_id||name\ne1||Ann, M.\n||Bob, N.\ne3||Cy\n', ''],
    ['Windows-1252', Buffer.from('user_id;name\ne1;Günther Weiß\n;Jürgen Müller\ne3;Jörg\n', 'latin1'), ''],
    ['lines before the header', 'Customers\n\nuser_id,name\ne1,Ann\n,Bob\n', ''],
    ['nulls and comments', 'user_id,name\ne1,NULL\n# x\nNULL,Bob\n', '?null=NULL&comment=%23'],
  ])('a corrected CSV of rejects loads the rest of a file with %s', async (_, source, query) => {
    const jobId = await load(source, 'text/csv', query);
    expect(await codesOf(jobId)).toEqual(['missing_id']);
    const [rejected] = (await page(jobId)).data;
    const name = /Bob(?: "B")?(?:, N\.)?|Jürgen Müller/.exec(rejected?.raw.replaceAll('""', '"') ?? '')?.[0];
    expect(name).toBeDefined();
    const file = await download(jobId, 'text/csv');
    const delimiter = file.includes(';sluice_job') ? ';' : ',';
    const written = parse<Record<string, string>>(file, { columns: true, delimiter });
    expect(written).toMatchObject([{ name }]);
    const id = uuidv7();
    const mended = file.replace(/\n([,;])/, `\n${id}$1`);
    const again = await load(mended);
    expect(await codesOf(again)).toEqual([]);
    expect((await userOf(id))?.metadata).toEqual({ name });
  });

  test('a CSV of rejects with misfit records has one line for each, which shifts no other', async () => {
    const jobId = await load(messy);
    const rejects = await page(jobId);
    expect(rejects.data).toHaveLength(8);
    const again = await load(await download(jobId, 'text/csv'));
    expect(await t.ended(again)).toMatchObject({
      totalRows: 8,
      tally: { read: 8, rejected: 8, inserted: 0 },
    });
    // A record that fits the columns is refused again with the same error code. Any other record is
    // now in the column sluice_raw, so it is refused because its id is missing.
    const codes = rejects.data.map((reject) => reject.error_code);
    const ownCodes = new Set(['missing_id', 'id_too_long']);
    expect(await codesOf(again)).toEqual(codes.map((code) => (ownCodes.has(code) ? code : 'missing_id')));
  });

  test('a CSV of rejects is valid UTF-8 without U+0000, also if its records are not', async () => {
    const jobId = await load(messy);
    const response = await server.fetch(`/v1/background_jobs/${jobId}/rejects`, {
      headers: { accept: 'text/csv' },
    });
    const bytes = new Uint8Array(await response.arrayBuffer());
    expect(bytes.includes(0)).toBe(false);
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes)).not.toThrow();
  });
});

describe('rejects as NDJSON', () => {
  test('an NDJSON of rejects has each object as written, with the reason in keys behind its own', async () => {
    const jobId = await load(
      '{"name":"x", "big":12345678901234567890.50}\n{}\n[1]\nnonsense\n',
      'application/x-ndjson',
    );
    const lines = (await download(jobId, 'application/x-ndjson')).trimEnd().split('\n');
    expect(lines[0]).toMatch(
      /^{"name":"x", "big":12345678901234567890.50,"sluice_job":"[0-9a-f-]{36}","sluice_row":1,"sluice_line":1,/,
    );
    expect(lines[1]).toMatch(/^{"sluice_job":"[0-9a-f-]{36}","sluice_row":2,/);
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({
      sluice_raw: '[1]',
      sluice_row: 3,
      sluice_error_code: 'not_an_object',
    });
    expect(JSON.parse(lines[3] ?? '')).toMatchObject({
      sluice_raw: 'nonsense',
      sluice_row: 4,
      sluice_error_code: 'invalid_json',
    });
  });

  test('a corrected NDJSON of rejects can be loaded unchanged, and its reasons become no properties', async () => {
    const jobId = await load('{"name":"Mended"}\nx\n', 'application/x-ndjson');
    const mended = (await download(jobId, 'application/x-ndjson'))
      .replace('{"name"', '{"user_id":"mended-2","name"')
      .replace('{"sluice_job"', '{"user_id":"mended-3","sluice_job"');
    const again = await load(mended, 'application/x-ndjson');
    expect(await codesOf(again)).toEqual([]);
    expect((await userOf('mended-2'))?.metadata).toEqual({ name: 'Mended' });
    expect((await userOf('mended-3'))?.metadata).toEqual({});
  });

  test('an NDJSON of rejects has the exact bytes of a record that is not text', async () => {
    const jobId = await load(messy);
    const lines = (await download(jobId, 'application/x-ndjson')).trimEnd().split('\n');
    const bytes = lines.map((line) => JSON.parse(line).sluice_raw_base64);
    const m6 = Buffer.from('m6,\xff\xfe,bytes', 'latin1');
    expect(bytes.filter((each) => each !== undefined)).toEqual([
      m6.toString('base64'),
      Buffer.from('m7,nul\0,x').toString('base64'),
    ]);
  });

  test('an NDJSON of rejects of a CSV has objects by the names of the header', async () => {
    const jobId = await load('user_id,name,note\n,"Ada ""A""",\n,few\n');
    const lines = (await download(jobId, 'application/x-ndjson'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines[0]).toMatchObject({ name: 'Ada "A"', sluice_row: 1, sluice_column: 'user_id' });
    expect(lines[0]).not.toHaveProperty('note');
    expect(lines[1]).toMatchObject({
      sluice_raw: ',few',
      sluice_error_code: 'wrong_field_count',
    });
  });
});

describe('the Accept of a download', () => {
  test('the format of rejects is the accepted type with the greatest weight', async () => {
    const jobId = await load('user_id,name\n,x\n');
    const typeFor = async (accept: string) =>
      (await server.fetch(`/v1/background_jobs/${jobId}/rejects`, { headers: { accept } })).headers
        .get('content-type')
        ?.split(';', 1)[0];
    expect(await typeFor('*/*')).toBe('application/json');
    expect(await typeFor('text/html, */*;q=0.8')).toBe('application/json');
    expect(await typeFor('text/csv;q=0.5, application/x-ndjson')).toBe('application/x-ndjson');
    expect(await typeFor('text/csv, application/json;q=0.1')).toBe('text/csv');
  });
});

describe('formulas in rejects', () => {
  const record = fc.tuple(hazardousText, hazardousText);
  const cell = (text: string): string => `"${text.replaceAll('"', '""')}"`;

  // A record with only blank cells is ignored and not counted.
  const notBlank = record.filter((cells) => cells.some((each) => each.trim() !== ''));

  // proves: formulas
  test('formulas are defused in a file of rejects and its header, and stored unchanged by its mend', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(notBlank, { minLength: 1, maxLength: 5 }), async (records) => {
        const body = records.map((cells) => `,${cells.map(cell).join(',')}\n`).join('');
        const jobId = await load(`user_id,=a,"'=b"\n${body}`);
        const [header = [], ...rows] = parse(await download(jobId, 'text/csv')) as string[][];
        expect(header.slice(0, 3)).toEqual(['user_id', "'=a", "''=b"]);
        expect(rows).toHaveLength(records.length);
        for (const text of rows.flat()) expect(text).not.toMatch(/^[=+\-@\t\r\n＝＋－＠](?![0-9.eE+-]*$)/);
        const ids = rows.map(() => uuidv7());
        const mended = [header, ...rows.map((row, at) => [ids[at] ?? '', ...row.slice(1)])];
        const again = await load(mended.map((row) => `${row.map(cell).join(',')}\n`).join(''));
        expect(await codesOf(again)).toEqual([]);
        for (const [at, [a, b]] of records.entries()) {
          const stored = { ...(a === '' ? {} : { '=a': a }), ...(b === '' ? {} : { "'=b": b }) };
          expect((await userOf(ids[at] ?? ''))?.metadata).toEqual(stored);
        }
      }),
      { numRuns: runs(8) },
    );
  });

  test('formulas are not defused twice, however often a file of rejects is refused and downloaded again', async () => {
    const jobId = await load('user_id,=a\n,=1\n');
    const first = await download(jobId, 'text/csv');
    const again = await load(first);
    const second = await download(again, 'text/csv');
    expect(first.split('\n')[1]).toMatch(/^,'=1,/);
    expect(second).toBe(first.replaceAll(jobId, again));
  });
});
