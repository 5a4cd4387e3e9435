import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { beginJob } from '../../../jobs/load.ts';
import type { OnFailureField } from '../../../src/capabilities/all-or-nothing/api.ts';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import { cancelLoad, failLoad, startLane } from '../../../src/load/end.ts';
import { followLoad } from '../../../src/load/follow.ts';
import { type Load, readShown } from '../../../src/load/read-store.ts';
import { applyPlan, retryLoad } from '../../../src/load/retry.ts';
import {
  acceptFile,
  type FileOptions,
  loadFile,
  type ManualLoad,
  manualLoad,
  newEnvironment,
  readProfiles,
  runJob,
  runManually,
  shuffled,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import { randomFile } from '../../support/files/random-files.ts';
import { runs } from '../../support/runs.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { writeUsers } from '../../support/servers/write-users.ts';
import { waitFor } from '../../support/wait-for.ts';

const t = await systemOfFile();
const quiet = withoutQueue(t.system);
let environmentId: number;
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const undone = { onFailure: 'undo' };
const oneByOne: FileOptions = { source: undone, chunkBytes: 1 };
const failure = { code: 'worker_lost', message: 'chunk 1 lost its worker 10 times' };

const start = (content: string, options: FileOptions = oneByOne) =>
  startManually(t.system, environmentId, content, options);
const profiles = () => readProfiles(t.system, environmentId);
const statusOf = async (jobId: string) => (await manualLoad(quiet, environmentId, jobId)).look();

async function fieldOf(
  { look }: ManualLoad,
  environment = environmentId,
): Promise<NonNullable<OnFailureField>> {
  const { fields } = await readShown(t.system, environment, await look());
  return fields['on_failure'] as NonNullable<OnFailureField>;
}

/** Runs an undo, but no tasks of other jobs. */
async function runUndo(jobId: string | null, environment = environmentId): Promise<Load> {
  await startLane(quiet, environment);
  await (await manualLoad(quiet, environment, jobId ?? '')).begin();
  return runManually(await manualLoad(quiet, environment, jobId ?? ''));
}

/** Starts a load of three users, the first of them new. Runs its first two chunks. */
async function halfLoaded(options: FileOptions = oneByOne): Promise<ManualLoad> {
  await loadFile(t.system, environmentId, 'user_id,plan\nu2,pro\nu3,pro\n');
  const load = await start('user_id,plan,company_id\nu1,free,acme\nu2,free,acme\nu3,free,acme\n', options);
  for (const chunk of [0, 1]) await load.chunk(chunk);
  return load;
}

// proves: all-or-nothing
test('a load that stops after any of its chunks leaves no trace in the profiles, and the next load sees none', async () => {
  const scene = fc.record({
    before: randomFile,
    file: randomFile,
    next: randomFile,
    chunkBytes: fc.constantFrom(1, 64, 300),
    ranks: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
    chunks: fc.nat(),
    isCancelled: fc.boolean(),
  });
  let undos = 0;
  const property = fc.asyncProperty(scene, async ({ before, file, next, ...how }) => {
    const environment = await newEnvironment(t.system);
    const twin = await newEnvironment(t.system);
    for (const each of [environment, twin])
      await loadFile(t.system, each, before.text, { format: before.format });
    const profilesBefore = await readProfiles(t.system, environment);
    const options = { format: file.format, chunkBytes: how.chunkBytes, source: undone };
    const load = await startManually(t.system, environment, file.text, options);
    const order = shuffled(load, how.ranks).slice(0, how.chunks % (load.chunkCount + 1));
    for (const chunk of order) await load.chunk(chunk);
    if ((await load.look()).status !== 'processing') return;
    const nextJob = await acceptFile(quiet, environment, next.text, { format: next.format });
    await (how.isCancelled
      ? cancelLoad(quiet, environment, load.jobId)
      : failLoad(quiet, load.loadId, failure));
    const { state, job_id: undoJob } = await fieldOf(load, environment);
    if (undoJob === null) expect(state).toBe('not_needed');
    else {
      undos += 1;
      await startLane(quiet, environment);
      expect(await (await manualLoad(quiet, environment, nextJob)).look()).toMatchObject({
        status: 'queued',
      });
      expect(await runUndo(undoJob, environment)).toMatchObject({ status: 'completed', failure: null });
      expect((await fieldOf(load, environment)).state).toBe('undone');
      expect(await readProfiles(t.system, environment)).toEqual(profilesBefore);
    }
    await runJob(t.system, environment, nextJob);
    await loadFile(t.system, twin, next.text, { format: next.format });
    expect(await readProfiles(t.system, environment)).toEqual(await readProfiles(t.system, twin));
  });
  await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 100_000, numRuns: runs(40) });
  expect(undos).toBeGreaterThan(0);
});

test('the undo runs in the turn of a failed load, and keeps what others changed since', async () => {
  const load = await halfLoaded();
  const nextJob = await acceptFile(quiet, environmentId, 'user_id,plan\nu9,pro\n');
  await writeUsers(
    t.system.pool,
    [{ environmentId, key: 'u2', companyId: null, properties: '{"plan":"mine"}', removes: false }],
    [],
  );
  await failLoad(quiet, load.loadId, failure);
  const { job_id: undoJob, summary } = await fieldOf(load);
  expect(summary).toBe(`the load is being undone by job ${undoJob}`);
  expect((await readShown(t.system, environmentId, await load.look())).isOpen).toBe(true);
  expect(await statusOf(undoJob ?? '')).toMatchObject({
    type: 'undo',
    status: 'processing',
    filename: 'undo of users.csv',
  });
  // A second request to end the load changes nothing.
  await failLoad(quiet, load.loadId, failure);
  await runUndo(undoJob);
  expect(await statusOf(nextJob)).toMatchObject({ status: 'processing' });
  expect(await fieldOf(load)).toEqual({
    action: 'undo',
    state: 'undone',
    job_id: undoJob,
    summary: `the load is undone by job ${undoJob}, except for 1 profile that others changed since`,
  });
  expect(await profiles()).toEqual({
    users: {
      u2: { metadata: { plan: 'mine' }, company: null },
      u3: { metadata: { plan: 'pro' }, company: null },
    },
    companies: {},
  });
  await expect(retryLoad(quiet, environmentId, load.jobId)).rejects.toThrow('The job is undone');
});

test('a load that wrote nothing is not undone, and can be retried', async () => {
  const load = await start('user_id,plan\nu1,pro\nu2,pro\n');
  await failLoad(quiet, load.loadId, failure);
  expect(await fieldOf(load)).toEqual({
    action: 'undo',
    state: 'not_needed',
    job_id: null,
    summary: 'the load wrote nothing, so there is nothing to undo',
  });
  await retryLoad(quiet, environmentId, load.jobId);
  expect(await runJob(t.system, environmentId, load.jobId)).toMatchObject({ status: 'completed' });
  expect(await fieldOf(load)).toMatchObject({ state: 'not_needed', summary: null });
});

test('passes that only check a file are not undone, but an applied plan is', async () => {
  const checked = { ...oneByOne, maxErrors: { count: 0 } };
  const refused = await start('user_id,plan\nu1,pro\n,pro\nu2,pro\n', checked);
  expect(await runJob(t.system, environmentId, refused.jobId)).toMatchObject({
    failure: { code: 'too_many_rejects' },
  });
  expect((await fieldOf(refused)).state).toBe('not_needed');
  const plan = await start('user_id,plan\nu1,pro\nu2,pro\n', { ...oneByOne, plan: true });
  await runJob(t.system, environmentId, plan.jobId);
  await applyPlan(quiet, environmentId, plan.jobId, 'refuse');
  await plan.begin();
  await plan.chunk(0);
  expect(Object.keys((await profiles()).users)).toEqual(['u1']);
  await cancelLoad(quiet, environmentId, plan.jobId);
  await runUndo((await fieldOf(plan)).job_id);
  expect((await profiles()).users).toEqual({});
});

test('events of a stopped load are removed with their ids, and the file loads again', async () => {
  const event = (id: string) =>
    `${JSON.stringify({ event_type: 'track', event_name: 'e', user_id: 'u1', event_id: id })}\n`;
  const file = ['e1', 'e2', 'e3'].map(event).join('');
  const load = await start(file);
  await load.chunk(0);
  await load.chunk(2);
  await cancelLoad(quiet, environmentId, load.jobId);
  await runUndo((await fieldOf(load)).job_id);
  const count = async () =>
    (await sql`select 1 from events where environment_id = ${environmentId}`.execute(t.system.db)).rows
      .length;
  expect(await count()).toBe(0);
  expect((await loadFile(t.system, environmentId, file)).tally).toMatchObject({ inserted: 3 });
  expect(await count()).toBe(3);
});

test('a mirror that fails while it removes profiles is undone', async () => {
  await loadFile(t.system, environmentId, 'user_id,plan\nu1,pro\nu2,pro\nu3,pro\n');
  const profilesBefore = await profiles();
  const mirror = { ...oneByOne, source: { ...undone, mirror: 'remove', maxRemoved: '100%' } };
  const load = await start('user_id,plan\nu1,free\nu4,free\n', mirror);
  for (const chunk of [0, 1]) await load.chunk(chunk);
  // With this constraint, the `finish` task removes the profiles but cannot complete the load.
  await sql`alter table loads add constraint broken check (status <> 'completed' or own_file) not valid`.execute(
    t.system.db,
  );
  for (let attempt = 0; attempt < 5; attempt++) await load.finish();
  expect(await load.look()).toMatchObject({ status: 'failed' });
  expect(Object.keys((await profiles()).users)).toEqual(['u1', 'u4']);
  await runUndo((await fieldOf(load)).job_id);
  await sql`alter table loads drop constraint broken`.execute(t.system.db);
  expect(await profiles()).toEqual(profilesBefore);
});

test('a cancelled undo changes no more profiles, can be retried, and frees the lane', async () => {
  const load = await halfLoaded();
  const profilesBefore = { u2: { metadata: { plan: 'pro' }, company: null } };
  await cancelLoad(quiet, environmentId, load.jobId);
  const undoJob = (await fieldOf(load)).job_id ?? '';
  await cancelLoad(quiet, environmentId, undoJob);
  expect(await fieldOf(load)).toMatchObject({
    state: 'undo_cancelled',
    summary: expect.stringContaining(`Retry job ${undoJob}`),
  });
  const next = await loadFile(t.system, environmentId, 'user_id,plan\nu9,pro\n');
  expect(next.status).toBe('completed');
  await retryLoad(quiet, environmentId, undoJob);
  expect((await fieldOf(load)).state).toBe('undoing');
  await runUndo(undoJob);
  expect((await profiles()).users).toMatchObject(profilesBefore);
  expect(Object.keys((await profiles()).users)).toEqual(['u2', 'u3', 'u9']);
});

test('a load that is retried after its undo was cancelled is undone again, also while it waits', async () => {
  const load = await halfLoaded();
  await cancelLoad(quiet, environmentId, load.jobId);
  await cancelLoad(quiet, environmentId, (await fieldOf(load)).job_id ?? '');
  const running = await start('user_id,plan\nu8,pro\nu9,pro\n', { chunkBytes: 1 });
  await retryLoad(quiet, environmentId, load.jobId);
  const laterJob = await acceptFile(quiet, environmentId, 'user_id,plan\nu7,pro\n');
  await cancelLoad(quiet, environmentId, load.jobId);
  const undoJob = (await fieldOf(load)).job_id ?? '';
  expect(await statusOf(undoJob)).toMatchObject({ status: 'queued', queuePosition: 1 });
  expect(await statusOf(laterJob)).toMatchObject({ status: 'queued', queuePosition: 2 });
  await cancelLoad(quiet, environmentId, running.jobId);
  await runUndo(undoJob);
  expect(Object.keys((await profiles()).users)).toEqual(['u2', 'u3']);
});

test('a failed undo is reported by the load and does not block the lane', async () => {
  const load = await halfLoaded();
  await failLoad(quiet, load.loadId, failure);
  const undo = await manualLoad(quiet, environmentId, (await fieldOf(load)).job_id ?? '');
  await beginJob.fail(quiet, { subjectId: undo.loadId } as never, {
    code: 'begin_failed',
    message: 'the disk is full',
  });
  expect(await fieldOf(load)).toEqual({
    action: 'undo',
    state: 'undo_failed',
    job_id: undo.jobId,
    summary: `the undo of the load failed, and a part of the load remains: the disk is full (0 rows had been applied). Retry job ${undo.jobId} to undo the rest`,
  });
  expect((await loadFile(t.system, environmentId, 'user_id\nu9\n')).status).toBe('completed');
});

test('a command that follows a load shows its undo, and waits for its end', async () => {
  const load = await halfLoaded();
  await failLoad(quiet, load.loadId, failure);
  const { job_id: undoJob } = await fieldOf(load);
  const shown = new Set<string>();
  const followed = { environmentId, jobId: load.jobId, signal: new AbortController().signal };
  const following = followLoad(t.system, followed, {
    show: (_share, text) => void shown.add(text()),
    end: () => undefined,
  });
  const undoing = `the load is being undone by job ${undoJob}`;
  await waitFor('the undo to be shown', async () => shown.has(undoing));
  await runUndo(undoJob);
  expect(await following).toMatchObject({ status: 'failed', isTakenBack: true });
});

test('the undo of a load whose rules drop personal values keeps no file', async () => {
  await applyRules(t.system, environmentId, { users: { properties: { email: { personal: 'drop' } } } }, null);
  const load = await halfLoaded();
  await failLoad(quiet, load.loadId, failure);
  const undo = await runUndo((await fieldOf(load)).job_id);
  expect(undo).toMatchObject({ status: 'completed', hasFile: false });
  expect(await load.look()).toMatchObject({ status: 'failed', hasFile: false });
});

test('a load with on_failure is refused if changes are not logged', async () => {
  await sql`select switch_change_log(false)`.execute(t.system.db);
  await expect(start('user_id\nu1\n')).rejects.toThrow(
    'on_failure=undo needs the log of changes: set CHANGES_DAYS above 0',
  );
  await sql`select switch_change_log(true)`.execute(t.system.db);
});

// proves: deletion-order
test('a deletion also counts the undo that started before it as an earlier load', async () => {
  const load = await halfLoaded();
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u2']);
  await cancelLoad(quiet, environmentId, load.jobId);
  const { job_id: undoJob } = await fieldOf(load);
  await (await manualLoad(quiet, environmentId, undoJob ?? '')).begin();
  await cancelLoad(quiet, environmentId, undoJob ?? '');
  await expect(retryLoad(quiet, environmentId, undoJob ?? '')).rejects.toThrow(/Data was deleted/);
  expect(await deletion.run()).toMatchObject({ status: 'completed', removed: { files: 3 } });
});
