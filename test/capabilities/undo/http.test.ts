import { expect, test } from 'vitest';
import type { UndoFields } from '../../../src/capabilities/undo/api.ts';
import type { JobDetail } from '../../../src/load/api.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

type Detail = JobDetail & UndoFields;

const { t, server } = await openServer({ worker: true });

const json = { 'content-type': 'application/json' };

const load = async (content: string, query = ''): Promise<string> =>
  (await server.load(content, { query })).job_id;

const post = <T>(path: string, body: object, headers = {}) =>
  server.json<T>(`/v1/background_jobs${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { ...json, ...headers },
  });
const detail = async (jobId: string) => (await server.json<Detail>(`/v1/background_jobs/${jobId}`)).body;

async function undo(path: string, body: object, headers = {}): Promise<Detail> {
  const { status, body: job } = await post<Detail>(path, body, headers);
  expect(status).toBe(202);
  expect(job).toMatchObject({ type: 'undo', status: 'queued' });
  await t.ended(job.job_id);
  return detail(job.job_id);
}

// proves: undo
test('an undo names its counts, the undone jobs and later loads of equal values', async () => {
  await load('user_id,plan\nu1,pro\nu2,pro\n');
  const wrongJob = await load('user_id,plan\nu1,free\nu2,free\nu3,free\n');
  const laterJob = await load('user_id,plan\nu1,free\nu2,trial\n');
  const headers = { 'idempotency-key': 'undo-once' };
  const ended = await undo(`/${wrongJob}/undo`, {}, headers);
  expect(ended).toMatchObject({
    status: 'completed',
    filename: 'undo of upload',
    undoes: [wrongJob],
    undone_by: null,
    counts: { read: 3, updated: 1, removed: 1, rejected: 1 },
    undo: {
      restored: 1,
      brought_back: 0,
      removed: 1,
      kept: 1,
      failed: 0,
      events_gone: 0,
      later_loads: [laterJob],
    },
  });
  expect(await detail(wrongJob)).toMatchObject({ undone_by: ended.job_id, undo: null });
  expect((await readProfiles(t.system, t.environment.environmentId)).users).toMatchObject({
    u1: { metadata: { plan: 'pro' } },
    u2: { metadata: { plan: 'trial' } },
  });
  const rejects = await server.json<{ data: object[] }>(`/v1/background_jobs/${ended.job_id}/rejects`);
  expect(rejects.body.data).toMatchObject([{ error_code: 'changed_since', column: 'plan' }]);
  expect((await post<Detail>(`/${wrongJob}/undo`, {}, headers)).body.job_id).toBe(ended.job_id);
  expect(
    (await post<ErrorBody>(`/${wrongJob}/undo`, { plan: true }, headers)).body.errors[0]?.error_code,
  ).toBe('idempotency_conflict');
});

test('a dry run, an unknown job and a job of another environment cannot be undone', async () => {
  const dryRun = await load('user_id\nd1\n', '?dry_run=true');
  const refusals = async (path: string, body: object = {}) => {
    const answer = await post<ErrorBody>(path, body);
    return [answer.status, answer.body.errors[0]?.error_code];
  };
  expect(await refusals(`/${dryRun}/undo`)).toEqual([409, 'job_not_undoable']);
  expect(await refusals('/01a1f879-8845-7223-9ca4-ceafb3823817/undo')).toEqual([404, 'not_found']);
  const otherTenant = await t.addEnvironment('elsewhere');
  const headers = { ...json, authorization: `Token ${otherTenant.key}` };
  const refusal = await server.json(`/v1/background_jobs/${dryRun}/undo`, {
    method: 'POST',
    body: '{}',
    headers,
  });
  expect(refusal.status).toBe(404);
});

// proves: mends
test('a repeated mend counts each record once, and an undone mend counts none', async () => {
  const parent = await load('user_id,seats\nm1,many\nm2,many\nm3,3\n', '?types=seats%3Dnumber');
  const rejects = await server.fetch(`/v1/background_jobs/${parent}/rejects?format=csv`);
  const file = (await rejects.text()).replaceAll(',many', ',7');
  const mends = [await load(file), await load(file)];
  expect((await detail(parent)).rejects.loaded_since).toMatchObject({ count: 2 });
  for (const mend of mends.reverse()) await undo(`/${mend}/undo`, {});
  expect((await detail(parent)).rejects.loaded_since).toEqual({ count: 0, jobs: [] });
});
