import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ScheduleContext } from '../../src/capabilities/schedules/context.ts';
import { readRunItems } from '../../src/capabilities/schedules/run-store.ts';
import type { ScheduleDefinition } from '../../src/capabilities/schedules/schema.ts';
import { acceptUndo } from '../../src/capabilities/undo/accept.ts';
import { HOLD_EXPIRED } from '../../src/domain/load.ts';
import { findNeeds } from '../../src/jobs/jobs.ts';
import { prune } from '../../src/jobs/prune.ts';
import { cancelLoad, failLoad } from '../../src/load/end.ts';
import { type Load, requireLoad } from '../../src/load/read-store.ts';
import { releaseLoad, retryLoad } from '../../src/load/retry.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { concluded, drop } from '../support/inbox.ts';
import {
  acceptFile,
  endedLoad,
  manualLoad,
  readProfiles,
  runManually,
  startManually,
  withoutQueue,
} from '../support/load-file.ts';
import {
  askFor,
  doNext,
  finish,
  readSchedule,
  runNow,
  runsOf,
  scheduleContext,
  tick,
} from '../support/schedules.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';
import { waitFor } from '../support/wait-for.ts';

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

interface Shape {
  readonly refused?: number;
  readonly columns?: readonly string[];
}

/** A CSV of so many users, of which the first `refused` have no id. */
function users(rows: number, { refused = 0, columns = ['plan'] }: Shape = {}): string {
  const lines = Array.from({ length: rows }, (_, row) => [
    row < refused ? '' : `u${row}`,
    ...columns.map((name) => `${name}-${rows}`),
  ]);
  return `${['user_id', ...columns].join()}\n${lines.map((cells) => `${cells.join()}\n`).join('')}`;
}

let environments = 0;
async function tenant() {
  const { environment } = await t.addEnvironment(`guarded-${++environments}`);
  return environment;
}

const show = (environmentId: number, jobId: string) => requireLoad(t.system, environmentId, jobId);
const countUsers = async (environmentId: number) =>
  Object.keys((await readProfiles(t.system, environmentId)).users).length;

function heldLoad(environmentId: number): Promise<Load> {
  return waitFor('a load to be held', async () => {
    const row = await t.system.db
      .selectFrom('loads')
      .select('job_id')
      .where((eb) => eb.and({ environment_id: environmentId, status: 'held' }))
      .executeTakeFirst();
    return row === undefined ? null : show(environmentId, row.job_id);
  });
}

describe('a schedule with guard=usual', () => {
  let minutes = 0;
  const nightly = (environment: string, more = {}): ScheduleDefinition =>
    readSchedule({
      load: { files: { pattern: `${environment}-*.csv` }, guard: 'usual', entity: 'users', ...more },
      notify: { emails: ['ops@example.com'] },
    });
  const put = async (environment: string, night: number, content: string) => {
    await mkdir(join(folder, environment), { recursive: true });
    await writeFile(join(folder, environment, `${environment}-2026-11-${night}.csv`), content);
  };

  /** Three usual nights, and a fourth whose file is given: its load is held. */
  async function held(content: string) {
    const { environmentId, name } = await tenant();
    const schedule = nightly(name);
    for (const night of [10, 11, 12]) {
      await put(name, night, users(90 + night, { refused: 1, columns: ['plan', 'seats'] }));
      const run = await runNow(context, environmentId, schedule);
      expect(run).toMatchObject({ status: 'completed_with_rejects' });
    }
    const before = await readProfiles(t.system, environmentId);
    await put(name, 13, content);
    await askFor(context, environmentId, schedule, new Date(Date.UTC(2026, 1, 1, 0, ++minutes)));
    await doNext(context);
    const load = await heldLoad(environmentId);
    expect(await readProfiles(t.system, environmentId)).toEqual(before);
    return { environmentId, name, schedule, load };
  }

  // proves: guard-holds
  test('holds each file that is unlike the usual ones, and writes nothing of it', async () => {
    const seats = { columns: ['plan', 'seats'] };
    const unlike = [
      ['far fewer rows', users(60, seats), ['rows']],
      ['far more rows', users(160, seats), ['rows']],
      ['a column that is missing', users(100), ['columns']],
      ['a column that is new', users(100, { columns: ['plan', 'seats', 'price'] }), ['columns']],
      ['more refused records', users(100, { refused: 9, ...seats }), ['rejected']],
      [
        'all of them',
        users(10, { refused: 9, columns: ['price'] }),
        ['rows', 'rejected', 'columns', 'columns'],
      ],
    ] as const;
    const first = await held(users(5, seats));
    const { environmentId, name, schedule } = first;
    await cancelLoad(context, environmentId, first.load.jobId, null, person);
    await finish(context, schedule);
    const fileOf = (night: number) => join(folder, name, `${name}-2026-11-${night}.csv`);
    await rm(fileOf(13));
    const before = await readProfiles(t.system, environmentId);
    for (const [night, [what, content, figures]] of unlike.entries()) {
      await put(name, 14 + night, content);
      await askFor(context, environmentId, schedule, new Date(Date.UTC(2026, 1, 1, 0, ++minutes)));
      await doNext(context);
      const load = await heldLoad(environmentId);
      expect([what, load.held?.reasons.map(({ figure }) => figure)]).toEqual([what, figures]);
      expect(load).toMatchObject({ status: 'held', endedAt: null, hasFile: true });
      expect(await readProfiles(t.system, environmentId)).toEqual(before);
      await cancelLoad(context, environmentId, load.jobId, null, person);
      await finish(context, schedule);
      await rm(fileOf(14 + night));
    }
  });

  // proves: guard-released
  test('loads it once it is released, and counts it as usual from then on', async () => {
    const content = users(60, { columns: ['plan', 'seats'] });
    const { environmentId, schedule, load, name } = await held(content);
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
      problems: [{ code: 'job_not_held', message: 'the job is completed, not held' }],
    });
    await expect(cancelLoad(context, environmentId, load.jobId)).rejects.toThrow('completed already');
    await put(name, 14, users(59, { columns: ['plan', 'seats'] }));
    expect(await runNow(context, environmentId, schedule)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-released
  test('discards it when it is cancelled; the run fails, and the next takes the file again', async () => {
    const { environmentId, schedule, load } = await held(users(60));
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
  test('notifies those whom the schedule names, in the commit that holds it', async () => {
    const { environmentId, load } = await held(users(60));
    const { rows } = await sql`
      select v.type, d.target, v.body::json -> 'data' -> 'held' -> 'reasons' -> 0 ->> 'figure' as figure
      from notification_events v
      join notification_deliveries d using (event_id)
      where v.environment_id = ${environmentId} and v.job_id = ${load.jobId}`.execute(context.db);
    expect(rows).toEqual([{ type: 'load.held', target: 'ops@example.com', figure: 'rows' }]);
    const [found] = await findNeeds(t.system.pool, environmentId, []);
    expect(found?.needs).toContainEqual(
      expect.objectContaining({ kind: 'loads_held', count: 1, subject: load.jobId }),
    );
  });

  // proves: guard-lane
  test('lets other loads pass; the next run is skipped, or waits if that is its policy', async () => {
    const { environmentId, schedule } = await held(users(60));
    const other = await acceptFile(t.system, environmentId, users(3, { columns: ['other'] }));
    expect(await endedLoad(t.system, environmentId, other)).toMatchObject({ status: 'completed' });
    await tick(context, [schedule], '2036-03-01T01:00:01', environmentId);
    expect((await runsOf(context, schedule)).at(-1)).toMatchObject({ status: 'skipped' });
    await tick(context, [{ ...schedule, overlap: 'wait' }], '2036-03-01T02:00:01', environmentId);
    expect((await runsOf(context, schedule)).at(-1)).toMatchObject({ status: 'queued' });
  });

  // proves: guard-usual
  test('takes plans and dry runs for no past, for nothing of them is stored', async () => {
    const { environmentId } = await tenant();
    const night = (rows: number, more = {}) => {
      const filename = `crm-${rows}.csv`;
      return startManually(t.system, environmentId, users(rows), { filename, guard: 'usual', ...more });
    };
    for (const rows of [100, 101, 102]) await runManually(await night(rows));
    for (const more of [{ plan: true }, { dryRun: true }])
      expect(await runManually(await night(10, more))).toMatchObject({ status: 'completed' });
    expect(await runManually(await night(11))).toMatchObject({ status: 'held' });
  });

  // proves: guard-usual
  test('takes arrays that are called as a file is for no past of it', async () => {
    const { environmentId } = await tenant();
    const night = async (rows: number) =>
      runManually(
        await startManually(t.system, environmentId, users(rows), { filename: 'crm.csv', guard: 'usual' }),
      );
    for (const rows of [100, 101, 102]) await night(rows);
    await sql`update loads set type = 'bulk_identify_users' where environment_id = ${environmentId}`.execute(
      context.db,
    );
    expect(await night(11)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-usual, environments-apart
  test('takes loads of another environment for no past', async () => {
    const [one, other] = [await tenant(), await tenant()];
    const night = async ({ environmentId }: typeof one, rows: number) =>
      runManually(
        await startManually(t.system, environmentId, users(rows), { filename: 'apart.csv', guard: 'usual' }),
      );
    for (const rows of [100, 101, 102]) await night(one, rows);
    expect(await night(other, 11)).toMatchObject({ status: 'completed' });
  });

  test('takes loads that are undone, of other files or of other schedules for no past', async () => {
    const { environmentId, name } = await tenant();
    const schedule = nightly(name);
    for (const night of [10, 11, 12]) {
      await put(name, night, users(100 + night));
      const { runId } = await runNow(context, environmentId, schedule);
      const [item] = await readRunItems(context.db, runId);
      if (night > 10) continue;
      const jobId = await acceptUndo(
        context,
        {
          jobIds: [item?.jobId ?? ''],
          plan: false,
          maxErrors: null,
          maxChanged: null,
          maxRemovedValues: null,
        },
        { environmentId, idempotencyKey: null, requestId: null, origin: person },
      );
      await endedLoad(t.system, environmentId, jobId);
    }
    await put(name, 13, users(5));
    expect(await runNow(context, environmentId, schedule)).toMatchObject({ status: 'completed' });
    const other = nightly(name);
    await put(name, 14, users(900));
    expect(await runNow(context, environmentId, other)).toMatchObject({ status: 'completed' });
  });
});

describe('an inbox folder with a guard', () => {
  async function guarded(guard: string) {
    const { environmentId, name } = await tenant();
    const path = join(inbox, name);
    await waitFor('the folders of the environment', () => stat(join(path, 'companies')));
    await drop(join(path, 'users', 'mapping.yaml'), `guard: ${guard}\n`);
    return { environmentId, path };
  }

  // proves: guard-holds
  test('holds a file that is unlike its figures; it stays until it is released, and holds up no other', async () => {
    const { environmentId, path } = await guarded(
      '{ rows: 5..20, max_rejected: 10%, columns: [user_id, plan] }',
    );
    const dropped = join(path, 'users', 'a.csv');
    await drop(dropped, users(3, { refused: 1, columns: ['price'] }));
    const { jobId, held } = await heldLoad(environmentId);
    expect(held?.reasons.map(({ message }) => message)).toEqual([
      '3 rows; expected: 5 to 20',
      '1 of 3 records refused; expected: at most 0',
      'missing: plan',
      'new: price',
    ]);
    await drop(join(path, 'users', 'b.csv'), users(5));
    await concluded(path, 'users/b.csv');
    expect((await stat(dropped)).isFile()).toBe(true);
    await releaseLoad(context, environmentId, jobId, person);
    const [found] = await concluded(path, 'users/a.csv');
    expect(found).toMatchObject({
      outcome: 'done',
      receipt: { counts: { inserted: 0, updated: 2, rejected: 1 } },
    });
  });

  // proves: guard-usual
  test('compares with the files of the same folder whose names differ in digits only', async () => {
    const { environmentId, path } = await guarded('usual');
    for (const day of [1, 2, 3]) {
      await drop(join(path, 'users', `crm-${day}.csv`), users(100 + day));
      await drop(join(path, 'users', `erp-${day}.csv`), users(9 + day));
      await concluded(path, `users/crm-${day}.csv`);
      await concluded(path, `users/erp-${day}.csv`);
    }
    await drop(join(path, 'users', 'erp-4.csv'), users(10));
    await concluded(path, 'users/erp-4.csv');
    await drop(join(path, 'users', 'crm-4.csv'), users(10, { columns: ['plan'] }).replaceAll('-10', '-x'));
    expect(await heldLoad(environmentId)).toMatchObject({ filename: 'crm-4.csv' });
  });
});

describe('a held load', () => {
  const options = { guard: { rows: '10..' } } as const;
  async function hold(environmentId: number, more = {}) {
    const load = await startManually(t.system, environmentId, users(5), { ...options, ...more });
    return runManually(load);
  }

  test.each([
    ['in one chunk', {}],
    ['in chunks of a record', { chunkBytes: 1 }],
    ['with a limit of changed profiles', { maxChanged: { percent: 100 }, chunkBytes: 1 }],
  ])('is loaded whole after its release, %s', async (_, more) => {
    const { environmentId } = await tenant();
    const { jobId, status } = await hold(environmentId, more);
    expect(status).toBe('held');
    expect(await countUsers(environmentId)).toBe(0);
    await releaseLoad(t.system, environmentId, jobId, person);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { read: 5, inserted: 5, rejected: 0 },
    });
  });

  test('is loaded at once where the file is as expected', async () => {
    const { environmentId } = await tenant();
    const jobId = await acceptFile(t.system, environmentId, users(12), { ...options, chunkBytes: 50 });
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      held: null,
    });
    expect(await countUsers(environmentId)).toBe(12);
  });

  test('fails instead if all its records are refused', async () => {
    const { environmentId } = await tenant();
    const jobId = await acceptFile(t.system, environmentId, users(5, { refused: 5 }), options);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      failure: { code: 'all_records_refused' },
    });
  });

  // proves: guard-released
  test('is released once, by callers who ask at the same time', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const load = await manualLoad(t.system, environmentId, jobId);
    const quiet = withoutQueue(t.system);
    await Promise.all(Array.from({ length: 4 }, () => releaseLoad(quiet, environmentId, jobId, person)));
    await runManually(load);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { inserted: 5 },
    });
  });

  // proves: guard-holds, guard-released
  test('is held again if it is retried after it was discarded', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    await cancelLoad(t.system, environmentId, jobId, null, person);
    await retryLoad(t.system, environmentId, jobId);
    expect(await heldLoad(environmentId)).toMatchObject({
      jobId,
      held: { decidedAt: null, decidedBy: null },
    });
    expect(await countUsers(environmentId)).toBe(0);
    await releaseLoad(t.system, environmentId, jobId, person);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-holds
  test.each([
    ['refused records', { maxErrors: { count: 0 }, chunkBytes: 1 }, 'too_many_rejects'],
    ['changed profiles', { maxChanged: { count: 0 } }, 'guard_exceeded'],
  ])('is still held if its retry accepts its %s', async (_, limit, code) => {
    const { environmentId } = await tenant();
    await acceptFile(t.system, environmentId, users(4)).then((jobId) =>
      endedLoad(t.system, environmentId, jobId),
    );
    const load = await startManually(t.system, environmentId, users(5, { refused: 1 }), {
      ...options,
      ...limit,
    });
    const failed = await runManually(load);
    expect(failed.failure?.code).toBe(code);
    await retryLoad(t.system, environmentId, load.jobId);
    expect(await heldLoad(environmentId)).toMatchObject({ jobId: load.jobId, tally: { rejected: 1 } });
  });

  // proves: guard-released
  test('that was released in time does not expire', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const load = await manualLoad(t.system, environmentId, jobId);
    await releaseLoad(withoutQueue(t.system), environmentId, jobId, person);
    await failLoad(t.system, load.loadId, { code: HOLD_EXPIRED, message: 'too late' });
    await runManually(load);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { inserted: 5 },
    });
  });

  // proves: deletion-order
  test('cannot be released once data was deleted, and fails when the deletion takes its file', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const deletion = await acceptDeletion(withoutQueue(t.system), environmentId, 'users', ['u1']);
    await expect(releaseLoad(t.system, environmentId, jobId, person)).rejects.toMatchObject({
      problems: [{ code: 'job_expired' }],
    });
    expect(await show(environmentId, jobId)).toMatchObject({ status: 'held' });
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await show(environmentId, jobId)).toMatchObject({
      status: 'failed',
      hasFile: false,
      failure: { code: 'job_expired' },
    });
  });

  // proves: guard-released
  test('fails when its file expires, and the file goes', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    await prune(t.system);
    expect(await show(environmentId, jobId)).toMatchObject({ status: 'held', hasFile: true });
    await sql`
      update load_guards set held_at = now() - interval '1000 days'
      where load_id = (select load_id from loads where job_id = ${jobId})`.execute(context.db);
    await prune(t.system);
    expect(await show(environmentId, jobId)).toMatchObject({
      status: 'failed',
      hasFile: false,
      failure: { code: 'hold_expired' },
    });
    expect(await countUsers(environmentId)).toBe(0);
  });

  test('is refused at once if its columns are to be those of a file that has none', async () => {
    const { environmentId } = await tenant();
    const guard = { columns: ['user_id'] };
    await expect(acceptFile(t.system, environmentId, '{"user_id":"u1"}\n', { guard })).rejects.toMatchObject({
      problems: [{ code: 'invalid_field', details: 'guard' }],
    });
  });
});
