import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { DeletionJobDetail as Detail, outcomePage } from '../../../src/deletion/api.ts';
import type { JobRecord as Job } from '../../../src/http/job.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

type Outcomes = Static<typeof outcomePage.schema>;

const { t, server } = await openServer({ worker: true });
const neighbour = await t.addEnvironment('neighbour');

const request = (method: string, body: unknown, headers: Record<string, string> = {}) => ({
  method,
  json: body,
  headers,
});

async function send(path: string, body: unknown, key = t.key): Promise<void> {
  expect((await server.json(path, { ...request('POST', body), key })).status).toBe(202);
}

async function remove(path: string, body: unknown, headers = {}): Promise<Job> {
  const { status, body: job } = await server.json<Job>(path, request('DELETE', body, headers));
  expect(status, JSON.stringify(job)).toBe(202);
  return job;
}

const ended = (jobId: string): Promise<Detail> =>
  waitFor(`job ${jobId} to end`, async () => {
    const { body } = await server.json<Detail>(`/v1/background_jobs/${jobId}`);
    return body.end_time === null ? null : body;
  });

const outcomes = async (jobId: string, query = '') =>
  (await server.json<Outcomes>(`/v1/background_jobs/${jobId}/outcomes${query}`)).body;

async function userIds({ environment }: Tenant): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select user_id as id from users where environment_id = ${environment.environmentId} order by 1`.execute(
    t.system.db,
  );
  return rows.map(({ id }) => id);
}

describe('DELETE /v1/users', () => {
  test('DELETE /v1/users deletes users in the background, and reports the outcome of each', async () => {
    const exact = '12345678901234567890';
    for (const user_id of ['u1', '7', exact, '12345678901234567000', 'stays']) {
      await send('/v1/identify', { user_id });
      await send('/v1/identify', { user_id }, neighbour.key);
    }
    await send('/v1/track', { user_id: 'u1', event_name: 'seen' });
    // The body is a string, because JavaScript would round a number.
    const body = `{"users":["u1",{"user_id":7},${exact},"=nobody","u1"]}`;
    const { status, body: job } = await server.json<Job>('/v1/users', {
      method: 'DELETE',
      body: gzipSync(body),
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    });
    expect(status, JSON.stringify(job)).toBe(202);
    expect(job).toMatchObject({ type: 'delete_users', total_rows: 4 });
    const detail = await ended(job.job_id);
    expect(detail).toMatchObject({
      status: 'completed',
      progress: 1,
      counts: { requested: 4, deleted: 3, not_found: 1, pending: 0 },
      removed: { events: 1, rejects: 0, files: 0, exports: 0 },
    });
    const everybody = ['12345678901234567000', exact, '7', 'stays', 'u1'].sort();
    expect(await userIds(t)).toEqual(['12345678901234567000', 'stays']);
    expect(await userIds(neighbour)).toEqual(everybody);

    const items = [
      { id: 'u1', outcome: 'deleted', events: 1, users: 0 },
      { id: '7', outcome: 'deleted', events: 0, users: 0 },
      { id: exact, outcome: 'deleted', events: 0, users: 0 },
      { id: '=nobody', outcome: 'not_found', events: 0, users: 0 },
    ];
    const first = await outcomes(job.job_id, '?limit=3');
    expect(first.data).toEqual(items.slice(0, 3));
    expect(first.metadata.total_count).toBe(4);
    const rest = await outcomes(job.job_id, `?limit=3&cursor=${first.metadata.cursor.after}`);
    expect([rest.data, rest.metadata.cursor.after]).toEqual([items.slice(3), null]);
    const file = async (accept: string) =>
      (await server.fetch(detail.outcomes.links, { headers: { accept } })).text();
    expect(await file('text/csv')).toBe(
      `id,outcome,events,users\nu1,deleted,1,0\n7,deleted,0,0\n${exact},deleted,0,0\n'=nobody,not_found,0,0\n`,
    );
    expect(
      (await file('application/x-ndjson'))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(items);
  });

  test('a deletion is listed among the jobs, is neither cancelled nor retried, and is hidden from other environments', async () => {
    const { job_id } = await remove('/v1/users', { users: ['listed'] });
    await ended(job_id);
    const { body } = await server.json<Job[]>('/v1/background_jobs?type=delete_users&limit=1');
    expect(body).toMatchObject([{ job_id, type: 'delete_users', total_rows: 1 }]);
    const code = async (path: string, options = {}) => {
      const answer = await server.json<ErrorBody>(`/v1/background_jobs/${job_id}${path}`, options);
      return [answer.status, answer.body.errors[0]?.error_code];
    };
    expect(await code('/cancel', { method: 'POST' })).toEqual([409, 'job_not_cancellable']);
    expect(await code('/retry', { method: 'POST' })).toEqual([409, 'job_not_retryable']);
    expect(await code('/rejects')).toEqual([404, 'not_found']);
    expect(await code('', { key: neighbour.key })).toEqual([404, 'not_found']);
    expect(await code('/outcomes', { key: neighbour.key })).toEqual([404, 'not_found']);
    expect(await code('/outcomes?cursor=%21')).toEqual([400, 'invalid_cursor']);
  });

  test('a deletion repeated with its Idempotency-Key gives the first job, and is refused for another body', async () => {
    const headers = { 'idempotency-key': 'once' };
    const { job_id } = await remove('/v1/users', { users: ['k'] }, headers);
    expect((await remove('/v1/users', { users: ['k'] }, headers)).job_id).toBe(job_id);
    const other = await server.json<ErrorBody>('/v1/users', request('DELETE', { users: ['l'] }, headers));
    expect([other.status, other.body.errors[0]?.error_code]).toEqual([409, 'idempotency_conflict']);
  });

  test('a wrong deletion is refused with all of its faults, and deletes nothing', async () => {
    const problems = async (body: unknown, path = '/v1/users') => {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await server.json<ErrorBody>(path, { ...request('DELETE', null), body: text });
      return [answer.status, answer.body.errors.map(({ error_code, details }) => `${error_code} ${details}`)];
    };
    const users = ['stays', '', null, { id: 'x' }, { user_id: true }, 'x'.repeat(257), '\0'];
    expect(await problems({ users, purge_exports: 'yes', companies: ['c'] })).toEqual([
      400,
      [
        'invalid_field companies',
        'invalid_field purge_exports',
        'invalid_field users[1]',
        'invalid_field users[2]',
        'invalid_field users[3].id',
        'missing_field users[3].user_id',
        'invalid_field users[4].user_id',
        'invalid_field users[5]',
        'invalid_field users[6]',
      ],
    ]);
    expect(await problems({})).toEqual([400, ['missing_field users']]);
    expect(await problems({ users: [] })).toEqual([400, ['invalid_field users']]);
    expect(await problems('{"users":')).toMatchObject([400, [expect.stringContaining('invalid_json')]]);
    const many = Array.from({ length: 10_001 }, (_, at) => `u${at}`);
    expect(await problems({ users: many })).toEqual([413, ['too_many_records users']]);
    expect(await problems({ companies: many }, '/v1/companies')).toEqual([
      413,
      ['too_many_records companies'],
    ]);
    expect(await userIds(t)).toContain('stays');
  });
});

describe('DELETE /v1/companies', () => {
  test('DELETE /v1/companies deletes companies, and the files of exports on request', async () => {
    await send('/v1/identify', { user_id: 'member', company: { company_id: 'acme', size: '3' } });
    const created = await server.json<Job>('/api/v1/analytics/exports', request('POST', {}));
    const exported = await ended(created.body.job_id);
    expect(exported.status).toBe('completed');
    const { job_id } = await remove('/v1/companies', { companies: ['acme'], purge_exports: true });
    expect(await ended(job_id)).toMatchObject({
      type: 'delete_companies',
      counts: { requested: 1, deleted: 1, not_found: 0, pending: 0 },
      removed: { exports: 1 },
    });
    expect((await outcomes(job_id)).data).toEqual([{ id: 'acme', outcome: 'deleted', events: 0, users: 1 }]);
    const { rows } = await sql`select company_id from users where user_id = 'member'`.execute(t.system.db);
    expect(rows).toEqual([{ company_id: null }]);
    const link = `/api/v1/analytics/exports/jobs/${created.body.job_id}`;
    expect((await server.json<object>(link)).body).toMatchObject({ files_expired: true, presigned_urls: [] });
  });
});
