import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import type { MirrorField } from '../../../src/capabilities/mirror/api.ts';
import { MIRROR_SLICE_PROFILES } from '../../../src/capabilities/mirror/mirror.ts';
import { cancelLoad, startLane } from '../../../src/load/end.ts';
import { type Load, readShown } from '../../../src/load/read-store.ts';
import { retryLoad } from '../../../src/load/retry.ts';
import {
  acceptFile,
  countLeftovers,
  type FileOptions,
  loadFile,
  manualLoad,
  newEnvironment,
  readProfiles,
  runAtOnce,
  runJob,
  runManually,
  shuffled,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import type { Profiles } from '../../support/oracles/serial-oracle.ts';
import { runs } from '../../support/runs.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { writeUsers } from '../../support/servers/write-users.ts';
import { undo } from '../undo/support/undo.ts';

const t = await systemOfFile();
let environmentId: number;
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const mirror: FileOptions = { source: { mirror: 'remove', maxRemoved: '100%' } };
const load = (content: string, options: FileOptions = {}) =>
  loadFile(t.system, environmentId, content, options);
const csv = (ids: readonly string[], plan = 'pro') =>
  `user_id,plan\n${ids.map((id) => `${id},${plan}\n`).join('')}`;
const usersOf = async (environment: number): Promise<Profiles['users']> =>
  (await readProfiles(t.system, environment)).users;
const ids = async () => Object.keys(await usersOf(environmentId));
const outcome = async (ended: Load) =>
  (await readShown(t.system, environmentId, ended)).fields['mirror'] as MirrorField;

async function identify(environment: number, keys: readonly string[], properties: object): Promise<void> {
  const row = (key: string) => ({
    environmentId: environment,
    key,
    companyId: null,
    properties: JSON.stringify(properties),
    removes: false,
  });
  for (const key of keys) await writeUsers(t.system.pool, [row(key)], []);
}

const someKeys = fc.uniqueArray(fc.constantFrom(...Array.from({ length: 12 }, (_, at) => `k${at}`)), {
  maxLength: 8,
});
const fileKeys = fc.array(fc.constantFrom(...Array.from({ length: 12 }, (_, at) => `k${at}`)), {
  minLength: 1,
  maxLength: 14,
});

interface Scene {
  readonly before: readonly string[];
  readonly early: readonly string[];
  readonly file: readonly string[];
  readonly late: readonly string[];
  readonly since: readonly (readonly string[])[];
  readonly chunkBytes: number;
  readonly ranks: readonly number[];
}

/**
 * Runs one scene: an early load, then the mirror, then a late load, with single records in between.
 * Returns the users and the mirror's job.
 */
async function play(environment: number, scene: Scene, options: FileOptions | null) {
  const quiet = withoutQueue(t.system);
  const accept = (keys: readonly string[], plan: string, moreOptions: FileOptions = {}) =>
    keys.length === 0 ? null : acceptFile(quiet, environment, csv(keys, plan), moreOptions);
  const [firstKeys = [], secondKeys = [], thirdKeys = []] = scene.since;
  await loadFile(t.system, environment, csv(['k0', 'k1', ...scene.before], 'before'));
  const early = await accept(scene.early, 'early');
  await identify(environment, scene.before.slice(0, 2), { old: 1 });
  const { chunkBytes } = scene;
  const job = options && (await accept(scene.file, 'file', { ...options, chunkBytes }));
  const lateJob = await accept(scene.late, 'late');
  await identify(environment, firstKeys, { single: 1 });
  if (early !== null) await run(environment, early, scene);
  await identify(environment, secondKeys, { single: 1 });
  if (job != null) {
    const [ended] = await Promise.all([
      run(environment, job, scene),
      identify(environment, thirdKeys, { single: 1 }),
    ]);
    expect(ended).toMatchObject({ status: 'completed', failure: null });
  } else await identify(environment, thirdKeys, { single: 1 });
  if (lateJob !== null) await runJob(t.system, environment, lateJob);
  return { users: await usersOf(environment), job };
}

async function run(environment: number, jobId: string, { ranks }: Scene): Promise<Load> {
  await startLane(withoutQueue(t.system), environment);
  const running = await manualLoad(t.system, environment, jobId);
  return runAtOnce(running, shuffled(running, ranks), 2);
}

const scenes = fc.record({
  before: someKeys,
  early: someKeys,
  file: fileKeys,
  late: someKeys,
  since: fc.array(
    someKeys.map((keys) => keys.slice(0, 2)),
    { minLength: 3, maxLength: 3 },
  ),
  chunkBytes: fc.constantFrom(1, 16, 40, 4_096),
  ranks: fc.array(fc.nat(), { minLength: 20, maxLength: 20 }),
});

// proves: mirror
test('after a mirror the users are the users of its file and of later writes', async () => {
  const property = fc.asyncProperty(scenes, async (scene) => {
    const with_ = await newEnvironment(t.system);
    const without = await newEnvironment(t.system);
    const { users } = await play(with_, scene, mirror);
    const plainScene = await play(without, scene, {});
    const [, , concurrent = []] = scene.since;
    const staying = new Set([...scene.file, ...scene.since.flat()]);
    expect(new Set(Object.keys(users))).toEqual(new Set([...staying, ...scene.late]));
    for (const [id, user] of Object.entries(users)) {
      if (!staying.has(id)) expect(user.metadata).toEqual({ plan: 'late' });
      else if (!concurrent.includes(id)) expect(user, id).toEqual(plainScene.users[id]);
      else expect(user.metadata['single']).toBe(1);
    }
  });
  await fc.assert(property, { numRuns: runs(45) });
});

// proves: mirror, undo
test('the undo of a mirror leaves the users as if its file had never been loaded', async () => {
  const property = fc.asyncProperty(scenes, async (scene) => {
    const alone = { ...scene, late: [], since: [scene.since[0] ?? [], scene.since[1] ?? [], []] };
    const with_ = await newEnvironment(t.system);
    const without = await newEnvironment(t.system);
    const { job } = await play(with_, alone, mirror);
    const plainScene = await play(without, alone, null);
    expect(await undo(t.system, with_, [job ?? ''])).toMatchObject({ status: 'completed', failure: null });
    expect(await usersOf(with_)).toEqual(plainScene.users);
  });
  await fc.assert(property, { numRuns: runs(20) });
});

const usersFrom = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `u${from + at}`);

test('a mirror that is lost between two slices is completed by its next attempt', async () => {
  const count = 2 * MIRROR_SLICE_PROFILES + 10;
  await load(csv(usersFrom(count)));
  const running = await startManually(t.system, environmentId, csv(['u0', 'new']), mirror);
  await running.chunk(0);
  await sql`
    create function sluice.stop_second() returns trigger language plpgsql as $$
    begin
      if (select count(*) from sluice.users where environment_id = old.environment_id) < ${sql.lit(MIRROR_SLICE_PROFILES + 5)} then
        raise exception 'stopped' using errcode = '08006';
      end if;
      return old;
    end $$`.execute(t.system.db);
  await sql`create trigger stop_second before delete on sluice.users for each row when (old.environment_id = ${sql.lit(environmentId)}) execute function sluice.stop_second()`.execute(
    t.system.db,
  );
  expect((await running.finish()).status).toBe('processing');
  expect(await outcome(await running.look())).toMatchObject({
    missing: count - 1,
    done: MIRROR_SLICE_PROFILES,
  });
  expect(await ids()).toHaveLength(count + 1 - MIRROR_SLICE_PROFILES);
  await sql`drop trigger stop_second on sluice.users`.execute(t.system.db);
  await identify(environmentId, [`u${count - 1}`], { single: 1 });
  const ended = await running.finish();
  expect(ended.status).toBe('completed');
  expect(await outcome(ended)).toMatchObject({ missing: count - 1, done: count - 2, kept_because: null });
  expect(await ids()).toEqual(['new', 'u0', `u${count - 1}`]);
  expect(await countLeftovers(t.system, running.jobId)).toBe(0);
});

test('unchanged, superseded and repeated records count as present in the file', async () => {
  const file = csv(usersFrom(300));
  await load(file);
  const repeated = await load(file, mirror);
  expect(repeated.tally.unchanged).toBe(300);
  expect(await outcome(repeated)).toMatchObject({ profiles: 300, missing: 0, done: 0 });
  const running = await startManually(t.system, environmentId, csv([...usersFrom(5), 'u1', 'u0']), {
    ...mirror,
    chunkBytes: 16,
  });
  await running.chunk(0);
  await t.system.db
    .updateTable('loads')
    .set({ status: 'cancelled', ended_at: sql`now()` })
    .where('load_id', '=', running.loadId)
    .execute();
  await t.system.db.deleteFrom('tasks').where('subject_id', '=', running.loadId).execute();
  await load(csv(['between']));
  await retryLoad(withoutQueue(t.system), environmentId, running.jobId);
  const ended = await runJob(t.system, environmentId, running.jobId);
  expect(await outcome(ended)).toMatchObject({ missing: 295, done: 295 });
  expect(await ids()).toEqual(['between', ...usersFrom(5)]);
});

test('the later of two waiting mirrors also removes the profiles of the earlier', async () => {
  await load(csv(['u0', 'u1', 'u2']));
  const accept = (keys: readonly string[]) =>
    acceptFile(withoutQueue(t.system), environmentId, csv(keys), mirror);
  await accept(['u0', 'a']);
  const laterJob = await accept(['u1', 'b']);
  expect(await outcome(await runJob(t.system, environmentId, laterJob))).toMatchObject({
    missing: 2,
    done: 2,
  });
  expect(await ids()).toEqual(['b', 'u1']);
});

test('a mirror removes nothing while changes are not logged for an undo', async () => {
  await load(csv(['u0', 'u1']));
  const job = await acceptFile(withoutQueue(t.system), environmentId, csv(['u0']), mirror);
  await sql`select sluice.switch_change_log(false)`.execute(t.system.db);
  try {
    await expect(load(csv(['u0']), mirror)).rejects.toThrow('CHANGES_DAYS');
    expect(await outcome(await runJob(t.system, environmentId, job))).toMatchObject({
      done: 0,
      kept_because: 'changes_not_kept',
    });
  } finally {
    await sql`select sluice.switch_change_log(true)`.execute(t.system.db);
    // Declares the log complete from the start. Otherwise, later tests would have to wait for open
    // transactions of other databases.
    await sql`update change_log set complete_since = 0`.execute(t.system.db);
  }
  expect(await ids()).toEqual(['u0', 'u1']);
});

// proves: mirror
test('a mirror removes nobody after the load of a later file, which may have them', async () => {
  await load(csv(['u0', 'u1', 'u2']));
  const quiet = withoutQueue(t.system);
  const job = await acceptFile(quiet, environmentId, csv(['u0']), mirror);
  await cancelLoad(quiet, environmentId, job);
  await load(csv(['u0', 'u1']));
  await retryLoad(quiet, environmentId, job);
  expect(await outcome(await runJob(t.system, environmentId, job))).toMatchObject({
    done: 0,
    kept_because: 'newer_file',
  });
  expect(await ids()).toEqual(['u0', 'u1', 'u2']);
  expect(await outcome(await load(csv(['u0']), mirror))).toMatchObject({ done: 2, kept_because: null });
});

// proves: mirror
test.each([
  ['in one chunk', {}],
  ['in many chunks, one after another', { chunkBytes: 40 }],
  ['after a guard', { maxChanged: { percent: 100 } }],
])('new users of the file do not raise the share of max_removed: %s', async (_, moreOptions) => {
  await load(csv(usersFrom(20)));
  const defaultMirror = { source: { mirror: 'remove' }, ...moreOptions };
  const file = csv([...usersFrom(400, 1_000), 'u1000', 'u1399']);
  const ended = await runManually(await startManually(t.system, environmentId, file, defaultMirror));
  expect(await outcome(ended)).toMatchObject({
    profiles: 20,
    missing: 20,
    allowed: 1,
    done: 0,
    kept_because: 'too_many',
  });
  expect(await ids()).toHaveLength(420);
});

test('a dry run of a mirror counts the missing profiles and removes none', async () => {
  await load(csv(['u0', 'u1']));
  const dryRun = await load(csv(['u0']), { ...mirror, dryRun: true });
  expect(await outcome(dryRun)).toMatchObject({ missing: 1, done: 0, kept_because: null });
  expect(await ids()).toEqual(['u0', 'u1']);
});

// proves: mirror
test('a failed mirror removes nobody, even with mirror_despite_rejects', async () => {
  await load(csv(['u0', 'u1']));
  const source = { mirror: 'remove', maxRemoved: '100%', mirrorDespiteRejects: true };
  const failed = await load('user_id,plan\n,pro\n,pro\n', { source });
  expect(failed).toMatchObject({ status: 'failed', failure: { code: 'all_records_refused' } });
  expect(await ids()).toEqual(['u0', 'u1']);
});

/** Cancels a mirror after it has removed some profiles. Then rewrites one of these profiles. */
async function cancelledHalfway(): Promise<string> {
  await load(csv(usersFrom(MIRROR_SLICE_PROFILES + 10)));
  const running = await startManually(t.system, environmentId, csv(['u0']), mirror);
  await running.chunk(0);
  await sql`
    create or replace function sluice.stop_any() returns trigger language plpgsql as $$
    begin
      raise exception 'stopped' using errcode = '08006';
    end $$`.execute(t.system.db);
  await sql`create trigger stop_any before delete on sluice.users for each row when (old.environment_id = ${sql.lit(environmentId)} and old.user_id = 'u999') execute function sluice.stop_any()`.execute(
    t.system.db,
  );
  await running.finish();
  await sql`drop trigger stop_any on sluice.users`.execute(t.system.db);
  await cancelLoad(withoutQueue(t.system), environmentId, running.jobId);
  await identify(environmentId, ['u1'], { single: 1 });
  return running.jobId;
}

test('a retried mirror continues with the remaining profiles', async () => {
  const jobId = await cancelledHalfway();
  await retryLoad(withoutQueue(t.system), environmentId, jobId);
  expect((await runJob(t.system, environmentId, jobId)).status).toBe('completed');
  expect(await ids()).toEqual(['u0', 'u1']);
});

// proves: mirror
test('a retried mirror removes nothing more after the load of a later file', async () => {
  const jobId = await cancelledHalfway();
  const remaining = await ids();
  await load(csv(['u999']));
  await retryLoad(withoutQueue(t.system), environmentId, jobId);
  expect((await runJob(t.system, environmentId, jobId)).status).toBe('completed');
  expect(await ids()).toEqual(remaining);
});

// proves: mirror, environments-apart
test('later files of another environment do not stop a mirror', async () => {
  await load(csv(['u0', 'u1']));
  const quiet = withoutQueue(t.system);
  const job = await acceptFile(quiet, environmentId, csv(['u0']), mirror);
  await cancelLoad(quiet, environmentId, job);
  const otherEnvironment = await newEnvironment(t.system);
  // The second load changes nothing. In the environment of the mirror, even a load without changes
  // would stop the mirror.
  for (const ids of [
    ['u0', 'u1', 'u2'],
    ['u0', 'u1'],
  ])
    await loadFile(t.system, otherEnvironment, csv(ids));
  await retryLoad(quiet, environmentId, job);
  expect(await outcome(await runJob(t.system, environmentId, job))).toMatchObject({
    done: 1,
    kept_because: null,
  });
});
