import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { sql } from 'kysely';
import type { Static } from 'typebox';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createApiKey, revokeApiKey } from '../../../src/access/key-store.ts';
import type { createdExport, ExportJob as Detail } from '../../../src/export/api.ts';
import { fileLinks, findLinkedFile } from '../../../src/export/file-links.ts';
import { requireExport } from '../../../src/export/inspect-exports.ts';
import { switchChangeLog } from '../../../src/postgres/change-log.ts';
import { connectTo } from '../../support/servers/connect.ts';
import {
  type Answer,
  type ErrorBody,
  openServer,
  refusalOf,
  serve,
  signIn,
} from '../../support/servers/http.ts';
import { openTestSystem, type Tenant, type TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

type Created = Static<typeof createdExport.schema>;
type FileItem = Detail['presigned_urls'][number];

const exportsPath = '/api/v1/analytics/exports';
const unknownJob = '01a1f879-8845-7223-9ca4-ceafb3823817';

const adminKey = 'an-administrators-key-of-enough-length';
const { t, server } = await openServer({ worker: true, settings: { ADMIN_KEY: adminKey } });
let segmentId: number;
beforeAll(async () => {
  segmentId = await fill(t);
});

async function send(path: string, body: unknown): Promise<void> {
  const { status } = await server.json(path, jsonPost(body));
  expect(status).toBe(202);
}

function jsonPost(body: unknown, headers: Record<string, string> = {}) {
  return { json: body, headers };
}

/** Stores two users, a company, three events, a feature and a segment. Returns the segment's id. */
async function fill({ system, environment }: TestSystem): Promise<number> {
  await send('/v1/identify', {
    user_id: 'u1',
    metadata: { plan: 'pro' },
    company: { company_id: 'c1', size: 5 },
  });
  await send('/v1/identify', { user_id: 'u2', metadata: { plan: 'free', name: '=1+1' } });
  for (const [user_id, event_name] of [
    ['u1', 'logged_in'],
    ['u1', 'page_seen'],
    ['u2', 'logged_in'],
  ]) {
    await send('/v1/track', { user_id, event_name, metadata: {} });
  }
  const { environmentId } = environment;
  await sql`insert into keyed_items (environment_id, kind, key, display_name, data_type)
    values (${environmentId}, 'features', 'a_feature', 'A feature', 'string')`.execute(system.db);
  const definition = JSON.stringify({ property: 'plan', equals: 'pro' });
  const { rows } = await sql<{ id: number }>`
    insert into segments
      (environment_id, key, title, usage, category, is_hidden, is_protected, status, definition)
    values (${environmentId}, 'pro', 'Pro', '', '', false, false, 'active', ${definition})
    returning segment_id as id`.execute(system.db);
  return rows[0]?.id ?? 0;
}

const create = (body: unknown, options: { key?: string; headers?: Record<string, string> } = {}) =>
  server.json<Created>(exportsPath, {
    ...jsonPost(body, options.headers),
    ...(options.key && { key: options.key }),
  });

const show = (jobId: string, options = {}): Promise<Answer<Detail>> =>
  server.json<Detail>(`${exportsPath}/jobs/${jobId}`, options);

async function completed(body: unknown = {}): Promise<Detail> {
  const { status, body: created } = await create(body);
  expect(status, JSON.stringify(created)).toBe(201);
  return ended(created.job_id);
}

async function ended(jobId: string): Promise<Detail> {
  return waitFor(`export ${jobId} to end`, async () => {
    const { body } = await show(jobId);
    if (body.end_time !== null) return body;
    const { rows } = await sql`select last_error from tasks where job_id = ${jobId}`.execute(t.system.db);
    throw new Error(JSON.stringify([body, rows]));
  });
}

/** On S3, these tests prove only that files are stored, found and removed. */
const onS3 = process.env['SLUICE_TEST_STORAGE'] === 's3';

const fileOf = (detail: Detail, name: string): FileItem => {
  const file = detail.presigned_urls.find(({ filename }) => filename.startsWith(name));
  if (file === undefined) throw new Error(`${name} is not among ${JSON.stringify(detail)}`);
  return file;
};

const download = (url: string, options = {}) => server.fetch(url, { key: null, ...options });

async function records(detail: Detail, name: string): Promise<Record<string, unknown>[]> {
  const bytes = Buffer.from(await (await download(fileOf(detail, name).url)).arrayBuffer());
  const text = gunzipSync(bytes).toString();
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function problems(body: unknown): Promise<[string, string][]> {
  const answer = await server.json<ErrorBody>(exportsPath, jsonPost(body));
  expect(answer.status).toBe(400);
  return answer.body.errors.map(({ error_code, details }) => [error_code, details]);
}

describe.skipIf(onS3)('POST /api/v1/analytics/exports', () => {
  test('a new export is answered 201 with the environment, the job and its address', async () => {
    const { status, body } = await create({});
    expect(status).toBe(201);
    expect(body).toEqual({
      environment_app_token: t.environment.appToken,
      environment_name: 'default',
      job_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      links: `${server.address}${exportsPath}/jobs/${body.job_id}`,
      start_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    await ended(body.job_id);
  });

  test.each([
    ['{', 'invalid_json'],
    ['[]', 'invalid_field'],
    ['null', 'invalid_field'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'invalid_json'],
  ])('an export with the body %s is refused', async (body, code) => {
    const answer = await server.json<ErrorBody>(exportsPath, {
      method: 'POST',
      body: body as never,
      headers: { 'content-type': 'application/json' },
    });
    expect([answer.status, answer.body.errors[0]?.error_code]).toEqual([400, code]);
  });

  test.each([
    [{ from: '2026-13-01' }, 'invalid_date', 'from'],
    [{ exclusions: Array.from({ length: 101 }, (_, n) => `${n}*`).join() }, 'invalid_field', 'exclusions'],
    [{ to: 'yesterday' }, 'invalid_date', 'to'],
    [{ from: '2026-02-02', to: '2026-02-01' }, 'invalid_range', 'from'],
    [{ from: '2999-01-01' }, 'invalid_range', 'from'],
    [{ since: '7:5:' }, 'invalid_cursor', 'since'],
    [{ include_removed: true, user_id: 'u1' }, 'invalid_field', 'user_id'],
    [{ segment_id: 999_999 }, 'unknown_segment', 'segment_id'],
    [{ event_type: ['nobody_did_this'] }, 'unknown_event_type', 'event_type: nobody_did_this'],
    [{ event_type: { a: 1 } }, 'invalid_field', 'event_type[0]'],
    [{ user_id: ['ok', ''] }, 'invalid_field', 'user_id[1]'],
    [{ user_id: ['a\u0000b'] }, 'invalid_field', 'user_id[0]'],
    [{ exclusions: 'user:a,nothing' }, 'invalid_field', 'exclusions: nothing'],
    [{ exclusions: 'segment:999999' }, 'unknown_segment', 'exclusions: segment:999999'],
    [{ emails: ['Ada <ada@example.com>'] }, 'invalid_field', 'emails[0]'],
    [{ emails: ['a@b.c\r\nBcc: x@y.z'] }, 'invalid_field', 'emails[0]'],
    [{ emails: ['=?utf-8?q?x?=@b.c'] }, 'invalid_field', 'emails[0]'],
    [{ event_type: ['a\0b'] }, 'invalid_field', 'event_type[0]'],
    [{ emails: Array.from({ length: 21 }, (_, n) => `a${n}@b.c`) }, 'invalid_field', 'emails'],
    [{ format: 'xml' }, 'invalid_field', 'format'],
    [{ escape_formulas: 'no' }, 'invalid_field', 'escape_formulas'],
    [{ format: 'parquet', compression: 'gzip' }, 'invalid_field', 'compression'],
    [{ format: 'avro' }, 'invalid_field', 'format'],
  ])('an export with %j is refused', async (body, code, details) => {
    expect(await problems(body)).toEqual([[code, details]]);
  });

  test('an export at a cursor that this database never had is refused', async () => {
    for (const path of [exportsPath, `${exportsPath}/preview`]) {
      const { status, body } = await server.json<ErrorBody>(path, jsonPost({ since: '1:99999999999999:' }));
      expect([status, body.errors[0]?.error_code]).toEqual([410, 'cursor_expired']);
    }
  });

  test('an export at a cursor works while no changes are kept, and is refused if it asks for removals', async () => {
    const { rows } = await sql<{ since: string }>`select current_cursor() as since`.execute(t.system.db);
    const [{ since }] = rows as [{ since: string }];
    const switchLog = (days: number) =>
      connectTo(t.databaseUrl, (client) => switchChangeLog(client, days, t.system.log));
    await switchLog(0);
    onTestFinished(() => switchLog(14));
    const request = { since, event_type: ['users'] };
    await send('/v1/identify', { user_id: 'u2', metadata: { plan: 'team' } });
    const { body: preview } = await server.json<{ rows: number }>(
      `${exportsPath}/preview`,
      jsonPost(request),
    );
    expect(preview.rows).toBe(1);
    const removals = { ...request, include_removed: true };
    expect(await refusalOf(server, exportsPath, jsonPost(removals))).toEqual([400, ['invalid_field']]);
    await switchLog(14);
    expect(await refusalOf(server, exportsPath, jsonPost(removals))).toEqual([410, ['cursor_expired']]);
  });

  test('unknown fields of an export are ignored, and named in the answer and in the job', async () => {
    const { status, body } = await create({
      ...{ form: '2026-01-01', properties: ['plan'], 'a\0b': null, 'c\0d': 1 },
      event_type: 'users',
    });
    expect(status).toBe(201);
    const named = ['form', 'properties', 'c\ufffdd'];
    expect(body.warnings?.map(({ details }) => details)).toEqual(named);
    const detail = await ended(body.job_id);
    expect(detail.warnings).toEqual(body.warnings);
    expect(await records(detail, 'users')).toHaveLength(2);
    const job = await server.json<Detail>(`/v1/background_jobs/${body.job_id}`);
    expect(job.body.warnings).toEqual(body.warnings);
  });

  test('a refused export names every fault at once, including unknown segments and event types', async () => {
    const faults = await problems({
      from: 'x',
      to: 'y',
      emails: ['no'],
      event_type: ['unheard_of'],
      segment_id: 999_999,
      exclusions: 'x,segment:999998',
      format: 'x',
    });
    expect(faults.map(([code]) => code).sort()).toEqual(
      [
        ...['invalid_date', 'invalid_date', 'invalid_field', 'invalid_field', 'invalid_field'],
        ...['unknown_event_type', 'unknown_segment', 'unknown_segment'],
      ].sort(),
    );
  });

  test('an export repeated with its Idempotency-Key gives the first answer, and conflicts with another body', async () => {
    const headers = { 'idempotency-key': 'nightly' };
    const first = await create({ from: '2026-01-01' }, { headers });
    const again = await create({ from: '2026-01-01' }, { headers });
    expect([again.status, again.body]).toEqual([201, first.body]);
    const other = await create({ from: '2026-01-02' }, { headers });
    expect(other.status).toBe(409);
  });
});

describe.skipIf(onS3)('event_type', () => {
  const names = (detail: Detail) =>
    detail.presigned_urls.map(({ filename }) => filename.split('.')[0]).sort();

  test.each([
    [[], ['companies', 'events', 'users']],
    ['users', ['users']],
    [['track'], ['events']],
    [
      ['companies', 'logged_in'],
      ['companies', 'events'],
    ],
    [['a_feature'], ['events']],
  ])('an export with event_type %j has the files %j', async (eventType, files) => {
    expect(names(await completed({ event_type: eventType }))).toEqual(files);
  });

  test('an export by an event key has only its events, and an export by the key and track has all', async () => {
    const some = await completed({ event_type: ['logged_in'] });
    expect((await records(some, 'events')).map((event) => event['event_name'])).toEqual([
      'logged_in',
      'logged_in',
    ]);
    expect(await records(await completed({ event_type: ['logged_in', 'track'] }), 'events')).toHaveLength(3);
  });
});

describe('a completed export', () => {
  test('a completed export shows its files, whose links lead to them', async () => {
    const detail = await completed();
    expect(detail).toMatchObject({
      app_token: t.environment.appToken,
      type: 'export',
      status: 'completed',
      progress: 1,
      rows: 6,
      failure: null,
      files_expired: false,
    });
    for (const file of [...detail.presigned_urls, ...(detail.manifest === null ? [] : [detail.manifest])]) {
      const response = await download(file.url);
      const bytes = Buffer.from(await response.arrayBuffer());
      expect([response.status, bytes.length]).toEqual([200, file.bytes]);
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(file.sha256);
      expect(response.headers.get('content-length')).toBe(String(file.bytes));
      expect(response.headers.get('content-disposition')).toBe(`attachment; filename="${file.filename}"`);
    }
    const users = await records(detail, 'users');
    expect(users.map((user) => user['user_id'])).toEqual(['u1', 'u2']);
  });

  test('a completed export is a job record among the background jobs', async () => {
    const { job_id } = await completed({ format: 'csv', compression: 'none' });
    const { body } = await server.json<Record<string, unknown>[]>('/v1/background_jobs?type=export&limit=1');
    expect(body[0]).toMatchObject({
      job_id,
      type: 'export',
      status: 'completed',
      filename: expect.stringMatching(/^export-\d{4}-\d\d-\d\d\.csv$/),
      total_rows: 6,
      file_size: expect.any(Number),
      processing_since: expect.stringMatching(/Z$/),
      elapsed_time: expect.any(Number),
      links: `${server.address}${exportsPath}/jobs/${job_id}`,
    });
    const one = await server.json<Record<string, unknown>>(`/v1/background_jobs/${job_id}`);
    expect([one.status, one.body['completed_rows'], one.body['progress']]).toEqual([200, 6, 1]);
    expect((await server.json(`/v1/background_jobs/${job_id}/rejects`)).status).toBe(404);
    const post = (action: string) =>
      refusalOf(server, `/v1/background_jobs/${job_id}/${action}`, { method: 'POST' });
    expect(await post('retry')).toEqual([409, ['job_not_retryable']]);
    expect(await post('cancel')).toEqual([409, ['job_not_cancellable']]);
  });
});

describe.skipIf(onS3)('the list of exports', () => {
  test('the list of exports is paged, newest first, and filtered by status', async () => {
    const tenant = await t.addEnvironment('lister');
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await create({}, { key: tenant.key })).body.job_id);
    const seen: string[] = [];
    let next: string | undefined = `${exportsPath}/jobs?limit=2`;
    while (next !== undefined) {
      const answer: Answer<Detail[]> = await server.json<Detail[]>(next, { key: tenant.key });
      seen.push(...answer.body.map((item) => item.job_id));
      expect(answer.headers.get('x-total-count')).toBe('3');
      next = /^<(http[^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(seen).toEqual(ids);
    const none = await server.json<Detail[]>(`${exportsPath}/jobs?status=failed`, { key: tenant.key });
    expect([none.body, none.headers.get('x-total-count')]).toEqual([[], '0']);
    for (const query of ['limit=0', 'status=done', 'cursor=x']) {
      expect((await server.json(`${exportsPath}/jobs?${query}`, { key: tenant.key })).status).toBe(400);
    }
  });
});

describe.skipIf(onS3)("another environment's export", () => {
  let other: Tenant;
  let jobId: string;
  beforeAll(async () => {
    other = await t.addEnvironment('other');
    jobId = (await create({}, { key: other.key })).body.job_id;
    await waitFor('it to end', async () => (await show(jobId, { key: other.key })).body.end_time !== null);
  });

  test.each([
    ['GET', () => `${exportsPath}/jobs/${jobId}`],
    ['POST', () => `/v1/background_jobs/${jobId}/cancel`],
    ['GET', () => `${exportsPath}/jobs/${unknownJob}`],
  ])('%s of an export that is unknown or of another environment is 404', async (method, path) => {
    expect(await refusalOf(server, path(), { method })).toEqual([404, ['not_found']]);
  });

  // proves: environments-apart
  test('exports and segments of one environment are unknown to another', async () => {
    const lists = [`${exportsPath}/jobs?limit=500`, '/v1/background_jobs?type=export&limit=500'];
    for (const path of lists) {
      const { body } = await server.json<{ job_id: string }[]>(path);
      expect(body.map((item) => item.job_id)).not.toContain(jobId);
    }
    expect((await create({ segment_id: segmentId }, { key: other.key })).status).toBe(400);
    expect((await create({ event_type: 'logged_in' }, { key: other.key })).status).toBe(400);
  });
});

describe('a link', () => {
  let detail: Detail;
  let link: URL;
  let file: FileItem;
  beforeAll(async () => {
    detail = await completed({ compression: 'none' });
    file = fileOf(detail, 'users');
    link = new URL(file.url);
  });

  const changed = (change: (url: URL) => void): string => {
    const url = new URL(link);
    change(url);
    return url.href;
  };
  const readLink = async (url: string, headers: Record<string, string> = {}) => {
    const response = await download(url, { headers });
    return { response, text: await response.text() };
  };

  // proves: links
  test('a link that was changed anywhere is answered like a link to no file', async () => {
    const wrong = [
      changed((url) => url.searchParams.set('signature', 'x')),
      changed((url) => url.searchParams.set('signature', `${url.searchParams.get('signature')}A`)),
      changed((url) => url.searchParams.delete('signature')),
      changed((url) => url.searchParams.append('signature', 'x')),
      changed((url) => url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1))),
      changed((url) => url.searchParams.set('expires', `0${url.searchParams.get('expires')}`)),
      changed((url) => url.searchParams.delete('expires')),
      changed((url) => url.searchParams.delete('key')),
      changed((url) => url.searchParams.set('key', 'another')),
      changed((url) => url.searchParams.append('key', 'another')),
      changed((url) => {
        url.pathname = url.pathname.replace('users.', 'events.');
      }),
      changed((url) => {
        url.pathname = url.pathname.replace('users.ndjson', '..%2f..%2fpackage.json');
      }),
      changed((url) => {
        url.pathname = url.pathname.replace(detail.job_id, unknownJob);
      }),
      changed((url) => {
        url.pathname = url.pathname.replace(detail.job_id, 'none');
      }),
    ];
    const answers = new Set<string>();
    for (const url of wrong) {
      const { response, text } = await readLink(url);
      expect(response.status, url).toBe(404);
      answers.add(text);
    }
    expect(answers.size).toBe(1);
  });

  // proves: links
  test('a link ends with the key that asked for it, and with no other', async () => {
    const label = { label: 'asks for links' };
    const { environmentId } = t.environment;
    const { key, keyId } = await createApiKey(t.system.db, environmentId, label);
    const { body } = await server.json<Detail>(`${exportsPath}/jobs/${detail.job_id}`, { key });
    const { url } = fileOf(body, 'users');
    expect((await readLink(url)).response.status).toBe(200);
    await revokeApiKey(t.system.db, environmentId, keyId);
    const { response, text } = await readLink(url);
    expect([response.status, JSON.parse(text).errors[0].error_code]).toEqual([410, 'link_expired']);
    expect((await readLink(link.href)).response.status).toBe(200);
  });

  test('a link of the configured key ends when that key changes', async () => {
    const exportJob = await requireExport(t.system, t.environment.environmentId, detail.job_id);
    const expireAt = new Date(Date.now() + 60_000);
    const { db, files } = t.system;
    const withKey = (apiKey: string | null) => ({ db, files, config: { apiKey, adminKey: null } });
    const holder = { kind: 'key', id: 'API_KEY' } as const;
    const { files: links } = await fileLinks(withKey('first'), exportJob, 'http://us', expireAt, holder);
    const { searchParams, pathname } = new URL(links[0]?.url ?? '');
    const request = {
      jobId: detail.job_id,
      filename: pathname.split('/').at(-1) ?? '',
      expires: searchParams.get('expires') ?? '',
      holder: { kind: 'key', id: searchParams.get('key') ?? '' } as const,
      signature: searchParams.get('signature') ?? '',
    };
    expect(await findLinkedFile(withKey('first'), request)).toHaveProperty('ref');
    for (const apiKey of ['second', null]) {
      await expect(findLinkedFile(withKey(apiKey), request)).rejects.toThrow('the link to it is wrong');
    }
  });

  // proves: links
  test('a link ends with the session that asked for it, and with the key of the session', async () => {
    const admin = await signIn(server, adminKey);
    const { body } = await server.json<Detail>(`${exportsPath}/jobs/${detail.job_id}`, admin);
    const { url } = fileOf(body, 'users');
    expect((await readLink(url)).response.status).toBe(200);
    const config = { ...t.config, adminKey: `another-${adminKey}` };
    const changed = await serve({ ...t, system: { ...t.system, config } });
    onTestFinished(() => changed.stop());
    const { pathname, search } = new URL(url);
    expect((await changed.fetch(pathname + search, { key: null })).status).toBe(404);
    await server.fetch('/v1/console/session', { ...admin, method: 'DELETE' });
    const { response, text } = await readLink(url);
    expect([response.status, JSON.parse(text).errors[0].error_code]).toEqual([410, 'link_expired']);
  });

  test('a link answers one range, and names it', async () => {
    const { text: whole } = await readLink(link.href);
    const size = file.bytes;
    for (const [range, part, contentRange] of [
      ['bytes=0-4', whole.slice(0, 5), `bytes 0-4/${size}`],
      ['bytes=5-', whole.slice(5), `bytes 5-${size - 1}/${size}`],
      ['bytes=-3', whole.slice(-3), `bytes ${size - 3}-${size - 1}/${size}`],
      ['bytes=0-99999999', whole, `bytes 0-${size - 1}/${size}`],
    ] as const) {
      const { response, text } = await readLink(link.href, { range });
      expect([response.status, text, response.headers.get('content-range')]).toEqual([
        206,
        part,
        contentRange,
      ]);
      expect(response.headers.get('content-length')).toBe(String(part.length));
    }
    for (const range of ['bytes=0-1,3-4', 'bytes=5-2', 'items=0-1', 'bytes=-']) {
      expect((await readLink(link.href, { range })).text, range).toBe(whole);
    }
    const beyond = await readLink(link.href, { range: `bytes=${size}-` });
    expect([beyond.response.status, beyond.response.headers.get('content-range')]).toEqual([
      416,
      `bytes */${size}`,
    ]);
    const etag = `"${file.sha256}"`;
    expect((await readLink(link.href, { range: 'bytes=0-4', 'if-range': etag })).response.status).toBe(206);
    expect((await readLink(link.href, { range: 'bytes=0-4', 'if-range': '"old"' })).response.status).toBe(
      200,
    );
  });

  test('a caller that has the file of a link already is answered 304', async () => {
    const etag = (await readLink(link.href)).response.headers.get('etag');
    expect(etag).toBe(`"${file.sha256}"`);
    const { response, text } = await readLink(link.href, { 'if-none-match': `"x", ${etag}` });
    expect([response.status, text, response.headers.get('etag')]).toEqual([304, '', etag]);
  });

  test('a link is 410 after its time, and when its files are gone', async () => {
    const short = await openTestSystem({ worker: true });
    const there = await serve(short);
    try {
      const created = await there.json<Created>(exportsPath, { method: 'POST' });
      const job = await waitFor('the export to end', async () => {
        const { body } = await there.json<Detail>(`${exportsPath}/jobs/${created.body.job_id}`);
        return body.status === 'completed' && body;
      });
      const { url } = fileOf(job, 'users');
      const realNow = Date.now;
      Date.now = () => realNow() + 49 * 3_600_000;
      try {
        const late = await there.json<ErrorBody>(url, { key: null });
        expect([late.status, late.body.errors[0]?.error_code]).toEqual([410, 'link_expired']);
      } finally {
        Date.now = realNow;
      }
      await short.system.files.removeFolder(`exports/${created.body.job_id}` as never);
      const answer = await there.json<ErrorBody>(url, { key: null });
      expect([answer.status, answer.body.errors[0]?.error_code]).toEqual([410, 'job_expired']);
      await sql`update exports set files_expired_at = now()`.execute(short.system.db);
      const expired = await there.json<ErrorBody>(url, { key: null });
      expect([expired.status, expired.body.errors[0]?.error_code]).toEqual([410, 'job_expired']);
      const { body } = await there.json<Detail>(`${exportsPath}/jobs/${created.body.job_id}`);
      expect([body.files_expired, body.presigned_urls]).toEqual([true, []]);
    } finally {
      await there.stop();
      await short.close();
    }
  });
});

test('an export is cancelled once, and only by keys that may export', async () => {
  const idle = await openTestSystem();
  const there = await serve(idle);
  try {
    const label = { label: 'imports', scopes: ['import'] } as const;
    const { key } = await createApiKey(idle.system.db, idle.environment.environmentId, label);
    const { body: created } = await there.json<Created>(exportsPath, { method: 'POST' });
    const path = `/v1/background_jobs/${created.job_id}/cancel`;
    expect((await there.json(path, { method: 'POST', key })).status).toBe(403);
    const once = { method: 'POST', headers: { 'idempotency-key': created.job_id } };
    expect(await there.json(path, once)).toMatchObject({ status: 202, body: { status: 'cancelled' } });
    expect((await there.json(path, once)).status).toBe(202);
    expect((await there.json(path, { method: 'POST' })).status).toBe(409);
  } finally {
    await there.stop();
    await idle.close();
  }
});
