import { gzipSync } from 'node:zlib';
import type { Static } from 'typebox';
import { afterEach, describe, expect, test } from 'vitest';
import type { JobDetail as Detail, importRecord } from '../../../src/load/api.ts';
import { parquetOf } from '../../support/files/columnar-file.ts';
import { textRow, workbookFile } from '../../support/files/workbook-file.ts';
import { zipFile } from '../../support/files/zip-file.ts';
import { type ErrorBody, form, openServer, serve } from '../../support/servers/http.ts';
import { openTestSystem } from '../../support/servers/system.ts';
import { mountSmallDisk } from '../../support/servers/tmpfs.ts';
import { waitFor } from '../../support/wait-for.ts';

type Body = string | Uint8Array<ArrayBuffer> | FormData;

type ImportBody = Static<typeof importRecord.schema>;

const { t, server } = await openServer({ worker: true });

const csv = 'user_id,name,company_id\nu1,Ada,c1\nu2,Grace,c1\n';
const users = {
  name: 'Users',
  rows: textRow(1, 'user_id', 'name') + textRow(2, 'u1', 'Ada') + textRow(3, 'u2', 'Grace'),
};
const workbook = workbookFile({ sheets: [users] });
const ndjson = '{"user_id":"u1","metadata":{"name":"Ada"}}\n{"user_id":"u2"}\n';

const post = (body: Body, path = '/v1/imports', headers: Record<string, string> = {}) =>
  server.json<ImportBody & ErrorBody>(path, { method: 'POST', body, headers });
const postCsv = (body: Body, path = '/v1/imports', headers: Record<string, string> = {}) =>
  post(body, path, { 'content-type': 'text/csv', ...headers });
const detail = async (jobId: string) => {
  await t.ended(jobId);
  return (await server.json<Detail>(`/v1/background_jobs/${jobId}`)).body;
};
/** A number that is part of each id. It makes the content of each file different. */
let serial = 0;
const someCsv = (rows = 2) =>
  `user_id,name\n${Array.from({ length: rows }, (_, i) => `s${++serial}-${i},Name\n`).join('')}`;

describe('a file in a form', () => {
  test('a file in a form is answered with the job record, whose numbers are strings', async () => {
    const { status, body } = await post(form(csv, { filename: 'users.csv', type: 'text/csv' }));
    expect(status).toBe(200);
    expect(body).toEqual({
      job_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      type: 'import',
      status: 'queued',
      filename: 'users.csv',
      file_size: String(Buffer.byteLength(csv)),
      total_rows: '2',
      start_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      end_time: null,
      links: `${server.address}/v1/background_jobs/${body.job_id}`,
    });
    expect(await detail(body.job_id)).toMatchObject({ status: 'completed', counts: { read: 2 } });
  });

  test('a form may have its options before and after the file', async () => {
    const companies = 'company_id,user_id,Size\na,b,3\n';
    for (const where of ['before', 'after'] as const) {
      const { status, body } = await post(
        form(companies, { [where]: { entity: 'companies', map: 'Size=seats', dry_run: 'true' } }),
      );
      expect([where, status]).toEqual([where, 200]);
      expect(await detail(body.job_id)).toMatchObject({ dry_run: true, counts: { read: 1 } });
    }
  });

  test('the name of a file keeps any script, and loses its path and control characters', async () => {
    const names = [
      ['Kundenübersicht – 客户 🚀.csv', 'Kundenübersicht – 客户 🚀.csv'],
      ['../../etc/passwd.csv', 'passwd.csv'],
      ['C:\\temp\\users.csv', 'users.csv'],
      ['‮gpj.csv', 'gpj.csv'],
    ] as const;
    for (const [uploadName, shown] of names) {
      const { body } = await post(form(someCsv(), { filename: uploadName }));
      expect(body.filename).toBe(shown);
    }
  });

  test('a form that is gzip as a whole is accepted', async () => {
    const text = [
      '--b',
      'content-disposition: form-data; name="entity"',
      '',
      'users',
      '--b',
      'content-disposition: form-data; name="file"; filename="users.csv"',
      '',
      'user_id,company_id\nu,c\n',
      '--b--',
      '',
    ].join('\r\n');
    const { status, body } = await post(gzipSync(text), '/v1/imports', {
      'content-type': 'multipart/form-data; boundary=b',
      'content-encoding': 'gzip',
    });
    expect([status, body.total_rows, body.filename]).toEqual([200, '1', 'users.csv']);
  });

  // proves: inflate-bound
  test('a file that grows more than 200 times in a gzip form is 413, and not kept', async () => {
    const before = await t.storedFiles();
    const rows = Buffer.alloc(24 * 1024 * 1024, 'a'.repeat(1023).concat('\n'));
    const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\nuser_id\n';
    const packed = gzipSync(Buffer.concat([Buffer.from(head), rows, Buffer.from('\r\n--b--\r\n')]));
    const { status, body } = await post(new Uint8Array(packed), '/v1/imports', {
      'content-type': 'multipart/form-data; boundary=b',
      'content-encoding': 'gzip',
    });
    expect([status, body.errors[0]?.message]).toEqual([
      413,
      'The upload unpacks to more than 200 times its size',
    ]);
    expect(await t.storedFiles()).toEqual(before);
  });

  // proves: upload-cut-off
  test.each([
    ['no end', 'b', `--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${csv}`],
    ['another boundary', 'c', '--b\r\n\r\n--b--\r\n'],
    ['an empty body', 'b', ''],
  ])('a form with %s is 400, and no file is kept', async (_, boundary, body) => {
    const before = await t.storedFiles();
    const answer = await post(body, '/v1/imports', {
      'content-type': `multipart/form-data; boundary=${boundary}`,
    });
    expect(answer.status).toBe(400);
    expect(answer.body.errors[0]?.error_code).toMatch(/missing_field|invalid_field/);
    expect(await t.storedFiles()).toEqual(before);
  });

  test('a form whose gzip is damaged or cut off is 400, and no file is kept', async () => {
    const before = await t.storedFiles();
    const part =
      '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nuser_id\nu\n\r\n--b--\r\n';
    const packed = gzipSync(part);
    for (const bytes of [
      packed.subarray(0, -12),
      Buffer.from(part),
      Buffer.concat([packed.subarray(0, 30), packed]),
    ]) {
      const { status } = await post(new Uint8Array(bytes), '/v1/imports', {
        'content-type': 'multipart/form-data; boundary=b',
        'content-encoding': 'gzip',
      });
      expect(status).toBe(400);
    }
    expect(await t.storedFiles()).toEqual(before);
  });

  test.each([
    ['no part named file', { entity: 'users' }, 'missing_field', /no part named file/],
    ['nothing', {}, 'missing_field', /no part named file/],
    ['an unknown option', { colour: 'red' }, 'invalid_field', /"colour".*known: entity, map/],
    ['a known option with a bad value', { entity: 'planets' }, 'invalid_field', /entity must be/],
  ])('a form with %s is refused', async (_, fields, code, message) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.append(name, value);
    if (code === 'invalid_field') data.append('file', new Blob([csv]), 'users.csv');
    const { status, body } = await post(data);
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([{ error_code: code, message: expect.stringMatching(message) }]);
  });

  test('a form with wrong options after the file is refused, and its file is not kept', async () => {
    const before = await t.storedFiles();
    const { status, body } = await post(form(someCsv(), { after: { max_errors: 'many', dry_run: 'maybe' } }));
    expect(status).toBe(400);
    expect(body.errors.map((each) => each.details).sort()).toEqual(['dry_run', 'max_errors']);
    expect(await t.storedFiles()).toEqual(before);
  });

  // proves: source-options
  test('an option of reading after the file is refused, and the file not kept, unless the form also has it before', async () => {
    const before = await t.storedFiles();
    const { status, body } = await post(form(someCsv(), { after: { encoding: 'utf-8' } }));
    expect(status).toBe(400);
    expect(body.errors).toMatchObject([
      {
        error_code: 'invalid_field',
        message: 'encoding must come before the file, or in the query: the file had been read when it came',
        details: 'encoding',
      },
    ]);
    expect(await t.storedFiles()).toEqual(before);
    const both = { before: { encoding: 'utf-8' }, after: { encoding: 'utf-8' } };
    expect((await post(form(someCsv(), both))).status).toBe(200);
  });
});

describe.skipIf(t.s3 !== null)('a file as the body', () => {
  test.each([
    ['text/csv', csv],
    ['TEXT/CSV;header=present', csv],
    ['application/x-ndjson', ndjson],
    ['application/json', '[{"user_id":"u1"},{"user_id":"u2"}]'],
    ['application/gzip', gzipSync(csv)],
    ['application/octet-stream', gzipSync(ndjson)],
    ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', workbook],
    ['application/octet-stream', gzipSync(workbook)],
    [
      'application/vnd.apache.parquet',
      parquetOf([
        { user_id: 'u1', n: 1 },
        { user_id: 'u2', n: null },
      ]),
    ],
    ['application/zip', zipFile([{ name: 'users.csv', data: csv }])],
    ['application/x-zip-compressed', zipFile([{ name: 'users.xlsx', data: workbook }])],
  ])('a body of type %s is imported', async (type, content) => {
    const { status, body } = await post(content, '/v1/imports', { 'content-type': type });
    expect([status, body.total_rows]).toEqual([200, '2']);
    expect((await detail(body.job_id)).counts).toMatchObject({ read: 2, rejected: 0 });
  });

  test('an import is named by Content-Disposition, by the option filename, or `upload`', async () => {
    const name = async (path: string, disposition?: string) => {
      const headers: Record<string, string> =
        disposition === undefined ? {} : { 'content-disposition': disposition };
      return (await postCsv(someCsv(), path, headers)).body.filename;
    };
    expect(await name('/v1/imports')).toBe('upload');
    expect(await name('/v1/imports', 'attachment; filename="my users.csv"')).toBe('my users.csv');
    expect(await name('/v1/imports', "attachment; filename=a.csv; filename*=UTF-8''%C3%BCber.csv")).toBe(
      'über.csv',
    );
    expect(await name('/v1/imports?filename=q.csv', 'attachment; filename=h.csv')).toBe('q.csv');
  });

  test('an import takes options from the query', async () => {
    const { status, body } = await postCsv(
      'Kunde,Firma GmbH\n1,2\n',
      '/v1/imports?map=Kunde=user_id&map=Firma%20GmbH=company_id&dry_run=true&max_errors=5%25',
    );
    expect(status).toBe(200);
    expect(await detail(body.job_id)).toMatchObject({ status: 'completed', dry_run: true });
  });

  test('an archive is imported even if its file has an odd name', async () => {
    const archive = zipFile([{ name: 'a\0b.csv', data: someCsv() }]);
    const { status, body } = await post(archive, '/v1/imports', { 'content-type': 'application/zip' });
    expect(status).toBe(200);
    expect(await detail(body.job_id)).toMatchObject({ status: 'completed', read_as: { member: 'a␀b.csv' } });
  });

  test.each([
    ['', 'empty_file'],
    ['user_id,name\n', 'empty_file'],
    ['name,email\nAda,a@b.c\n', 'unrecognised_columns'],
    ['user_id,user_id\n1,2\n', 'invalid_field'],
    ['PK\x03\x04zip', 'unsupported_format'],
  ])('a body of %j is refused with %s, and not kept', async (content, code) => {
    const before = await t.storedFiles();
    const { status, body } = await postCsv(content);
    expect([status, body.errors[0]?.error_code]).toEqual([400, code]);
    expect(await t.storedFiles()).toEqual(before);
  });

  test.each([
    ['entity=planets'],
    ['dry_run=maybe'],
    ['max_errors=-1'],
    ['if_duplicate=maybe'],
    ['preset=heap'],
    ['map=Id'],
    ['map='],
    ['colour=red'],
    ['entity=users&entity=companies'],
    ['encoding=windows-9999'],
    ['delimiter='],
    ['quote=%27&delimiter=%27'],
    ['records=data.users'],
    ['map=%7B%22a%22:%22b%5Cu0000%22%7D'],
  ])('an import with ?%s is refused', async (query) => {
    const { status, body } = await postCsv(csv, `/v1/imports?${query}`);
    expect([status, body.errors[0]?.error_code]).toEqual([400, 'invalid_field']);
    expect(body.errors[0]?.details).toBe(query.split('=', 1)[0]);
  });

  test.each([
    ['application/xml', {}],
    ['text/html', {}],
    ['nonsense', {}],
    ['text/csv', { 'content-encoding': 'br' }],
  ])('an import of type %s %j is 415', async (type, headers) => {
    const { status, body } = await post(csv, '/v1/imports', { 'content-type': type, ...headers });
    expect([status, body.errors[0]?.error_code]).toEqual([415, 'unsupported_media_type']);
  });
});

test.skipIf(t.s3 !== null)(
  'a repeated file is loaded and reported as a duplicate, or skipped or refused on request',
  async () => {
    const content = someCsv();
    const { job_id } = (await postCsv(content)).body;
    await detail(job_id);
    const loaded = await postCsv(content);
    expect(loaded.body.job_id).not.toBe(job_id);
    const duplicate = { duplicate_of: job_id, counts: { read: 2, unchanged: 2 } };
    expect(await detail(loaded.body.job_id)).toMatchObject(duplicate);
    const other = someCsv();
    const first = (await postCsv(other)).body.job_id;
    await detail(first);
    const before = await t.storedFiles();
    const skipped = await postCsv(other, '/v1/imports?if_duplicate=skip');
    expect(skipped).toMatchObject({ status: 200, body: { job_id: first, status: 'completed' } });
    const { status, body } = await postCsv(other, '/v1/imports?if_duplicate=reject');
    expect([status, body.errors[0]?.error_code]).toEqual([409, 'duplicate_file']);
    expect(body.errors[0]?.details).toContain(first);
    expect(await t.storedFiles()).toEqual(before);
  },
);

describe('Idempotency-Key', () => {
  const withKey = (key: string, body: Body, path = '/v1/imports') =>
    postCsv(body, path, { 'idempotency-key': key });

  // proves: idempotent-import
  test('an import repeated with its Idempotency-Key gives the first answer, and makes one job', async () => {
    const content = someCsv();
    const first = await withKey('k1', content);
    await detail(first.body.job_id);
    const before = await t.storedFiles();
    const second = await withKey('k1', content);
    expect(second.status).toBe(200);
    expect(second.body).toEqual(first.body);
    expect(await t.storedFiles()).toEqual(before);
  });

  test('an import with the Idempotency-Key of another body, or of other options, is 409', async () => {
    const content = someCsv();
    await withKey('k2', content);
    const other = await withKey('k2', someCsv());
    expect([other.status, other.body.errors[0]?.error_code]).toEqual([409, 'idempotency_conflict']);
    for (const options of ['dry_run=true', 'ragged=pad', 'map=name=title']) {
      expect((await withKey('k2', content, `/v1/imports?${options}`)).status, options).toBe(409);
    }
  });

  // proves: idempotent-import
  test('two imports at once with one Idempotency-Key make one job, and leave one file', async () => {
    const before = await t.storedFiles();
    const content = someCsv(2_000);
    const both = await Promise.all([withKey('k3', content), withKey('k3', content)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both[0]?.body).toEqual(both[1]?.body);
    expect((await t.storedFiles()).length).toBe(before.length + 1);
  });
});

/**
 * A CSV that is longer than one part of an upload to S3. It has long lines, because reading many
 * short lines takes longer.
 */
const longBeginning = `${csv}${`u3,${'x'.repeat(1_000)},y\n`.repeat(9_000)}`;

describe('an upload that does not arrive', () => {
  const connections: { reset(): void }[] = [];
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.reset();
  });

  const start = async (...headers: string[]) => {
    const connection = await server.connect();
    connections.push(connection);
    connection.head('POST /v1/imports HTTP/1.1', 'host: x', `authorization: Token ${t.key}`, ...headers);
    return connection;
  };
  const jobs = async () =>
    Number((await server.fetch('/v1/background_jobs?limit=1')).headers.get('x-total-count'));

  // proves: upload-cut-off
  test.each([
    ['a body', ['content-type: text/csv', 'content-length: 20000000']],
    ['a form', ['content-type: multipart/form-data; boundary=b', 'content-length: 20000000']],
  ])(
    'an upload that is cut off in %s leaves no job and no file, and is not a failure of the service',
    async (what, headers) => {
      const requests = async (status: number) => {
        const { text } = await t.system.metrics.render();
        return Number(new RegExp(`route="/v1/imports",status="${status}"} (\\d+)`).exec(text)?.[1] ?? 0);
      };
      const failures = await requests(500);
      const cuts = await requests(408);
      const files = await t.storedFiles();
      const count = await jobs();
      const connection = await start(...headers);
      if (what === 'a form') {
        await connection.write(
          '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n',
        );
      }
      await connection.write(longBeginning);
      await waitFor('the file to be begun', async () => (await t.storedFiles()).length > files.length);
      connection.reset();
      await waitFor('the file to be gone', async () => (await t.storedFiles()).length === files.length);
      expect(await jobs()).toBe(count);
      await waitFor(
        'the request to be counted',
        async () => (await requests(500)) + (await requests(408)) > failures + cuts,
      );
      expect(await requests(500)).toBe(failures);
    },
  );

  // proves: upload-cut-off
  test('a chunked upload that is cut off before its last chunk leaves no job and no file', async () => {
    const files = await t.storedFiles();
    const count = await jobs();
    const connection = await start('content-type: text/csv', 'transfer-encoding: chunked');
    await connection.write(`${longBeginning.length.toString(16)}\r\n${longBeginning}\r\n`);
    await waitFor('the file to be begun', async () => (await t.storedFiles()).length > files.length);
    connection.socket.end();
    await waitFor('the file to be gone', async () => (await t.storedFiles()).length === files.length);
    expect(await jobs()).toBe(count);
  });
});

// proves: disk-full
test('an upload without room on the disk is 503 with the reason, leaves nothing, and is accepted once there is room', async ({
  skip,
}) => {
  if (t.s3 !== null) return skip('the files are on S3');
  const disk = await mountSmallDisk(2 ** 20);
  if (typeof disk === 'string') return skip(disk);
  const small = await openTestSystem({ settings: { DATA_DIR: disk.path }, worker: true });
  const smallServer = await serve(small);
  try {
    const name = 'x'.repeat(700);
    const ids = Array.from({ length: 2_000 }, (_, n) => `u${n}`);
    const body = `user_id,name\n${ids.map((id) => `${id},${name}\n`).join('')}`;
    const send = (path: string, options: object) =>
      smallServer.json<ImportBody & ErrorBody>(path, {
        method: 'POST',
        body,
        headers: { 'content-type': 'text/csv', 'idempotency-key': 'once' },
        ...options,
      });
    const users = ids.map((user_id) => ({ user_id, name }));
    const array = { body: JSON.stringify({ users }), headers: { 'content-type': 'application/json' } };
    for (const [path, options] of [
      ['/v1/imports', {}],
      ['/v1/imports', { body: form(body), headers: {} }],
      ['/v1/users/bulk_identify', array],
    ] as const) {
      const refused = await send(path, options);
      expect([refused.status, refused.body.errors]).toEqual([
        503,
        [expect.objectContaining({ error_code: 'unavailable', details: 'disk of the files: no room left' })],
      ]);
      expect(refused.headers.get('retry-after')).not.toBeNull();
    }
    expect(await small.storedFiles()).toEqual([]);
    await disk.grow(64 * 2 ** 20);
    const { status, body: job } = await send('/v1/imports', {});
    expect(status).toBe(200);
    expect(await small.ended(job.job_id)).toMatchObject({ status: 'completed', tally: { read: 2_000 } });
  } finally {
    await smallServer.stop();
    await small.close();
    await disk.remove();
  }
});
