import { describe, expect, test } from 'vitest';
import type { JobListItem } from '../../../src/api/job.ts';
import type { JobDetail as Job } from '../../../src/api/load.ts';
import type { UserProfile } from '../../../src/api/profile.ts';
import { type CountOptions, countReplacement } from '../../../src/load/causes/list-causes.ts';
import type { Reader } from '../../../src/postgres/pool.ts';
import { type ErrorBody, openServer } from '../../support/http.ts';
import type { Tenant } from '../../support/system.ts';

const { t, server } = await openServer({ worker: true });

let environments = 0;
const tenant = (): Promise<Tenant> => t.addEnvironment(`amend${++environments}`);

async function post<T>(
  { key }: Tenant,
  path: string,
  body: string,
  type = 'text/csv',
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: T }> {
  return server.json<T>(path, {
    method: 'POST',
    key,
    body: new Uint8Array(Buffer.from(body)),
    headers: { 'content-type': type, ...headers },
  });
}

async function ended(owner: Tenant, jobId: string): Promise<Job> {
  await expect.poll(async () => (await show(owner, jobId)).status).toMatch(/completed|failed|cancelled/);
  return show(owner, jobId);
}

const show = async (owner: Tenant, jobId: string): Promise<Job> =>
  (await server.json<Job>(`/v1/background_jobs/${jobId}`, { key: owner.key })).body;

async function load(owner: Tenant, body: string, type = 'text/csv', query = ''): Promise<Job> {
  const answer = await post<Job>(owner, `/v1/imports${query}`, body, type);
  expect(answer.status).toBe(200);
  return ended(owner, answer.body.job_id);
}

const amend = <T = Job>(owner: Tenant, jobId: string, body: string, type?: string, query = '') =>
  post<T>(owner, `/v1/background_jobs/${jobId}/amend${query}`, body, type);

async function amended(owner: Tenant, jobId: string, body: string, type?: string): Promise<Job> {
  const answer = await amend(owner, jobId, body, type);
  expect(answer.status).toBe(202);
  return ended(owner, answer.body.job_id);
}

async function rejects({ key }: Tenant, jobId: string, accept = 'text/csv'): Promise<string> {
  return (await server.fetch(`/v1/background_jobs/${jobId}/rejects`, { key, headers: { accept } })).text();
}

async function users({ environment }: Tenant): Promise<Record<string, unknown>> {
  const rows = await t.system.db
    .selectFrom('users')
    .select(['user_id', 'metadata'])
    .where('environment_id', '=', environment.environmentId)
    .orderBy('user_id')
    .execute();
  return Object.fromEntries(rows.map((row) => [row.user_id, row.metadata]));
}

async function refusal(answer: Promise<{ status: number; body: ErrorBody }>) {
  const { status, body } = await answer;
  const [first] = body.errors;
  return [status, first?.error_code, `${first?.message} | ${first?.details}`] as const;
}

const causes = async ({ key }: Tenant, jobId: string) =>
  (
    await server.json<{ data: { count: number; proposals: { id: string }[] }[] }>(
      `/v1/background_jobs/${jobId}/rejects?group_by=cause`,
      { key },
    )
  ).body.data;

const file = 'user_id,name\nu1,Ada\n,Grace\nu3,Mary,x,y\nu4,Joan\n';

describe('mended records', () => {
  // proves: mended-once
  test('turn from rejected to amended, part by part, until nothing is left, and lists name what each load wrote', async () => {
    const owner = await tenant();
    const parent = await load(owner, file);
    expect(parent.counts).toMatchObject({ read: 4, inserted: 2, rejected: 2, amended: 0 });
    const download = await rejects(owner, parent.job_id);
    const [head, first] = download.split('\n');
    const child = await amended(owner, parent.job_id, `${head}\n${first?.replace(',Grace', 'u2,Grace')}\n`);
    expect(child).toMatchObject({ status: 'completed', amends: parent.job_id, counts: { inserted: 1 } });
    expect(await show(owner, parent.job_id)).toMatchObject({
      counts: { read: 4, inserted: 2, rejected: 1, amended: 1 },
      amendments: [{ job_id: child.job_id, status: 'completed' }],
    });
    expect((await rejects(owner, parent.job_id)).split('\n')).toHaveLength(3);
    await amended(owner, parent.job_id, 'user_id,name,sluice_row\nu3,Mary,3\n');
    expect((await show(owner, parent.job_id)).counts).toMatchObject({ rejected: 0, amended: 2, read: 4 });
    expect(Object.keys(await users(owner))).toEqual(['u1', 'u2', 'u3', 'u4']);
    const { key } = owner;
    const listed = await server.json<JobListItem[]>('/v1/background_jobs?fold_mends=true', { key });
    expect(listed.body).toMatchObject([{ job_id: parent.job_id, mends: 2, counts: { amended: 2 } }]);
    const writtenBy = async (jobId: string, { key }: { readonly key: string }) => {
      const { body } = await server.json<{ data: UserProfile[] }>(`/v1/users?job_id=${jobId}`, { key });
      return body.data.map(({ user_id }) => user_id);
    };
    expect(await writtenBy(parent.job_id, owner)).toEqual(['u1', 'u4']);
    expect(await writtenBy(child.job_id, owner)).toEqual(['u2']);
    expect(await writtenBy(child.job_id, await tenant())).toEqual([]);
  });

  // proves: mended-once
  test('that are refused again stay refused for the new reason, as they were sent, and can be mended again', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, file);
    const long = 'x'.repeat(300);
    const child = await amended(owner, job_id, `name,user_id,sluice_row\nGrace,${long},2\nMary,u3,3\n`);
    expect(child).toMatchObject({ status: 'completed', counts: { read: 2, rejected: 1, inserted: 1 } });
    const left = await rejects(owner, job_id);
    expect(left).toContain(`${long},Grace,2,3,id_too_long`);
    expect(await show(owner, job_id)).toMatchObject({
      counts: { rejected: 1, amended: 1 },
      amendments: [{ total_rows: 2, rejected: 1 }],
    });
    await amended(owner, job_id, left.replace(long, 'u2'));
    expect((await show(owner, job_id)).counts).toMatchObject({ rejected: 0, amended: 2 });
  });

  test('of a job that failed because all were refused complete it', async () => {
    const owner = await tenant();
    const failed = await load(owner, 'user_id,name\n,Ada\n,Grace\n');
    expect(failed).toMatchObject({ status: 'failed', counts: { rejected: 2 } });
    await amended(owner, failed.job_id, 'user_id,name,sluice_row\nu1,Ada,1\n');
    expect(await show(owner, failed.job_id)).toMatchObject({
      status: 'completed',
      failure: null,
      counts: { read: 2, rejected: 1, amended: 1 },
    });
  });

  test('of NDJSON are told by sluice_reject, and count by kind', async () => {
    const owner = await tenant();
    const lines = [
      '{"event_type":"identify_user","user_id":"u1","plan":"a"}',
      '{"event_type":"track","user_id":"u1"}',
      '{"event_type":"nonsense","user_id":"u1"}',
    ];
    const { job_id } = await load(owner, lines.join('\n'), 'application/x-ndjson');
    const download = await rejects(owner, job_id, 'application/x-ndjson');
    const mended = download
      .replace('"event_type":"track"', '"event_type":"track","event_name":"Paid"')
      .replace('nonsense', 'identify_user');
    await amended(owner, job_id, mended, 'application/x-ndjson');
    expect(await show(owner, job_id)).toMatchObject({
      counts: { read: 3, inserted: 1, rejected: 0, amended: 2 },
      counts_by_kind: { track: { read: 1, amended: 1 }, unknown: { read: 1, amended: 1, rejected: 0 } },
    });
  });
});

describe('what mends them may also be', () => {
  test('a form, and a JSON array', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, file);
    const form = new FormData();
    form.set('wins', 'true');
    form.set('file', new Blob(['user_id,name,sluice_row\nu2,Grace,2\n']), 'mended.csv');
    const path = `/v1/background_jobs/${job_id}/amend`;
    const sent = await server.json<Job>(path, { method: 'POST', key: owner.key, body: form });
    expect([sent.status, (await ended(owner, sent.body.job_id)).status]).toEqual([202, 'completed']);

    const lines = '{"user_id":"","n":1}\n{"user_id":"u9"}\n';
    const parent = await load(owner, lines, 'application/x-ndjson');
    const array = JSON.stringify([{ user_id: 'u8', sluice_reject: { row: 1 } }]);
    await amended(owner, parent.job_id, array, 'application/json');
    expect((await show(owner, parent.job_id)).counts).toMatchObject({ rejected: 0, amended: 1 });
  });
});

describe('refused are', () => {
  test('rows that come twice, out of order, are no refused rows, or are not named', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, file);
    const of = (rows: string) => refusal(amend<ErrorBody>(owner, job_id, `user_id,name,sluice_row\n${rows}`));
    expect(await of('u2,Grace,2\nu2,Grace,2\n')).toEqual([
      400,
      'invalid_field',
      expect.stringMatching(/twice.*line 3/),
    ]);
    expect(await of('u3,Mary,3\nu2,Grace,2\n')).toEqual([
      400,
      'invalid_field',
      expect.stringMatching(/order.*line 3/),
    ]);
    expect(await of('u2,Grace,2\nu4,Joan,4\n')).toEqual([
      400,
      'invalid_field',
      expect.stringMatching(/row 4 is no refused row/),
    ]);
    expect(await of('u2,Grace,\n')).toEqual([400, 'invalid_field', expect.stringMatching(/line 2/)]);
    const [status, code] = await refusal(amend(owner, job_id, 'user_id,name\nu2,Grace\n'));
    expect([status, code]).toEqual([400, 'unrecognised_columns']);
    expect((await show(owner, job_id)).counts).toMatchObject({ rejected: 2, amended: 0 });
  });

  // proves: mended-once
  test('rows that another job mends or has mended, naming it', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, file);
    const mended = 'user_id,name,sluice_row\nu2,Grace,2\n';
    const answers = await Promise.all([1, 2, 3, 4].map(() => amend<Job & ErrorBody>(owner, job_id, mended)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
    const winner = answers.find(({ status }) => status === 202)?.body.job_id ?? '';
    await ended(owner, winner);
    const [status, code, text] = await refusal(amend(owner, job_id, mended));
    expect([status, code, text]).toEqual([
      409,
      'already_amended',
      expect.stringContaining(`2 | job_id: ${winner}`),
    ]);
    expect((await show(owner, job_id)).counts).toMatchObject({ rejected: 1, amended: 1 });
  });

  test('jobs that have nothing to mend, are dry runs, or mend others; and another environment’s', async () => {
    const owner = await tenant();
    const mended = 'user_id,name,sluice_row\nu2,Grace,2\n';
    const dry = await load(owner, file, 'text/csv', '?dry_run=true');
    expect(await refusal(amend(owner, dry.job_id, mended))).toMatchObject([
      409,
      'job_not_amendable',
      expect.any(String),
    ]);
    const { job_id } = await load(owner, file);
    const child = await amended(owner, job_id, mended);
    expect(await refusal(amend(owner, child.job_id, mended))).toMatchObject([
      409,
      'job_not_amendable',
      expect.any(String),
    ]);
    expect(await refusal(amend(await tenant(), job_id, mended))).toMatchObject([
      404,
      'not_found',
      expect.any(String),
    ]);
  });

  test('jobs after which data was deleted', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, file);
    const { status } = await server.json('/v1/users', {
      method: 'DELETE',
      key: owner.key,
      json: { users: ['u1'] },
    });
    expect(status).toBe(202);
    const mended = 'user_id,name,sluice_row\nu2,Grace,2\n';
    expect(await refusal(amend(owner, job_id, mended))).toMatchObject([
      410,
      'job_expired',
      expect.any(String),
    ]);
  });
});

describe('a proposal', () => {
  const file = 'user_id,name,spent\nu1,Ada,1\nu2,Bo,7,5\nu3,Cy,8,25\nu4,Di\n';
  // proves: proposal-complete
  test.each([
    [
      'a JSON object',
      (owner: Tenant, jobId: string, id: string) =>
        amend(owner, jobId, `{"apply":"${id}"}`, 'application/json'),
    ],
    [
      'the query',
      (owner: Tenant, jobId: string, id: string) => amend(owner, jobId, '', 'text/csv', `?apply=${id}`),
    ],
  ])('that is named in %s mends the records of its cause, once', async (_, apply) => {
    const owner = await tenant();
    const parent = await load(owner, file);
    expect(parent.counts).toMatchObject({ inserted: 1, rejected: 3 });
    const [cause] = await causes(owner, parent.job_id);
    const id = cause?.proposals[0]?.id ?? '';
    expect([cause?.count, id]).toEqual([2, expect.stringMatching(/-joined-decimals$/)]);
    const answer = await apply(owner, parent.job_id, id);
    expect(answer.status).toBe(202);
    expect(await ended(owner, answer.body.job_id)).toMatchObject({
      status: 'completed',
      amends: parent.job_id,
      counts: { read: 2, inserted: 2, rejected: 0 },
    });
    expect((await show(owner, parent.job_id)).counts).toMatchObject({ rejected: 1, amended: 2 });
    expect(await users(owner)).toMatchObject({ u2: { spent: '7.5' }, u3: { spent: '8.25' } });
    const again = await amend<ErrorBody>(owner, parent.job_id, `{"apply":"${id}"}`, 'application/json');
    expect([again.status, again.body.errors[0]?.error_code]).toEqual([409, 'already_amended']);
  });

  test('that is none is refused, and leaves nothing', async () => {
    const owner = await tenant();
    const parent = await load(owner, file);
    for (const id of ['x', '0000000000000-nothing']) {
      const answer = await amend<ErrorBody>(
        owner,
        parent.job_id,
        JSON.stringify({ apply: id }),
        'application/json',
      );
      expect([answer.status, answer.body.errors[0]?.error_code]).toEqual([400, 'invalid_field']);
    }
    const nobody = await amend<ErrorBody>(owner, parent.job_id, '', 'text/csv', '?apply=0000000000000-trim');
    expect([nobody.status, nobody.body.errors[0]?.error_code]).toEqual([409, 'already_amended']);
    expect((await show(owner, parent.job_id)).amendments).toEqual([]);
  });
});

describe('a replacement in a column', () => {
  interface Preview {
    readonly id: string;
    readonly records: number;
    readonly is_complete: boolean;
    readonly samples: readonly { readonly row: number; readonly after: string }[];
  }
  const preview = <T = Preview>(owner: Tenant, jobId: string, wish: object) =>
    post<T>(
      owner,
      `/v1/background_jobs/${jobId}/rejects/replacement_preview`,
      JSON.stringify(wish),
      'application/json',
    );
  const named = 'user_id,name,plan\nu1,Ada,\n,Grace,a$b\n,Mary\nu4,Joan,a$b,y\n,Ann,\n';

  // proves: replacement
  test('is counted over all refused records first, and then mends exactly those', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, named);
    const before = await show(owner, job_id);
    expect(before.counts).toMatchObject({ read: 5, inserted: 1, rejected: 4 });
    const { status, body } = await preview(owner, job_id, { column: 'user_id', by: "u{row}'$&" });
    expect([status, body.records, body.is_complete]).toEqual([200, 3, true]);
    expect(body.samples[0]).toMatchObject({ row: 2, after: "u2'$&,Grace,a$b" });
    expect(await show(owner, job_id)).toEqual(before);
    const child = await amended(owner, job_id, JSON.stringify({ apply: body.id }), 'application/json');
    expect(child.counts).toMatchObject({ read: 3, inserted: 3, rejected: 0 });
    expect((await show(owner, job_id)).counts).toMatchObject({ rejected: 1, amended: 3 });
    expect(await users(owner)).toEqual({
      u1: { name: 'Ada' },
      "u2'$&": { name: 'Grace', plan: 'a$b' },
      "u3'$&": { name: 'Mary' },
      "u5'$&": { name: 'Ann' },
    });
    expect((await preview(owner, job_id, { column: 'user_id', by: 'x' })).body.records).toBe(0);
  });

  // proves: replacement
  test('of a cause leaves the records of others as they are', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, named);
    const page = `/v1/background_jobs/${job_id}/rejects?group_by=cause`;
    const { body } = await server.json<{ data: { id: string; error_code: string }[] }>(page, {
      key: owner.key,
    });
    const cause = body.data.find(({ error_code }) => error_code === 'missing_id')?.id;
    const found = await preview(owner, job_id, { column: 'user_id', by: 'u{row}', cause });
    expect(found.body.records).toBe(2);
  });

  // proves: replacement
  test('takes turns with other long reads, says the least when its time is over, and stops when nobody waits', async () => {
    const owner = await tenant();
    // A few of them are read at a time.
    const { job_id } = await load(owner, `user_id,name\n${`,${'x'.repeat(60_000)}\n`.repeat(12)}`);
    let turns = 0;
    const inTurn = (<T>(work: () => Promise<T>) => {
      turns++;
      return work();
    }) as Reader['inTurn'];
    const count = (options: Partial<CountOptions>) =>
      countReplacement(
        { ...t.system, db: t.system.reader.db, inTurn, sandboxes: null },
        owner.environment.environmentId,
        job_id,
        { column: 'user_id', find: '', by: 'u{row}', cause: null },
        { signal: new AbortController().signal, ...options },
      );
    expect(await count({})).toMatchObject({ records: 12, isComplete: true });
    const all = turns;
    expect(all).toBeGreaterThan(3);
    const { records, isComplete, samples } = await count({ budgetMs: 0 });
    expect([isComplete, samples.length, turns - all]).toEqual([false, 3, 2]);
    expect(records).toBeGreaterThanOrEqual(3);
    expect(records).toBeLessThan(12);
    turns = 0;
    await expect(count({ signal: AbortSignal.abort(new Error('nobody waits')) })).rejects.toThrow(
      'nobody waits',
    );
    expect(turns).toBeLessThan(2);
  });

  test('is refused where there is no such column, job or cause, and where the texts are too long', async () => {
    const owner = await tenant();
    const { job_id } = await load(owner, named);
    const of = async (wish: object, jobId = job_id) => {
      const [status, code] = await refusal(preview<ErrorBody>(owner, jobId, wish));
      return [status, code];
    };
    expect(await of({ column: 'nothing', by: 'x' })).toEqual([400, 'invalid_field']);
    expect(await of({ by: 'x' })).toEqual([400, 'missing_field']);
    expect(await of({ column: 'name', cause: 'x' })).toEqual([400, 'invalid_field']);
    expect(await of({ column: 'name', by: 'x'.repeat(257) })).toEqual([400, 'invalid_field']);
    expect(await of({ column: 'name' }, '01a205c3-ea43-7519-b7b6-099ff91f020c')).toEqual([404, 'not_found']);
    const other = await load(owner, '{"user_id":""}\n{"user_id":"a"}\n', 'application/x-ndjson');
    expect(await of({ column: 'user_id', by: 'x' }, other.job_id)).toEqual([400, 'invalid_field']);
  });
});
