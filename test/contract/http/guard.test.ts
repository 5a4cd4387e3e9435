import { expect, test } from 'vitest';
import type { JobListItem, JobRecord } from '../../../src/http/job.ts';
import type { Overview } from '../../../src/jobs/overview-api.ts';
import type { JobDetail } from '../../../src/load/api.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import { readSamples } from '../../support/servers/metrics.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ worker: true });

const csv = { 'content-type': 'text/csv' };
const detail = async (jobId: string) => (await server.json<JobDetail>(`/v1/background_jobs/${jobId}`)).body;
const act = (action: 'apply' | 'cancel', jobId: string, key?: string) =>
  server.json<JobRecord & ErrorBody>(`/v1/background_jobs/${jobId}/${action}`, {
    method: 'POST',
    ...(key !== undefined && { key }),
  });

/**
 * Sends two users with a guard that requires at least ten. Returns the job's id once it is held.
 */
async function hold(id: string): Promise<string> {
  const path = `/v1/imports?guard=${encodeURIComponent('rows=10.. columns=user_id,plan')}`;
  const { body } = await server.json<JobRecord>(path, {
    method: 'POST',
    body: `user_id,price\n${id}-1,3\n${id}-2,4\n`,
    headers: csv,
  });
  await waitFor('the load to be held', async () => (await detail(body.job_id)).status === 'held');
  return body.job_id;
}

const reasons = [
  { figure: 'rows', message: '2 rows; expected: at least 10' },
  { figure: 'columns', message: 'missing: plan' },
  { figure: 'columns', message: 'new: price' },
];

// proves: guard-holds, guard-released
test('an upload outside its guard is held, is shown by job, list, overview and metrics, and is loaded once it is released', async () => {
  const jobId = await hold('r');
  const job = await detail(jobId);
  expect(job).toMatchObject({
    status: 'held',
    end_time: null,
    queue_position: null,
    held: { at: expect.any(String), reasons, decided_at: null, decided_by: null },
  });
  expect((await readProfiles(t.system, t.environment.environmentId)).users).toEqual({});
  const { body: listed } = await server.json<JobListItem[]>('/v1/background_jobs?status=held');
  expect(listed.map(({ job_id }) => job_id)).toEqual([jobId]);
  const { body: overview } = await server.json<Overview>('/v1/overview');
  expect(overview.needs).toContainEqual(
    expect.objectContaining({ kind: 'loads_held', status: 'warning', subject: jobId }),
  );
  const page = await (await server.fetch('/metrics', { key: null })).text();
  expect(readSamples(page).get('sluice_loads{status="held"}')).toBe(1);

  expect(await act('apply', jobId)).toMatchObject({ status: 202, body: { job_id: jobId } });
  await t.ended(jobId);
  const by = { kind: 'api_key', name: expect.any(String) };
  const decided = await detail(jobId);
  expect(decided).toMatchObject({
    status: 'completed',
    counts: { read: 2, inserted: 2 },
    held: { reasons, decided_at: expect.any(String), decided_by: by },
    options: { guard: { rows: '10..', columns: ['user_id', 'plan'] } },
  });
  expect(decided.phases.map(({ phase }) => phase)).toEqual(
    expect.arrayContaining(['accepted', 'started', 'held', 'decided', 'completed']),
  );
  const tooLate = [await act('apply', jobId), await act('cancel', jobId)];
  expect(tooLate.map(({ status, body }) => [status, body.errors[0]?.error_code])).toEqual([
    [409, 'job_not_held'],
    [409, 'job_not_cancellable'],
  ]);
});

test.each(['often', 'rows=9..1', 'columns='])('an import with guard=%s is refused', async (guard) => {
  const path = `/v1/imports?guard=${encodeURIComponent(guard)}`;
  const options = { method: 'POST', body: 'user_id\nu\n', headers: csv };
  expect(await refusalOf(server, path, options)).toEqual([400, ['invalid_field']]);
});
