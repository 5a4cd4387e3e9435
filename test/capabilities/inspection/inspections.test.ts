import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import type { Inspection } from '../../../src/capabilities/inspection/api.ts';
import { type FileRef, MissingFileError } from '../../../src/files/file-store.ts';
import { sweep } from '../../../src/jobs/prune.ts';
import type { JobDetail as Detail } from '../../../src/load/api.ts';
import { findUpload } from '../../../src/load/upload-store.ts';
import { type ErrorBody, form, openServer, refusalOf } from '../../support/http.ts';
import { recordSite } from '../../support/records.ts';
import { waitFor } from '../../support/wait-for.ts';
import { textRow, workbookFile } from '../../support/workbook-file.ts';

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

describe('a file that is inspected', () => {
  test('is not looked at once its client has left', async () => {
    const answered = async (status: number) => {
      const { text } = await t.system.metrics.render();
      return new RegExp(`route="/v1/imports/inspect",status="${status}"} (\\d+)`).exec(text)?.[1];
    };
    const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
    const before = await answered(200);
    const site = recordSite(t, server);
    const lock = await site.hold('lock table sluice.uploads in access exclusive mode');
    const leaving = new AbortController();
    const options = { method: 'POST', signal: leaving.signal };
    const answer = server.fetch(`${path}?upload_id=${body.upload_id}`, options).catch(() => 'left');
    await site.blocked();
    leaving.abort();
    expect(await answer).toBe('left');
    // The server answers this after it has seen the other leave.
    await server.fetch('/health/live', { key: null });
    await lock.release();
    await waitFor('the inspection to end', async () => (await answered(408)) === '1');
    expect(await answered(200)).toBe(before);
  });

  // proves: inspection
  test('is described and kept, and nothing of it is loaded', async () => {
    const before = await t.system.db.selectFrom('loads').select('load_id').execute();
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
    expect(await t.system.db.selectFrom('loads').select('load_id').execute()).toEqual(before);
  });

  test.each([
    ['the body itself', (text: string) => inspect(text, '', { 'content-type': 'text/csv' })],
    [
      'a body packed with gzip',
      (text: string) =>
        inspect(gzipSync(text), '', { 'content-type': 'text/csv', 'content-encoding': 'gzip' }),
    ],
    ['a part of a form', (text: string) => inspect(form(text))],
  ])(
    'may be %s, and is loaded by its id, without being sent again, with the map that was proposed',
    async (_, send) => {
      const { body } = await send(someUsers());
      const answers = [
        await load(`?upload_id=${body.upload_id}&map=Kunden-Nr%3Duser_id`),
        await load(
          '',
          JSON.stringify({ upload_id: body.upload_id, map: body.map, if_duplicate: 'load' }),
          json,
        ),
      ];
      for (const { status, body: job } of answers) {
        expect(status).toBe(200);
        const done = await detail(job.job_id);
        expect(done).toMatchObject({
          status: 'completed',
          sha256: body.sha256,
          counts: { read: 3, rejected: 1 },
        });
      }
      const upload = new FormData();
      upload.append('upload_id', body.upload_id);
      upload.append('map', 'Kunden-Nr=user_id');
      upload.append('dry_run', 'true');
      expect((await load('', upload)).status).toBe(200);
    },
  );

  test('may be inspected again with other options, and a workbook by another sheet', async () => {
    const sheets = [
      { name: 'Costs', rows: textRow(1, 'a') + textRow(2, 'b') },
      { name: 'Users', rows: textRow(1, 'user_id') + textRow(2, `w${++serial}`) },
    ];
    const first = await inspect(new Uint8Array(workbookFile({ sheets })), '', {
      'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    });
    expect(first.body).toMatchObject({
      read_as: { sheet: 'Costs' },
      problem: { error_code: 'unrecognised_columns' },
    });
    const named = { upload_id: first.body.upload_id, sheet: 'Users' };
    const answers = [
      await inspect(JSON.stringify(named), '', json),
      await server.json<Inspection>(`${path}?${new URLSearchParams(named)}`, { method: 'POST' }),
    ];
    for (const { body } of answers) {
      const { upload_id } = first.body;
      expect(body).toMatchObject({ upload_id, read_as: { sheet: 'Users' }, problem: null });
    }
    const job = await load(`?upload_id=${first.body.upload_id}&sheet=Users`);
    expect((await detail(job.body.job_id)).counts).toMatchObject({ inserted: 1 });
  });

  test('is kept although it cannot be read, with the reason', async () => {
    const { status, body } = await inspect('user_id\n', '', { 'content-type': 'text/csv' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ read_as: null, problem: { error_code: 'empty_file' }, rows: [] });
    expect((await load(`?upload_id=${body.upload_id}`)).status).toBe(400);
  });

  test('of records that are nested too deeply says so, and describes the others', async () => {
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
  test('is not there for another environment, once it has expired, or under an id that is none', async () => {
    const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
    const other = await createEnvironment(t.system.db, `other${++serial}`);
    const { key } = await createApiKey(t.system.db, other.environmentId, { label: 'test', expiresAt: null });
    for (const at of ['/v1/imports', path]) {
      const named = `${at}?upload_id=${body.upload_id}`;
      expect(await refusalOf(server, named, { method: 'POST', key })).toEqual([404, ['not_found']]);
      const none = `${at}?upload_id=x`;
      expect(await refusalOf(server, none, { method: 'POST' })).toEqual([400, ['invalid_field']]);
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
  test('goes with the next deletion of profiles', async () => {
    const { body } = await inspect(someUsers(), '', { 'content-type': 'text/csv' });
    const accepted = await server.fetch('/v1/users', { method: 'DELETE', json: { users: ['nobody'] } });
    expect(accepted.status).toBe(202);
    await waitFor('the upload to be gone', async () => {
      const again = await server.fetch(`${path}?upload_id=${body.upload_id}`, { method: 'POST' });
      return again.status === 404;
    });
  });
});
