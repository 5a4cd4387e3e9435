import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import type { Inspection } from '../../../src/capabilities/inspection/api.ts';
import { type FileRef, MissingFileError } from '../../../src/files/file-store.ts';
import { sweep } from '../../../src/jobs/prune.ts';
import type { JobDetail as Detail } from '../../../src/load/api.ts';
import { findUpload } from '../../../src/load/upload-store.ts';
import { textRow, workbookFile } from '../../support/files/workbook-file.ts';
import { type ErrorBody, form, openServer, refusalOf } from '../../support/servers/http.ts';
import { recordSite } from '../../support/servers/records.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ worker: true });

type Body = string | Uint8Array<ArrayBuffer> | FormData;

const path = '/v1/imports/inspect';
const inspect = (body: Body, query = '', headers: Record<string, string> = {}) =>
  server.json<Inspection & ErrorBody>(`${path}${query}`, { method: 'POST', body, headers });
const load = (query: string, body?: Body, headers: Record<string, string> = {}) =>
  server.json<{ job_id: string } & ErrorBody>(`/v1/imports${query}`, {
    method: 'POST',
    headers,
    ...(body && { body }),
  });
const detail = async (jobId: string) => {
  await t.ended(jobId);
  return (await server.json<Detail>(`/v1/background_jobs/${jobId}`)).body;
};
const json = { 'content-type': 'application/json' };

let serial = 0;
const someUsers = () => `Kunden-Nr;Name\n${++serial}-1;Anna\n${serial}-2;Bernd\n;Niemand\n`;

test('an inspection stops once its client has disconnected', async () => {
  const answersWith = async (status: number) => {
    const { text } = await t.system.metrics.render();
    return new RegExp(`route="/v1/imports/inspect",status="${status}"} (\\d+)`).exec(text)?.[1];
  };
  const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
  const answersBefore = await answersWith(200);
  const site = recordSite(t, server);
  const lock = await site.hold('lock table sluice.uploads in access exclusive mode');
  const leaving = new AbortController();
  const options = { method: 'POST', signal: leaving.signal };
  const answer = server.fetch(`${path}?upload_id=${body.upload_id}`, options).catch(() => 'left');
  await site.blocked();
  leaving.abort();
  expect(await answer).toBe('left');
  // Once the server has answered this request, it knows that the client of the inspection has left.
  await server.fetch('/health/live', { key: null });
  await lock.release();
  await waitFor('the inspection to end', async () => (await answersWith(408)) === '1');
  expect(await answersWith(200)).toBe(answersBefore);
});

// proves: inspection
test('an inspected file is described and kept, and nothing of it is loaded', async () => {
  const loadsBefore = await t.system.db.selectFrom('loads').select('load_id').execute();
  const text = someUsers();
  const { status, body } = await inspect(form(text, { filename: 'kunden.csv' }));
  expect(status).toBe(200);
  expect(body).toMatchObject({
    filename: 'kunden.csv',
    file_size: text.length,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    read_as: { format: 'csv', csv: { delimiter: ';' } },
    records: 3,
    map: { 'Kunden-Nr': 'user_id' },
    problem: { error_code: 'unrecognised_columns' },
    rejects: { count: 1, items: [{ line: 4, error_code: 'missing_id' }] },
  });
  expect(body.columns).toMatchObject([
    {
      name: 'Kunden-Nr',
      becomes: 'user_id',
      reason: expect.stringContaining('looks like that of a user_id'),
    },
    { name: 'Name', becomes: 'metadata.Name' },
  ]);
  expect(body.rows).toMatchObject([
    { row: 1, user_id: `${serial}-1` },
    { row: 2, user_id: `${serial}-2` },
  ]);
  expect(await t.system.db.selectFrom('loads').select('load_id').execute()).toEqual(loadsBefore);
});

test.each([
  ['the body itself', (text: string) => inspect(text, '', { 'content-type': 'text/csv' })],
  [
    'a body packed with gzip',
    (text: string) => inspect(gzipSync(text), '', { 'content-type': 'text/csv', 'content-encoding': 'gzip' }),
  ],
  ['a part of a form', (text: string) => inspect(form(text))],
])('a file sent as %s is loaded by its upload_id with the proposed map', async (_, send) => {
  const { body } = await send(someUsers());
  const answers = [
    await load(`?upload_id=${body.upload_id}&map=Kunden-Nr%3Duser_id`),
    await load('', JSON.stringify({ upload_id: body.upload_id, map: body.map, if_duplicate: 'load' }), json),
  ];
  for (const { status, body: job } of answers) {
    expect(status).toBe(200);
    const completed = await detail(job.job_id);
    expect(completed).toMatchObject({
      status: 'completed',
      sources: [{ sha256: body.sha256 }],
      counts: { read: 3, rejected: 1 },
    });
  }
  const upload = new FormData();
  upload.append('upload_id', body.upload_id);
  upload.append('map', 'Kunden-Nr=user_id');
  upload.append('dry_run', 'true');
  expect((await load('', upload)).status).toBe(200);
});

test('an upload can be inspected again with other options or another sheet', async () => {
  const sheets = [
    { name: 'Costs', rows: textRow(1, 'a') + textRow(2, 'b') },
    { name: 'Users', rows: textRow(1, 'user_id') + textRow(2, `w${++serial}`) },
  ];
  const upload = await inspect(new Uint8Array(workbookFile({ sheets })), '', {
    'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  });
  expect(upload.body).toMatchObject({
    read_as: { sheet: 'Costs' },
    problem: { error_code: 'unrecognised_columns' },
  });
  const parameters = { upload_id: upload.body.upload_id, sheet: 'Users' };
  const answers = [
    await inspect(JSON.stringify(parameters), '', json),
    await server.json<Inspection>(`${path}?${new URLSearchParams(parameters)}`, { method: 'POST' }),
  ];
  for (const { body } of answers) {
    const { upload_id } = upload.body;
    expect(body).toMatchObject({ upload_id, read_as: { sheet: 'Users' }, problem: null });
  }
  const job = await load(`?upload_id=${upload.body.upload_id}&sheet=Users`);
  expect((await detail(job.body.job_id)).counts).toMatchObject({ inserted: 1 });
});

test('an unreadable file is kept, and the reason is reported', async () => {
  const { status, body } = await inspect('user_id\n', '', { 'content-type': 'text/csv' });
  expect(status).toBe(200);
  expect(body).toMatchObject({ read_as: null, problem: { error_code: 'empty_file' }, rows: [] });
  expect((await load(`?upload_id=${body.upload_id}`)).status).toBe(400);
});

test('records that are nested too deeply are counted as rejects', async () => {
  const deep = `{"user_id":"deep","deep":${'['.repeat(8_000)}1${']'.repeat(8_000)}}`;
  const { status, body } = await inspect(`${deep}\n{"user_id":"flat"}\n`, '', {
    'content-type': 'application/x-ndjson',
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    records: 2,
    rejects: { by_code: { too_deep: 1 } },
  });
});

// proves: inspection
test('an expired upload, that of another environment, or a wrong id is refused', async () => {
  const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
  const otherEnvironment = await createEnvironment(t.system.db, `other${++serial}`);
  const { key } = await createApiKey(t.system.db, otherEnvironment.environmentId, {
    label: 'test',
    expiresAt: null,
  });
  for (const at of ['/v1/imports', path]) {
    const withUpload = `${at}?upload_id=${body.upload_id}`;
    expect(await refusalOf(server, withUpload, { method: 'POST', key })).toEqual([404, ['not_found']]);
    const withMalformedId = `${at}?upload_id=x`;
    expect(await refusalOf(server, withMalformedId, { method: 'POST' })).toEqual([400, ['invalid_field']]);
  }
  const upload = await findUpload(t.system.db, t.environment.environmentId, body.upload_id);
  await t.system.db
    .updateTable('uploads')
    .set({ expires_at: sql<Date>`now()` })
    .where('upload_id', '=', body.upload_id)
    .execute();
  expect(await refusalOf(server, `${path}?upload_id=${body.upload_id}`, { method: 'POST' })).toEqual([
    404,
    ['not_found'],
  ]);
  await sweep(t.system);
  expect(
    await t.system.db
      .selectFrom('uploads')
      .where('upload_id', '=', body.upload_id)
      .select('upload_id')
      .execute(),
  ).toEqual([]);
  await expect(t.system.files.readRange(upload?.ref as FileRef, 0, 1)).rejects.toThrow(MissingFileError);
});

// proves: inspection
test('an upload is removed by the next deletion of profiles', async () => {
  const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
  const accepted = await server.fetch('/v1/users', { method: 'DELETE', json: { users: ['nobody'] } });
  expect(accepted.status).toBe(202);
  await waitFor('the upload to be gone', async () => {
    const answer = await server.fetch(`${path}?upload_id=${body.upload_id}`, { method: 'POST' });
    return answer.status === 404;
  });
});
