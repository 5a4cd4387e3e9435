import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { OnFailureField } from '../../../src/capabilities/all-or-nothing/api.ts';
import type { JobDetail } from '../../../src/load/api.ts';
import { failLoad } from '../../../src/load/end.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { type ErrorBody, form, openServer } from '../../support/servers/http.ts';
import { runCommand } from '../../support/servers/run-command.ts';
import { waitFor } from '../../support/wait-for.ts';
import { finish, readSchedule, requestRun, scheduleContext } from '../schedules/support/schedules.ts';

type Job = JobDetail & { readonly on_failure: OnFailureField };

const folder = await mkdtemp(join(tmpdir(), 'sluice-all-or-nothing-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const { t, server } = await openServer({ worker: true, settings: { CHUNK_BYTES: '64k' } });
const { environmentId } = t.environment;

/** A file of two chunks. The user `brake` is in the second chunk. */
const wrongFile = [
  'user_id,plan',
  'u1,free',
  ...Array.from({ length: 3_000 }, (_, at) => `n${at},${'x'.repeat(24)}`),
  'brake,free\n',
].join('\n');

const show = async (jobId: string) => (await server.json<Job>(`/v1/background_jobs/${jobId}`)).body;
const stateOf = async (jobId: string) => (await show(jobId)).on_failure?.state;
const userIds = async () => Object.keys((await readProfiles(t.system, environmentId)).users).sort();

/** Blocks the last chunk of the wrong file until the test ends. */
async function brake(): Promise<void> {
  const client = await t.system.pool.connect();
  cleanUpAfter('test', async () => {
    await client.query('rollback');
    client.release();
  });
  await client.query('begin');
  await client.query("insert into sluice.users (environment_id, user_id) values ($1, 'brake')", [
    environmentId,
  ]);
}

async function cancelHalfway(jobId: string): Promise<void> {
  await waitFor('a chunk to be loaded', async () => (await show(jobId)).completed_rows > 0);
  const { status } = await server.fetch(`/v1/background_jobs/${jobId}/cancel`, { method: 'POST' });
  expect(status).toBe(202);
}

test('the job and the commands that follow it report the undo of a cancelled load', async () => {
  await server.load('user_id,plan\nu1,pro\n');
  await brake();
  const body = form(wrongFile, { before: { on_failure: 'undo' } });
  const { body: job } = await server.json<Job>('/v1/imports', { method: 'POST', body });
  expect(await show(job.job_id)).toMatchObject({
    on_failure: { action: 'undo', state: 'ready', job_id: null, summary: null },
  });
  const watched = runCommand(t, 'jobs', 'show', job.job_id, '--watch', '--json');
  await cancelHalfway(job.job_id);
  const { on_failure: field, ...record } = JSON.parse(await watched) as Job;
  process.exitCode = undefined;
  expect(record).toMatchObject({ status: 'cancelled', undone_by: field?.job_id });
  expect(field).toMatchObject({ state: 'undone', summary: `the load is undone by job ${field?.job_id}` });
  expect(await show(field?.job_id ?? '')).toMatchObject({ type: 'undo', undoes: [job.job_id] });
  expect(await userIds()).toEqual(['u1']);
});

test('`sluice import` waits for the undo of a failed load, and advises no retry', async () => {
  await brake();
  const file = join(folder, 'wrong.csv');
  await writeFile(file, wrongFile);
  const imported = runCommand(t, 'import', file, '--on-failure', 'undo');
  const load = await waitFor('a chunk to be loaded', async () => {
    const { rows } = await t.system.pool.query<{ id: number; job_id: string }>(
      "select load_id as id, job_id from sluice.loads where filename like '%wrong.csv' and rows_read > 0",
    );
    return rows[0] ?? null;
  });
  await failLoad(t.system, load.id, { code: 'worker_lost', message: 'chunk 1 lost its worker 10 times' });
  const printed = await imported;
  process.exitCode = undefined;
  const { on_failure: field } = await show(load.job_id);
  expect(field?.state).toBe('undone');
  expect(printed).toContain(`on_failure: the load is undone by job ${field?.job_id}`);
  expect(printed).toContain('import the file again: what this job wrote is undone.');
  expect(printed).not.toContain('sluice jobs retry');
});

test('the run of a schedule ends after the undo of its load, and says that it is undone', async () => {
  await mkdir(join(folder, 'default'));
  await writeFile(join(folder, 'default/users.csv'), wrongFile);
  await brake();
  const context = scheduleContext(t, { localRoots: [folder] });
  const schedule = readSchedule({ load: { files: { pattern: 'users.csv' }, on_failure: 'undo' } });
  await requestRun(context, environmentId, schedule, new Date('2026-02-01T00:00:00Z'));
  const run = finish(context, schedule);
  const jobId = await waitFor('the load of the run', async () => {
    const { rows } = await t.system.pool.query<{ job_id: string }>(
      "select job_id from sluice.loads where origin = 'schedule' and status = 'processing'",
    );
    return rows[0]?.job_id ?? null;
  });
  await cancelHalfway(jobId);
  expect(await run).toMatchObject({
    status: 'failed',
    code: 'job_cancelled',
    reason: expect.stringMatching(/^The job was cancelled; the load is undone by job \S+$/),
  });
  expect(await stateOf(jobId)).toBe('undone');
});

test('an import with another on_failure than undo is refused with the option at fault', async () => {
  const refused = await server.json<ErrorBody>('/v1/imports?on_failure=keep', {
    method: 'POST',
    body: 'user_id\nu1\n',
    headers: { 'content-type': 'text/csv' },
  });
  expect([refused.status, refused.body.errors[0]?.details]).toEqual([400, 'on_failure']);
  expect(refused.body.errors[0]?.message).toContain('must be undo');
  expect((await show((await server.load('user_id\nu2\n')).job_id)).on_failure).toBeNull();
});
