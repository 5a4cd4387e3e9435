import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Upload } from '../../../src/api/upload.ts';
import { sweep } from '../../../src/background-jobs/prune.ts';
import { MAX_OPEN_UPLOADS, UPLOAD_PART_BYTES } from '../../../src/domain/limits.ts';
import { appendToUpload, createUpload } from '../../../src/load/append-upload.ts';
import { openUpload, requireWholeUpload } from '../../../src/load/uploads.ts';
import { type ErrorBody, type FetchOptions, openServer, refusalOf } from '../../support/http.ts';
import { runs } from '../../support/runs.ts';
import type { TestSystem } from '../../support/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ worker: true, settings: { MAX_UPLOAD_BYTES: '40m' } });

const base64 = (text: string) => Buffer.from(text).toString('base64');
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');

async function create(bytes: number, headers: Record<string, string> = {}, key = t.key): Promise<string> {
  const all = { 'tus-resumable': '1.0.0', 'upload-length': String(bytes), ...headers };
  const answer = await server.json<Upload>('/v1/uploads', { method: 'POST', headers: all, key });
  expect(answer.status).toBe(201);
  expect(answer.headers.get('location')).toMatch(new RegExp(`^http.*/v1/uploads/${answer.body.upload_id}$`));
  return answer.body.upload_id;
}

function append(id: string, offset: number, body: string | Uint8Array<ArrayBuffer>, more: FetchOptions = {}) {
  const headers = { 'upload-offset': String(offset), 'content-type': 'application/offset+octet-stream' };
  return server.json<ErrorBody>(`/v1/uploads/${id}`, { method: 'PATCH', headers, body, ...more });
}

async function offsetOf(id: string): Promise<number> {
  const { status, headers } = await server.fetch(`/v1/uploads/${id}`, { method: 'HEAD' });
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  return Number(headers.get('upload-offset'));
}

const show = async (id: string) => (await server.json<Upload>(`/v1/uploads/${id}`)).body;

/** A request on a connection of its own that announces so many bytes and sends some of them. */
async function beginAppend(id: string, offset: number, announced: number, sent: Uint8Array) {
  const connection = await server.connect();
  connection.head(
    `PATCH /v1/uploads/${id} HTTP/1.1`,
    `Host: localhost`,
    `Authorization: Token ${t.key}`,
    `Upload-Offset: ${offset}`,
    'Content-Type: application/offset+octet-stream',
    `Content-Length: ${announced}`,
  );
  await connection.write(sent);
  return connection;
}

const partsOf = (id: string) =>
  t.system.db.selectFrom('upload_parts').selectAll().where('upload_id', '=', id).execute();

let serial = 0;
const someUsers = (count: number) => {
  const rows = Array.from({ length: count }, (_, i) => `${++serial}-${i};Anna ${i}\n`);
  return Buffer.from(`Kunden-Nr;Name\n${rows.join('')}`);
};

describe('an upload that comes in several requests', () => {
  // proves: upload-resumes
  test('is inspected with any options and loaded by its id, byte for byte as it was sent', async () => {
    const file = someUsers(500);
    const metadata = `filename ${base64('kunden.csv')},filetype ${base64('text/csv')}`;
    const id = await create(file.length, { 'upload-metadata': metadata });
    expect(await show(id)).toMatchObject({ filename: 'kunden.csv', received_bytes: 0, sha256: null });
    for (const [start, end] of [
      [0, 1000],
      [1000, 1001],
      [1001, file.length],
    ] as const) {
      expect(await offsetOf(id)).toBe(start);
      const { status, headers } = await append(id, start, new Uint8Array(file.subarray(start, end)));
      expect([status, headers.get('upload-offset')]).toEqual([204, String(end)]);
      expect(headers.get('upload-expires')).toMatch(/GMT$/);
    }
    expect(await show(id)).toMatchObject({ received_bytes: file.length, sha256: sha256(file) });
    const inspect = async (options: object) =>
      (
        await server.json<Record<string, unknown>>('/v1/imports/inspect', {
          json: { upload_id: id, ...options },
        })
      ).body;
    expect(await inspect({})).toMatchObject({
      upload_id: id,
      filename: 'kunden.csv',
      sha256: sha256(file),
      map: { 'Kunden-Nr': 'user_id' },
    });
    expect(await inspect({ map: { Name: 'user_id' } })).toMatchObject({ map: { Name: 'user_id' } });
    expect(await inspect({ delimiter: 'comma' })).toMatchObject({ columns: [{ name: 'Kunden-Nr;Name' }] });
    const { body } = await server.json<{ job_id: string }>('/v1/imports', {
      json: { upload_id: id, map: { 'Kunden-Nr': 'user_id' } },
    });
    expect(await t.ended(body.job_id)).toMatchObject({ status: 'completed', sha256: sha256(file) });
  });

  // proves: upload-resumes
  test('goes on after a lost connection from the last byte that came', async () => {
    const file = randomBytes(UPLOAD_PART_BYTES + 3_000_000);
    const id = await create(file.length);
    const sent = UPLOAD_PART_BYTES + 1_000_000;
    const connection = await beginAppend(id, 0, file.length, file.subarray(0, sent));
    // What is beyond a whole part is in the ledger only once the request has ended.
    await waitFor('the first part', async () => (await offsetOf(id)) >= UPLOAD_PART_BYTES);
    connection.socket.end();
    // Bytes that were still under way when the connection ended may be lost with it: the offset says which came.
    await waitFor('the rest to be taken', async () => {
      const offset = await offsetOf(id);
      return (await append(id, offset, new Uint8Array(file.subarray(offset)))).status === 204 ? true : null;
    });
    expect(await show(id)).toMatchObject({ received_bytes: file.length, sha256: sha256(file) });
  });

  // proves: upload-resumes
  test('that is cut into requests anywhere, each whole or broken off, is what was sent', async () => {
    const { environmentId } = t.environment;
    const limits = { maxUploadBytes: 1e9, maxInflatedBytes: 1e9, minBytesPerSecond: 0, stallMs: 20_000 };
    const said = { filename: null, contentType: null, isGzip: false };
    const { signal } = new AbortController();
    const requests = fc.array(
      fc.record({ pieces: fc.array(fc.nat({ max: 5_000 }), { maxLength: 4 }), breaks: fc.boolean() }),
      { maxLength: 8 },
    );
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 20_000 }), requests, async (size, sends) => {
      const file = randomBytes(size);
      const { uploadId } = await createUpload(t.system, environmentId, size, said, limits);
      let at = 0;
      for (const { pieces, breaks } of [...sends, { pieces: [size], breaks: false }]) {
        const from = at;
        async function* open() {
          for (const bytes of pieces.filter((each) => each > 0)) {
            const end = Math.min(at + bytes, size);
            if (end > at) yield file.subarray(at, end);
            at = end;
          }
          if (breaks) throw new Error('the connection was lost');
        }
        const appended = { offset: from, announcedBytes: null, open };
        const result = appendToUpload(t.system, environmentId, uploadId, appended, limits, signal);
        if (breaks) await expect(result).rejects.toThrow('the connection was lost');
        else expect((await result).receivedBytes).toBe(at);
      }
      const whole = await requireWholeUpload(t.system, environmentId, uploadId);
      expect(whole.sha256).toBe(sha256(file));
      const stored = await openUpload(t.system.files, whole).toArray();
      expect(Buffer.concat(stored).equals(file)).toBe(true);
    });
    await fc.assert(property, { numRuns: runs(25) });
  });

  test('is neither inspected nor loaded before it is whole', async () => {
    const id = await create(100);
    await append(id, 0, 'user_id\n');
    for (const path of ['/v1/imports/inspect', '/v1/imports']) {
      const named = `${path}?upload_id=${id}`;
      expect(await refusalOf(server, named, { method: 'POST' })).toEqual([409, ['upload_incomplete']]);
    }
  });

  test('that is removed while it is read is not found', async () => {
    const file = someUsers(10);
    const id = await create(file.length);
    for (const [start, end] of [
      [0, 20],
      [20, file.length],
    ] as const)
      expect((await append(id, start, new Uint8Array(file.subarray(start, end)))).status).toBe(204);
    const { parts } = await requireWholeUpload(t.system, t.environment.environmentId, id);
    expect(parts).toHaveLength(2);
    for (const { ref } of parts.slice(1)) await t.system.files.remove(ref);
    for (const path of ['/v1/imports', '/v1/imports/inspect']) {
      const named = `${path}?upload_id=${id}`;
      expect(await refusalOf(server, named, { method: 'POST' })).toEqual([404, ['not_found']]);
    }
  });
});

describe('a request that appends', () => {
  // proves: upload-resumes
  test('from anywhere but the end of the upload is refused, and learns where that is', async () => {
    const id = await create(10);
    expect((await append(id, 0, '01234')).status).toBe(204);
    for (const offset of [0, 4, 6, 10]) {
      const { status, body } = await append(id, offset, 'xx');
      expect([status, body.errors[0]?.error_code]).toEqual([409, 'offset_conflict']);
      expect(body.errors[0]?.details).toBe('Upload-Offset: 5');
    }
    expect((await append(id, 5, '56789')).status).toBe(204);
    expect((await show(id)).sha256).toBe(sha256('0123456789'));
  });

  // proves: upload-resumes
  test('while another still sends goes on alone, and what the other brings leaves nothing', async () => {
    const before = (await t.storedFiles()).length;
    const id = await create(10);
    const slow = await beginAppend(id, 0, 10, Buffer.from('abcde'));
    await waitFor('the first request to have begun', async () => {
      const { attempt } = await t.system.db
        .selectFrom('uploads')
        .select('attempt')
        .where('upload_id', '=', id)
        .executeTakeFirstOrThrow();
      return attempt === 1;
    });
    expect((await append(id, 0, '0123456789')).status).toBe(204);
    await slow.write('fghij');
    expect(await slow.until(/HTTP\/1.1 (\d+)/)).toMatchObject({ 1: '409' });
    slow.socket.destroy();
    expect((await show(id)).sha256).toBe(sha256('0123456789'));
    expect((await t.storedFiles()).length).toBe(before + 1);
  });

  test('with more than the upload was created for is refused, whether it says so or not', async () => {
    const before = (await t.storedFiles()).length;
    const id = await create(4);
    const said = await append(id, 0, '01234');
    expect([said.status, said.body.errors[0]?.error_code]).toEqual([413, 'payload_too_large']);
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('0123'));
        controller.enqueue(Buffer.from('4'));
        controller.close();
      },
    });
    const unsaid = await append(id, 0, body as never, { duplex: 'half', body });
    expect([unsaid.status, unsaid.body.errors[0]?.error_code]).toEqual([413, 'payload_too_large']);
    expect(await offsetOf(id)).toBe(0);
    expect((await t.storedFiles()).length).toBe(before);
  });

  test('needs the media type of the protocol, an offset, and a version that is spoken here', async () => {
    const id = await create(4);
    const at = `/v1/uploads/${id}`;
    const type = { 'content-type': 'application/offset+octet-stream' };
    const patch = (headers: Record<string, string>) =>
      refusalOf(server, at, { method: 'PATCH', headers, body: '0123' });
    expect(await patch({ 'upload-offset': '0', 'content-type': 'text/csv' })).toEqual([
      415,
      ['unsupported_media_type'],
    ]);
    expect(await patch(type)).toEqual([400, ['missing_field']]);
    expect(await patch({ ...type, 'upload-offset': '-1' })).toEqual([400, ['invalid_field']]);
    const old = await patch({ ...type, 'upload-offset': '0', 'tus-resumable': '0.2.2' });
    expect(old).toEqual([412, ['unsupported_version']]);
    expect(await offsetOf(id)).toBe(0);
  });
});

describe('room for an upload', () => {
  const post = (headers: Record<string, string>, key = t.key) =>
    refusalOf(server, '/v1/uploads', { method: 'POST', headers, key });

  test('is refused without a length, for nothing, for too much, and with metadata that are none', async () => {
    expect(await post({})).toEqual([400, ['missing_field']]);
    expect(await post({ 'upload-length': 'x' })).toEqual([400, ['invalid_field']]);
    expect(await post({ 'upload-length': '0' })).toEqual([400, ['empty_file']]);
    expect(await post({ 'upload-length': '41943041' })).toEqual([413, ['payload_too_large']]);
    for (const metadata of ['filename a.csv', `filename ${base64('a')} b`]) {
      const headers = { 'upload-length': '1', 'upload-metadata': metadata };
      expect(await post(headers)).toEqual([400, ['invalid_field']]);
    }
  });

  test(`is there for ${MAX_OPEN_UPLOADS} that are incomplete, and again when one of them is whole`, async () => {
    const { key } = await t.addEnvironment(`busy${++serial}`);
    const ids = await Promise.all(Array.from({ length: MAX_OPEN_UPLOADS }, () => create(1, {}, key)));
    expect(await post({ 'upload-length': '1' }, key)).toEqual([429, ['rate_limited']]);
    expect((await append(ids[0] ?? '', 0, 'x', { key })).status).toBe(204);
    await create(1, {}, key);
    const listed = await server.json<Upload[]>('/v1/uploads', { key });
    expect(listed.body).toHaveLength(MAX_OPEN_UPLOADS);
  });
});

describe('what has come of an upload', () => {
  test('is of its environment alone', async () => {
    const id = await create(4);
    const { key } = await t.addEnvironment(`other${++serial}`);
    for (const method of ['GET', 'DELETE']) {
      expect(await refusalOf(server, `/v1/uploads/${id}`, { method, key })).toEqual([404, ['not_found']]);
    }
    const { status } = await append(id, 0, '0123', { key });
    expect([status, await offsetOf(id)]).toEqual([404, 0]);
    expect((await server.json<Upload[]>('/v1/uploads', { key })).body).toEqual([]);
  });

  // proves: upload-resumes
  test('goes when it is removed, also while more of it comes', async () => {
    const before = (await t.storedFiles()).length;
    const id = await create(10);
    await append(id, 0, '01234');
    const slow = await beginAppend(id, 5, 5, Buffer.from('56'));
    await waitFor('the request to have begun', async () => {
      const row = t.system.db.selectFrom('uploads').select('attempt').where('upload_id', '=', id);
      return (await row.executeTakeFirstOrThrow()).attempt === 2;
    });
    const removed = await server.fetch(`/v1/uploads/${id}`, { method: 'DELETE' });
    expect(removed.status).toBe(204);
    await slow.write('789');
    expect(await slow.until(/HTTP\/1.1 (\d+)/)).toMatchObject({ 1: '409' });
    slow.socket.destroy();
    expect(await refusalOf(server, `/v1/uploads/${id}`)).toEqual([404, ['not_found']]);
    expect(await partsOf(id)).toEqual([]);
    expect((await t.storedFiles()).length).toBe(before);
  });

  // proves: upload-resumes
  test('goes with the sweep once it has expired, and with what a killed process had stored and not counted', async () => {
    const before = (await t.storedFiles()).length;
    const id = await create(10);
    await append(id, 0, '01234');
    // A process that is killed once the file of a part is stored: it counts nothing, and removes nothing.
    const gone = new Error('the process is gone');
    const pool = { connect: () => Promise.reject(gone) } as unknown as TestSystem['system']['pool'];
    async function* open() {
      yield Buffer.from('56');
    }
    const limits = { maxUploadBytes: 100, maxInflatedBytes: 100, minBytesPerSecond: 0, stallMs: 20_000 };
    const killed = appendToUpload(
      { ...t.system, pool },
      t.environment.environmentId,
      id,
      { offset: 5, announcedBytes: 2, open },
      limits,
      new AbortController().signal,
    );
    await expect(killed).rejects.toThrow(gone);
    expect([await offsetOf(id), (await t.storedFiles()).length]).toEqual([5, before + 2]);
    await t.system.db
      .updateTable('received_files')
      .set({ received_at: sql<Date>`now() - interval '2 hours'` })
      .execute();
    await sweep(t.system);
    expect([await offsetOf(id), (await t.storedFiles()).length]).toEqual([5, before + 1]);
    await t.system.db
      .updateTable('uploads')
      .set({ expires_at: sql<Date>`now()` })
      .where('upload_id', '=', id)
      .execute();
    expect((await append(id, 5, '56789')).status).toBe(404);
    await sweep(t.system);
    expect((await t.storedFiles()).length).toBe(before);
    expect(await partsOf(id)).toEqual([]);
  });
});
