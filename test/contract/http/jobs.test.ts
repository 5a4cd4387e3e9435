import { beforeAll, describe, expect, test } from 'vitest';
import type { RunningWorker } from '../../../jobs/worker.ts';
import type { JobListItem as Item } from '../../../src/http/job.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer();

const unknownJob = '01a1f879-8845-7223-9ca4-ceafb3823817';
let serial = 0;

async function submit(tenant: Tenant, path = '/v1/imports', body?: string): Promise<string> {
  const envelope = path.includes('users') ? 'users' : 'companies';
  const id = `${++serial}`;
  const array = JSON.stringify({ [envelope]: [{ user_id: id, company_id: id }] });
  const answer = await server.json<Item>(path, {
    method: 'POST',
    key: tenant.key,
    body: body ?? (path.includes('bulk') ? array : `user_id\n${id}\n`),
    headers: { 'content-type': path.includes('bulk') ? 'application/json' : 'text/csv' },
  });
  expect(answer.status).toBeLessThan(300);
  return answer.body.job_id;
}

const list = (tenant: Tenant, query = '', options = {}) =>
  server.json<Item[]>(`/v1/background_jobs${query}`, { key: tenant.key, ...options });

async function withWorker(work: () => Promise<void>): Promise<void> {
  const worker: RunningWorker = t.startWorker();
  try {
    await work();
  } finally {
    await worker.stop();
  }
}

type Page = object[] | { readonly data: object[]; readonly metadata: { cursor: { after: string | null } } };

/** Returns the id or key of a listed item. Its other fields may change between two pages. */
function identify(item: unknown): unknown {
  const { job_id, id, key } = item as Readonly<Record<string, unknown>>;
  return job_id ?? id ?? key;
}

describe('the list', () => {
  let tenant: Tenant;
  let ids: string[];
  beforeAll(async () => {
    tenant = await t.addEnvironment('lists');
    ids = [];
    for (let i = 0; i < 3; i++) ids.unshift(await submit(tenant));
    ids.unshift(await submit(tenant, '/v1/users/bulk_identify'));
    ids.unshift(await submit(tenant, '/v1/companies/bulk_identify'));
  });

  test('the list of jobs is a bare array of records with elapsed_time, newest first', async () => {
    const { status, body, headers } = await list(tenant);
    expect(status).toBe(200);
    expect(body.map((item) => item.job_id)).toEqual(ids);
    expect(body[0]).toEqual({
      job_id: ids[0],
      type: 'bulk_identify_companies',
      status: expect.stringMatching(/queued|processing/),
      filename: 'bulk_identify_companies.json',
      file_size: expect.any(Number),
      total_rows: 1,
      start_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      end_time: null,
      links: `${server.address}/v1/background_jobs/${ids[0]}`,
      processing_since: null,
      elapsed_time: expect.any(Number),
      counts: expect.objectContaining({ read: 0, rejected: 0 }),
      origin: { kind: 'api_key', name: expect.any(String) },
    });
    expect(Number.isInteger(body[0]?.elapsed_time)).toBe(true);
    expect(headers.get('x-total-count')).toBe('5');
    expect(headers.get('link')).toBeNull();
  });

  test('the Link of a list of jobs leads through every job once, and keeps the filters', async () => {
    const seen: string[] = [];
    let next: string | undefined = '/v1/background_jobs?limit=2&type=import';
    while (next !== undefined) {
      const answer: Awaited<ReturnType<typeof list>> = await server.json<Item[]>(next, { key: tenant.key });
      seen.push(...answer.body.map((item) => item.job_id));
      expect(answer.headers.get('x-total-count')).toBe('3');
      next = /^<(http[^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(seen).toEqual(ids.slice(2));
  });

  const lookups = '/api/v1/analytics/exports/lookups';
  const send = (path: string, body: object) =>
    server.json(path, { method: 'POST', key: tenant.key, json: body });
  test.each<[string, string, (n: number) => Promise<unknown>]>([
    ['/v1/background_jobs', 'cursor', () => submit(tenant)],
    ['/api/v1/analytics/exports/jobs', 'cursor', () => send('/api/v1/analytics/exports', {})],
    [
      `${lookups}/segments`,
      'after_cursor',
      (n) => send('/v1/segments', { key: `s${n}`, title: `S${n}`, definition: { property: 'p', equals: n } }),
    ],
    [
      `${lookups}/events_properties`,
      'after_cursor',
      (n) => send('/v1/track', { user_id: 'u', event_name: 'e', metadata: { [`p${n}`]: n } }),
    ],
  ])(
    'a client that pages %s by offset reads every item once, and its last page is empty',
    async (path, cursor, make) => {
      for (const n of [1, 2, 3]) await make(n);
      const readPage = async (query: string) => {
        const { body, headers } = await server.json<Page>(`${path}?${query}`, { key: tenant.key });
        const [items, after] = 'data' in body ? [body.data, body.metadata.cursor.after] : [body, null];
        return { items, next: after ?? /[?&]cursor=([^&>]+)/.exec(headers.get('link') ?? '')?.[1] ?? '' };
      };
      const { items: all } = await waitFor('the items', async () => {
        const whole = await readPage('limit=100');
        return whole.items.length >= 3 && whole;
      });
      const seen: unknown[] = [];
      let page = await readPage('limit=2&offset=0');
      while (page.items.length > 0) {
        seen.push(...page.items);
        page = await readPage(`limit=2&offset=${seen.length}`);
      }
      expect(seen.map(identify)).toEqual(all.map(identify));
      const { next } = await readPage('limit=1&offset=1');
      expect((await readPage(`limit=1&${cursor}=${next}`)).items.map(identify)).toEqual([identify(all[2])]);
      const both = await server.json<ErrorBody>(`${path}?${cursor}=${next}&offset=1`, { key: tenant.key });
      expect([both.status, both.body.errors[0]?.details]).toEqual([400, 'offset']);
    },
  );

  test.each([
    ['/v1/background_jobs', 'page', 'cursor'],
    ['/v1/background_jobs', 'per_page', 'cursor'],
    ['/v1/users', 'offset', 'cursor'],
    ['/v1/companies', 'per_page', 'cursor'],
    ['/api/v1/analytics/exports/lookups/segments', 'page', 'after_cursor'],
  ])('the list %s?%s=1 is refused, and the answer names %s', async (path, name, cursor) => {
    const answer = await server.json<{ errors: object[] }>(`${path}?${name}=1`, { key: tenant.key });
    expect([answer.status, answer.body.errors]).toEqual([
      400,
      [expect.objectContaining({ details: name, message: expect.stringContaining(`and ${cursor} from`) })],
    ]);
  });

  test.each([
    ['limit=0', 'invalid_field'],
    ['limit=501', 'invalid_field'],
    ['status=done', 'invalid_field'],
    ['status=queued&status=failed', 'invalid_field'],
    ['cursor=abc', 'invalid_cursor'],
    ['offset=100001', 'invalid_field'],
    ['offset=-1', 'invalid_field'],
    ['since=yesterday', 'invalid_date'],
    ['since=2026-02-31', 'invalid_date'],
    ['until=soon', 'invalid_date'],
    ['status=queued,', 'invalid_field'],
    ['sha256=abc', 'invalid_field'],
    [`request_id=${'x'.repeat(513)}`, 'invalid_field'],
  ])('a list of jobs with ?%s is 400 %s', async (query, code) => {
    expect(await refusalOf(server, `/v1/background_jobs?${query}`)).toEqual([400, [code]]);
  });
});

describe('one job', () => {
  // proves: counts-balance
  test('a completed job has counts that add up, and every documented field', async () => {
    const tenant = await t.addEnvironment('detail');
    const content = 'user_id,name\nd1,a\nd1,b\nd2,c\n,x\n';
    const jobId = await submit(tenant, '/v1/imports', content);
    await withWorker(async () => {
      await expect
        .poll(
          async () =>
            (await server.json<Item>(`/v1/background_jobs/${jobId}`, { key: tenant.key })).body.status,
        )
        .toBe('completed');
    });
    const { status, body } = await server.json<Item>(`/v1/background_jobs/${jobId}`, { key: tenant.key });
    expect(status).toBe(200);
    expect(body).toEqual({
      schema: 1,
      job_id: jobId,
      type: 'import',
      status: 'completed',
      origin: { kind: 'api_key', name: expect.any(String) },
      request_id: expect.any(String),
      sources: [
        {
          filename: 'upload',
          bytes: content.length,
          rows: 4,
          sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      ],
      files: [],
      options: {
        entity: 'users',
        format: 'csv',
        preset: null,
        map: {},
        dry_run: false,
        plan: false,
        max_errors: null,
        max_changed: null,
        max_removed_values: null,
        guard: null,
        file_of: null,
      },
      options_cut: false,
      phases: ['accepted', 'started', 'merged', 'completed'].map((phase) => ({
        phase,
        at: expect.stringMatching(/Z$/),
      })),
      cursor: null,
      filename: 'upload',
      file_size: content.length,
      total_rows: 4,
      start_time: expect.any(String),
      end_time: expect.stringMatching(/Z$/),
      links: `${server.address}/v1/background_jobs/${jobId}`,
      processing_since: expect.stringMatching(/Z$/),
      elapsed_time: expect.any(Number),
      completed_rows: 4,
      progress: 1,
      counts: {
        read: 4,
        inserted: 2,
        updated: 0,
        unchanged: 0,
        removed: 0,
        superseded: 1,
        rejected: 1,
      },
      counts_by_kind: null,
      rejects: {
        count: 1,
        by_code: { missing_id: 1 },
        loaded_since: { count: 0, jobs: [] },
        links: `${server.address}/v1/background_jobs/${jobId}/rejects`,
      },
      failure: null,
      dropped_properties: 0,
      held: null,
      last_error: null,
      attempts: 1,
      rows_per_second: expect.any(Number),
      queue_position: null,
      duplicate_of: null,
      mends: null,
      dry_run: false,
      plan: null,
      read_as: {
        format: 'csv',
        encoding: 'utf-8',
        csv: {
          delimiter: ',',
          quote: '"',
          escape: '"',
          comment: '',
          nulls: [],
          ragged: 'refuse',
          header_line: 1,
          columns: ['user_id', 'name'],
          column_count: 2,
        },
        sheet: null,
        sheets: null,
        member: null,
        notes: [],
      },
    });
  });

  test('a job that waits reports the number of jobs before it', async () => {
    const tenant = await t.addEnvironment('waiting');
    const ids = [await submit(tenant), await submit(tenant), await submit(tenant)];
    const positions = await Promise.all(
      ids.map(async (id) => {
        const { body } = await server.json<{ queue_position: number }>(`/v1/background_jobs/${id}`, {
          key: tenant.key,
        });
        return body.queue_position;
      }),
    );
    expect(positions).toEqual([0, 1, 2]);
  });

  test.each(['', '/rejects'])('GET …%s of an unknown job is 404', async (suffix) => {
    for (const id of [unknownJob, 'nonsense', '%00', 'a'.repeat(3_000), '../x']) {
      expect(await refusalOf(server, `/v1/background_jobs/${encodeURIComponent(id)}${suffix}`)).toEqual([
        404,
        ['not_found'],
      ]);
    }
  });
});

describe('cancel and retry', () => {
  const act = (verb: string, jobId: string, tenant: Tenant, options = {}) =>
    server.json<Item & ErrorBody>(`/v1/background_jobs/${jobId}/${verb}`, {
      method: 'POST',
      key: tenant.key,
      ...options,
    });

  test('a cancelled job can be retried and completes', async () => {
    const tenant = await t.addEnvironment('retries');
    const jobId = await submit(tenant);
    const early = await act('retry', jobId, tenant);
    expect([early.status, early.body.errors[0]?.error_code]).toEqual([409, 'job_not_retryable']);
    await act('cancel', jobId, tenant);
    const { status, body } = await act('retry', jobId, tenant);
    expect([status, body.end_time]).toEqual([202, null]);
    expect(body.status).toMatch(/queued|processing/);
    await withWorker(async () => {
      await expect
        .poll(
          async () =>
            (await server.json<Item>(`/v1/background_jobs/${jobId}`, { key: tenant.key })).body.status,
        )
        .toBe('completed');
    });
  });

  test('a retry of a job without its file is 410', async () => {
    const tenant = await t.addEnvironment('expired');
    const jobId = await submit(tenant);
    await act('cancel', jobId, tenant);
    await t.system.db.updateTable('loads').set({ file_ref: null }).where('job_id', '=', jobId).execute();
    const { status, body } = await act('retry', jobId, tenant);
    expect([status, body.errors[0]?.error_code]).toEqual([410, 'job_expired']);
  });
});
