import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { createApiKey } from '../../../src/access/key-store.ts';
import type { JobDetail as Detail, uploadOfLoad } from '../../../src/load/api.ts';
import { removeExpiredUploads } from '../../../src/load/uploads.ts';
import { textRow, workbookFile } from '../../support/files/workbook-file.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

type Body = string | Uint8Array<ArrayBuffer> | FormData;

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

type FileUpload = Static<typeof uploadOfLoad.schema>;

const uploadAgain = (jobId: string) =>
  server.json<FileUpload & ErrorBody>(`/v1/background_jobs/${jobId}/upload`, { method: 'POST' });
const loadBody = (upload: FileUpload, more: object = {}) =>
  JSON.stringify({ upload_id: upload.upload_id, ...upload.options, ...more });

/**
 * Each case has a title and a function that returns a file, with the options required to read it.
 */
const files: readonly [string, () => [Body, Record<string, string>, Record<string, string>]][] = [
  [
    'a table in another encoding, packed, behind a preamble and with a footer',
    () => [
      gzipSync(
        Buffer.from(
          `Büro Köln\nNr;Straße\n${++serial}-1;Große Bleichen\n${serial}-2;NULL\nSumme;2\n`,
          'latin1',
        ),
      ),
      {
        encoding: 'windows-1252',
        skip_rows: '1',
        skip_footer: '1',
        null: 'NULL',
        map: 'Nr=user_id,Straße=metadata.street',
      },
      { 'content-type': 'text/csv', 'content-encoding': 'gzip' },
    ],
  ],
  [
    'a sheet of a workbook, whose cells look like another dialect',
    () => [
      new Uint8Array(
        workbookFile({
          sheets: [
            { name: 'Costs', rows: textRow(1, 'a') + textRow(2, 'b') },
            {
              name: 'Users',
              rows: textRow(1, 'user_id') + textRow(2, `${++serial};1`) + textRow(3, `${serial};2`),
            },
          ],
        }),
      ),
      { sheet: 'Users' },
      { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' },
    ],
  ],
  [
    'the records in a JSON document',
    () => [
      JSON.stringify({
        data: { users: [{ no: `${++serial}-1` }, { no: `${serial}-2`, name: 'Bob' }] },
        more: [],
      }),
      { records: 'data.users', entity: 'users', map: 'no=user_id' },
      json,
    ],
  ],
];

describe('the file of a load', () => {
  // proves: load-again
  test.each(files)(
    'the file of a load that is %s is loaded again unchanged, and with another mapping, without being sent',
    async (_, make) => {
      const [body, options, headers] = make();
      const first = await load(`?${new URLSearchParams(options)}`, body, headers);
      expect([first.status, first.body.errors]).toEqual([200, undefined]);
      const before = await detail(first.body.job_id);
      expect(before).toMatchObject({ status: 'completed', counts: { read: 2, inserted: 2 } });
      const sha256 = before.sources[0]?.sha256;
      const upload = await uploadAgain(first.body.job_id);
      expect(upload).toMatchObject({
        status: 201,
        body: { file_of: first.body.job_id, sha256, options: { encoding: 'utf-8' } },
      });
      const same = await load('', loadBody(upload.body), json);
      expect([same.status, same.body.errors]).toEqual([200, undefined]);
      expect(await detail(same.body.job_id)).toMatchObject({
        status: 'completed',
        sources: [{ sha256 }],
        filename: before.filename,
        counts: { read: 2, unchanged: 2 },
      });
      const { map = {} } = upload.body.options as { readonly map?: Readonly<Record<string, string>> };
      const id = Object.keys(map).find((name) => map[name] === 'user_id') ?? 'user_id';
      const other = await load(
        '',
        loadBody(upload.body, { entity: 'companies', map: { [id]: 'company_id' } }),
        json,
      );
      expect([other.status, other.body.errors]).toEqual([200, undefined]);
      expect(await detail(other.body.job_id)).toMatchObject({
        counts: { read: 2, inserted: 2 },
        options: { file_of: first.body.job_id, entity: 'companies' },
      });
    },
  );

  // proves: load-again
  test('a file remains when its upload expires, and an upload ends with its file', async () => {
    const first = await load('?map=Kunden-Nr%3Duser_id', someUsers(), { 'content-type': 'text/csv' });
    await detail(first.body.job_id);
    const one = (await uploadAgain(first.body.job_id)).body;
    const two = (await uploadAgain(first.body.job_id)).body;
    await sql`update uploads set expires_at = now() where upload_id = ${one.upload_id}`.execute(t.system.db);
    expect(await removeExpiredUploads(t.system)).toBe(1);
    expect((await load('', loadBody(one), json)).status).toBe(404);
    expect((await load('', loadBody(two, { dry_run: true }), json)).status).toBe(200);
    await t.system.db
      .updateTable('loads')
      .set({ file_ref: null })
      .where('job_id', '=', first.body.job_id)
      .execute();
    expect((await load('', loadBody(two), json)).status).toBe(404);
    expect(await uploadAgain(first.body.job_id)).toMatchObject({ status: 410 });
  });

  // proves: load-again
  test('a file is not uploaded again after a later deletion, or by another environment', async () => {
    const first = await load('?map=Kunden-Nr%3Duser_id', someUsers(), { 'content-type': 'text/csv' });
    await detail(first.body.job_id);
    const uploadPath = `/v1/background_jobs/${first.body.job_id}/upload`;
    const other = await createEnvironment(t.system.db, `other${++serial}`);
    const { key } = await createApiKey(t.system.db, other.environmentId, { label: 'test', expiresAt: null });
    expect(await refusalOf(server, uploadPath, { method: 'POST', key })).toEqual([404, ['not_found']]);
    await server.fetch('/v1/users', { method: 'DELETE', json: { users: ['nobody'] } });
    expect(await refusalOf(server, uploadPath, { method: 'POST' })).toEqual([410, ['job_expired']]);
  });
});
