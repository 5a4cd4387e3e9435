import { expect, test } from 'vitest';
import type { JobListItem as Job } from '../../../src/http/job.ts';
import type { Overview } from '../../../src/jobs/overview-api.ts';
import { openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer();

let serial = 0;
async function load(): Promise<string> {
  const body = `user_id\nu${++serial}\n`;
  const headers = { 'content-type': 'text/csv' };
  const answer = await server.json<Job>('/v1/imports', { method: 'POST', body, headers });
  return answer.body.job_id;
}
const show = async () => (await server.json<Overview>('/v1/overview')).body.needs;

test('the overview lists failed sources, jobs, files and notifications, and rejects', async () => {
  const { environmentId } = t.environment;
  const { pool } = t.system;
  expect(await show()).toEqual([]);
  const endedLoad = async (changes: string): Promise<string> => {
    const jobId = await load();
    await pool.query(
      `with gone as (delete from tasks where job_id = $1),
      done as (
        update load_chunks c
        set done_at = now(), rows_inserted = 0, rows_updated = 0, rows_unchanged = 0, rows_removed = 0, rows_superseded = 0, rows_rejected = row_count
        from loads l where l.load_id = c.load_id and l.job_id = $1
      )
      update loads set ended_at = now(), chunks_done = chunk_count, rows_read = total_rows, ${changes} where job_id = $1`,
      [jobId],
    );
    return jobId;
  };
  const refusedJob = await endedLoad(`status = 'completed', rows_rejected = total_rows, origin = 'inbox'`);
  const failedJob = await endedLoad(`status = 'failed', failure_code = 'x', rows_rejected = total_rows`);
  await pool.query(
    `insert into inbox_files (file_id, inbox_id, environment_id, folder, name, inode, size, modified_ns, options,
      state, outcome, placed_as, concluded_at, job_id)
    select gen_random_uuid(), gen_random_uuid(), $1, '', 'f', 1, 1, 1, '{}', 'concluded', outcome, 'x', now(), job_id
    from (values ('done', $2::uuid), ('failed', null), ('failed', $3)) f (outcome, job_id)`,
    [environmentId, refusedJob, failedJob],
  );
  await pool.query(
    `with added as (
      insert into schedules (environment_id, schedule_name, considered_until, definition)
      select $1, name, now(), '{}' from unnest(array['crm', 'well', 'paused']) name
    )
    insert into schedule_runs (environment_id, schedule_name, due_at, cause, status, definition, started_at, ended_at, reason_code, reason)
    select $1, name, now() - ago, 'due', status, '{}', now() - ago, now() - ago, 'unreachable', 'crm.example.com cannot be reached'
    from (values
      ('crm', interval '60 min', 'failed'), ('crm', interval '50 min', 'unchanged'), ('crm', interval '25 min', 'failed'),
      ('crm', interval '15 min', 'failed'), ('crm', interval '10 min', 'skipped'), ('well', interval '30 min', 'failed'),
      ('well', interval '20 min', 'completed_with_rejects'), ('paused', interval '20 min', 'failed')
    ) r (name, ago, status)`,
    [environmentId],
  );
  await pool.query(
    `update schedules set paused_at = now() where environment_id = $1 and schedule_name = 'paused'`,
    [environmentId],
  );
  await pool.query(
    `with event as (
      insert into notification_events (event_id, environment_id, type, body)
      values (gen_random_uuid(), $1, 'ping', '{}')
      returning event_id
    )
    insert into notification_deliveries (public_id, event_id, channel, target, state)
    select event_id, event_id, 'email', 'a@example.com', 'dead' from event`,
    [environmentId],
  );
  const needs = await show();
  expect(needs).toMatchObject([
    {
      kind: 'schedules_failing',
      status: 'failed',
      count: 1,
      subject: 'crm',
      says: 'Schedule crm has failed for 25 minutes: crm.example.com cannot be reached',
    },
    { kind: 'jobs_failed', count: 1, subject: failedJob, says: '1 job failed in the last 24 hours' },
    { kind: 'inbox_files_refused', count: 1, says: '1 file of the inbox was refused in the last 24 hours' },
    { kind: 'deliveries_dead', count: 1, says: '1 notification could not be delivered' },
    {
      kind: 'records_refused',
      status: 'warning',
      count: 1,
      subject: refusedJob,
      says: '1 record was refused',
    },
    { kind: 'inbox_files_with_rejects', count: 1 },
    { kind: 'runs_skipped', count: 1, says: '1 scheduled run was skipped in the last 24 hours' },
  ]);
  const { body } = await server.json<Job[]>('/v1/background_jobs?has_rejects=true');
  expect(body.map(({ job_id }) => job_id)).toEqual([refusedJob]);
});
