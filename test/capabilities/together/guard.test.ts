import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ScheduleContext } from '../../../src/capabilities/schedules/context.ts';
import { readRunItems } from '../../../src/capabilities/schedules/run-item-store.ts';
import type { ScheduleDefinition } from '../../../src/capabilities/schedules/schema.ts';
import { findNeeds } from '../../../src/jobs/jobs.ts';
import { cancelLoad } from '../../../src/load/end.ts';
import { requireLoad } from '../../../src/load/read-store.ts';
import { releaseLoad } from '../../../src/load/retry.ts';
import { heldLoad, usersOf } from '../../support/files/guard.ts';
import { acceptFile, endedLoad, readProfiles } from '../../support/files/load-file.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { concluded, drop } from '../inbox/support/inbox.ts';
import {
  doNext,
  finish,
  readSchedule,
  requestRun,
  runNow,
  runsOf,
  scheduleContext,
  tick,
} from '../schedules/support/schedules.ts';
import { undo } from '../undo/support/undo.ts';

const person = { kind: 'command_line', name: null } as const;
let t: TestSystem;
let context: ScheduleContext;
let folder: string;
let inbox: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-guard-'));
  inbox = join(folder, 'inbox');
  await mkdir(inbox);
  const settings = { INBOX_DIR: inbox, INBOX_STABLE_MS: '100' };
  t = await openTestSystem({ settings, worker: true });
  context = scheduleContext(t, { localRoots: [folder] });
});
afterAll(async () => {
  await t.close();
  await rm(folder, { recursive: true, force: true });
});

let environments = 0;
async function tenant() {
  const { environment } = await t.addEnvironment(`guarded-${++environments}`);
  return environment;
}

const show = (environmentId: number, jobId: string) => requireLoad(t.system, environmentId, jobId);

describe('a schedule with guard=usual', () => {
  let minutes = 0;
  const nightly = (environment: string, options = {}): ScheduleDefinition =>
    readSchedule({
      load: { files: { pattern: `${environment}-*.csv` }, guard: 'usual', entity: 'users', ...options },
      notify: { emails: ['ops@example.com'] },
    });
  const put = async (environment: string, night: number, content: string) => {
    await mkdir(join(folder, environment), { recursive: true });
    await writeFile(join(folder, environment, `${environment}-2026-11-${night}.csv`), content);
  };

  async function holdFourthNight(content: string) {
    const { environmentId, name } = await tenant();
    const schedule = nightly(name);
    for (const night of [10, 11, 12]) {
      await put(name, night, usersOf(90 + night, { refused: 1, columns: ['plan', 'seats'] }));
      const run = await runNow(context, environmentId, schedule);
      expect(run).toMatchObject({ status: 'completed_with_rejects' });
    }
    const profilesBefore = await readProfiles(t.system, environmentId);
    await put(name, 13, content);
    await requestRun(context, environmentId, schedule, new Date(Date.UTC(2026, 1, 1, 0, ++minutes)));
    await doNext(context);
    const load = await heldLoad(t, environmentId);
    expect(await readProfiles(t.system, environmentId)).toEqual(profilesBefore);
    return { environmentId, name, schedule, load };
  }

  // proves: guard-holds
  test('a schedule holds each file that differs from the usual, and writes nothing', async () => {
    const seats = { columns: ['plan', 'seats'] };
    const unlike = [
      ['a column that is new', usersOf(100, { columns: ['plan', 'seats', 'price'] }), ['columns']],
      [
        'all of them',
        usersOf(10, { refused: 9, columns: ['price'] }),
        ['rows', 'rejected', 'columns', 'columns'],
      ],
    ] as const;
    const firstHeld = await holdFourthNight(usersOf(5, seats));
    const { environmentId, name, schedule } = firstHeld;
    await cancelLoad(context, environmentId, firstHeld.load.jobId, null, person);
    await finish(context, schedule);
    const fileOf = (night: number) => join(folder, name, `${name}-2026-11-${night}.csv`);
    await rm(fileOf(13));
    const profilesBefore = await readProfiles(t.system, environmentId);
    for (const [night, [caseName, content, figures]] of unlike.entries()) {
      await put(name, 14 + night, content);
      await requestRun(context, environmentId, schedule, new Date(Date.UTC(2026, 1, 1, 0, ++minutes)));
      await doNext(context);
      const load = await heldLoad(t, environmentId);
      expect([caseName, load.held?.reasons.map(({ figure }) => figure)]).toEqual([caseName, figures]);
      expect(load).toMatchObject({ status: 'held', endedAt: null, hasFile: true });
      expect(await readProfiles(t.system, environmentId)).toEqual(profilesBefore);
      await cancelLoad(context, environmentId, load.jobId, null, person);
      await finish(context, schedule);
      await rm(fileOf(14 + night));
    }
  });

  // proves: guard-released
  test('a released load of a schedule is loaded, and counts as usual from then on', async () => {
    const content = usersOf(60, { columns: ['plan', 'seats'] });
    const { environmentId, schedule, load, name } = await holdFourthNight(content);
    expect((await runsOf(context, schedule)).at(-1)).toMatchObject({
      status: 'held',
      reason: expect.stringContaining(`job ${load.jobId} is held`),
    });
    await releaseLoad(context, environmentId, load.jobId, person);
    expect(await finish(context, schedule)).toMatchObject({ status: 'completed' });
    expect(await show(environmentId, load.jobId)).toMatchObject({
      status: 'completed',
      tally: { read: 60, inserted: 1, updated: 59, rejected: 0 },
      held: { decidedBy: person },
    });
    await expect(releaseLoad(context, environmentId, load.jobId, person)).rejects.toMatchObject({
      problems: [{ code: 'job_not_held', message: 'The job is completed, not held' }],
    });
    await expect(cancelLoad(context, environmentId, load.jobId)).rejects.toThrow('completed already');
    await put(name, 14, usersOf(59, { columns: ['plan', 'seats'] }));
    expect(await runNow(context, environmentId, schedule)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-released
  test('a cancelled load of a schedule fails the run, and the next takes its file', async () => {
    const { environmentId, schedule, load } = await holdFourthNight(usersOf(60));
    const at = await cancelLoad(context, environmentId, load.jobId, null, person);
    expect(await cancelLoad(context, environmentId, load.jobId, null, person)).toEqual(at);
    await expect(releaseLoad(context, environmentId, load.jobId, person)).rejects.toMatchObject({
      problems: [{ code: 'job_not_held' }],
    });
    expect(await finish(context, schedule)).toMatchObject({ status: 'failed', code: 'job_cancelled' });
    expect(await show(environmentId, load.jobId)).toMatchObject({
      status: 'cancelled',
      tally: { read: 0 },
      held: { decidedAt: at, decidedBy: person },
    });
  });

  // proves: guard-holds
  test('a held load notifies the addresses of its schedule in the same commit', async () => {
    const { environmentId, load } = await holdFourthNight(usersOf(60));
    const { rows } = await sql`
      select v.type, d.target, v.body::json -> 'data' -> 'held' -> 'reasons' -> 0 ->> 'figure' as figure
      from notification_events v
      join notification_deliveries d using (event_id)
      where v.environment_id = ${environmentId} and v.job_id = ${load.jobId}`.execute(context.db);
    expect(rows).toEqual([{ type: 'load.held', target: 'ops@example.com', figure: 'rows' }]);
    const [environmentNeeds] = await findNeeds(t.system.pool, environmentId, []);
    expect(environmentNeeds?.needs).toContainEqual(
      expect.objectContaining({ kind: 'loads_held', count: 1, subject: load.jobId }),
    );
  });

  // proves: guard-lane
  test('a held load does not delay others, and the next run is skipped or waits', async () => {
    const { environmentId, schedule } = await holdFourthNight(usersOf(60));
    const otherJob = await acceptFile(t.system, environmentId, usersOf(3, { columns: ['other'] }));
    expect(await endedLoad(t.system, environmentId, otherJob)).toMatchObject({ status: 'completed' });
    await tick(context, [schedule], '2036-03-01T01:00:01', environmentId);
    expect((await runsOf(context, schedule)).at(-1)).toMatchObject({ status: 'skipped' });
    await tick(context, [{ ...schedule, overlap: 'wait' }], '2036-03-01T02:00:01', environmentId);
    expect((await runsOf(context, schedule)).at(-1)).toMatchObject({ status: 'queued' });
  });

  test('undone loads and loads of other files or schedules do not count as usual', async () => {
    const { environmentId, name } = await tenant();
    const schedule = nightly(name);
    for (const night of [10, 11, 12]) {
      await put(name, night, usersOf(100 + night));
      const { runId } = await runNow(context, environmentId, schedule);
      const [item] = await readRunItems(context.db, runId);
      if (night > 10) continue;
      await undo(t.system, environmentId, [item?.jobId ?? '']);
    }
    await put(name, 13, usersOf(5));
    expect(await runNow(context, environmentId, schedule)).toMatchObject({ status: 'completed' });
    const otherSchedule = nightly(name);
    await put(name, 14, usersOf(900));
    expect(await runNow(context, environmentId, otherSchedule)).toMatchObject({ status: 'completed' });
  });
});

describe('an inbox folder with a guard', () => {
  async function guardedFolder(guard: string) {
    const { environmentId, name } = await tenant();
    const path = join(inbox, name);
    await waitFor('the folders of the environment', () => stat(join(path, 'companies')));
    await drop(join(path, 'users', 'mapping.yaml'), `guard: ${guard}\n`);
    return { environmentId, path };
  }

  // proves: guard-holds
  test('a file that differs from the guard stays in its folder until it is released', async () => {
    const { environmentId, path } = await guardedFolder(
      '{ rows: 5..20, max_rejected: 10%, columns: [user_id, plan] }',
    );
    const droppedPath = join(path, 'users', 'a.csv');
    await drop(droppedPath, usersOf(3, { refused: 1, columns: ['price'] }));
    const { jobId, held: hold } = await heldLoad(t, environmentId);
    expect(hold?.reasons.map(({ message }) => message)).toEqual([
      '3 rows; expected: 5 to 20',
      '1 of 3 records refused; expected: at most 0',
      'missing: plan',
      'new: price',
    ]);
    await drop(join(path, 'users', 'b.csv'), usersOf(5));
    await concluded(path, 'users/b.csv');
    expect((await stat(droppedPath)).isFile()).toBe(true);
    await releaseLoad(context, environmentId, jobId, person);
    const [file] = await concluded(path, 'users/a.csv');
    expect(file).toMatchObject({
      outcome: 'done',
      receipt: { counts: { inserted: 0, updated: 2, rejected: 1 } },
    });
  });

  // proves: guard-usual
  test('a file is compared with files of the same folder and name, except for digits', async () => {
    const { environmentId, path } = await guardedFolder('usual');
    for (const day of [1, 2, 3]) {
      await drop(join(path, 'users', `crm-${day}.csv`), usersOf(100 + day));
      await drop(join(path, 'users', `erp-${day}.csv`), usersOf(9 + day));
      await concluded(path, `users/crm-${day}.csv`);
      await concluded(path, `users/erp-${day}.csv`);
    }
    await drop(join(path, 'users', 'erp-4.csv'), usersOf(10));
    await concluded(path, 'users/erp-4.csv');
    await drop(join(path, 'users', 'crm-4.csv'), usersOf(10, { columns: ['plan'] }).replaceAll('-10', '-x'));
    expect(await heldLoad(t, environmentId)).toMatchObject({ filename: 'crm-4.csv' });
  });
});
