import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { MAX_CHUNK_LOSSES } from '../../jobs/load.ts';
import type { System } from '../../src/context.ts';
import type { LoadContext } from '../../src/load/context.ts';
import { cancelLoad, startLane } from '../../src/load/end.ts';
import { retryLoad } from '../../src/load/retry.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { claimNextTask, findNextTasks, findSuspect, SUSPECT_LOSSES } from '../../src/tasks/store.ts';
import {
  countLeftovers,
  expireLeases,
  type ManualLoad,
  newEnvironment,
  readProfiles,
  readVersions,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { closedGate } from '../support/servers/gate.ts';
import { defeatFence } from '../support/servers/safeguards.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { claimTaskOf, reconcileJobs } from '../support/servers/tasks.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();

/** Returns a worker that waits at a gate before it reads a file, as a paused process would. */
function pausedWorker() {
  const gate = closedGate();
  const { files } = t.system;
  const context: LoadContext = {
    ...withoutQueue(t.system),
    files: {
      ...files,
      readRange: async (...range) => {
        const bytes = await files.readRange(...range);
        await gate.pass();
        return bytes;
      },
    },
  };
  return { ...gate, context };
}

const query = async (text: string, values: readonly unknown[] = []): Promise<unknown> =>
  t.system.pool.query(text, [...values]);

const users = (...items: readonly object[]): string =>
  items.map((item) => `${JSON.stringify(item)}\n`).join('');
const three = users({ user_id: 'k', x: 1 }, { user_id: 'v', x: 1 }, { user_id: 'k', x: 2 });

/**
 * A worker claims chunk 0 and pauses. Another worker merges the chunk before the first one wakes.
 */
async function letOneComeLate(
  beforeWaking: (chunk: Parameters<typeof defeatFence>[1]) => Promise<void> = async () => undefined,
): Promise<{ load: ManualLoad; environmentId: number; before: object }> {
  const environmentId = await newEnvironment(t.system);
  const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
  const paused = pausedWorker();
  const late = load.chunk(0, paused.context);
  await paused.arrived;
  const { task_id: taskId } = await t.system.db
    .selectFrom('tasks')
    .select('task_id')
    .where('subject_id', '=', load.loadId)
    .where('part', '=', 0)
    .executeTakeFirstOrThrow();
  await expireLeases(t.system, load.loadId);
  await load.chunk(0);
  const before = await state(environmentId, load);
  // Attempts of a chunk are numbered from 1.
  await beforeWaking({ taskId, loadId: load.loadId, chunkNo: 0, attempt: 1 });
  paused.open();
  await late;
  return { load, environmentId, before };
}

/** Adds a trigger that waits until `open` is called. */
async function addGate(kind: 'trigger' | 'constraint trigger', event: string, condition: string) {
  const gate = ++gates;
  await query(`
    create function wait_at_gate_${gate}() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${gate});
      return new;
    end $$`);
  await query(
    `create ${kind} wait_at_gate_${gate} ${event} for each row when (${condition}) execute function wait_at_gate_${gate}()`,
  );
  const gatekeeper = await t.system.pool.connect();
  await gatekeeper.query('select pg_advisory_lock($1)', [gate]);
  const open = () => gatekeeper.query('select pg_advisory_unlock_all()');
  const remove = async () => {
    await open();
    gatekeeper.release();
    await query(`drop function wait_at_gate_${gate} cascade`);
  };
  return { open, remove };
}

let gates = 7_200;

const commitOfFinish = [
  'constraint trigger',
  'after insert on tasks deferrable initially deferred',
  `new.kind = 'finish'`,
] as const;

function waiting(count: number): Promise<unknown> {
  return waitFor(`${count} sessions to wait`, async () => {
    const { rows } = await t.system.pool.query<{ count: number }>(
      `select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    );
    return rows[0]?.count === count;
  });
}

async function state(environmentId: number, load: ManualLoad): Promise<object> {
  return { tally: (await load.look()).tally, versions: await readVersions(t.system, environmentId) };
}

describe('a late worker', () => {
  // proves: stale-worker
  test('a late worker changes neither rows nor counts', async () => {
    const { load, environmentId, before } = await letOneComeLate();
    expect(await state(environmentId, load)).toEqual(before);
    await load.chunk(1);
    await load.chunk(2);
    const ended = await load.finish();
    expect(ended.status).toBe('completed');
    expect(ended.tally).toMatchObject({ read: 3, inserted: 2, superseded: 1 });
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 2 });
  });

  // proves: stale-worker
  test('without the fence a late worker counts twice, so its test would notice', async () => {
    const { load, environmentId, before } = await letOneComeLate((chunk) => defeatFence(query, chunk));
    expect(await state(environmentId, load)).not.toEqual(before);
    expect((await load.look()).tally.read).toBe(2);
    await load.chunk(1);
    await load.chunk(2);
    expect((await load.finish()).status).toBe('failed');
    // One chunk was counted twice, so the count was complete without the last chunk. The last chunk
    // is therefore never merged.
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).not.toEqual({ x: 2 });
  });

  test('a late worker that holds rows in its transaction loses its session', async () => {
    const environmentId = await newEnvironment(t.system);
    const stored = users({ user_id: 'a', x: 0 }, { user_id: 'z', x: 0 });
    await runManually(await startManually(t.system, environmentId, stored));
    const load = await startManually(
      t.system,
      environmentId,
      users({ user_id: 'a', x: 1 }, { user_id: 'z', x: 1 }),
    );
    let first: Promise<void> | undefined;
    await inTransaction(t.system.pool, async ({ db }) => {
      await sql`select from users where environment_id = ${environmentId} and user_id = 'z' for update`.execute(
        db,
      );
      first = load.chunk(0);
      await waitFor('the first attempt to wait for our row', () => waitingSessions('sluice chunk'));
      await expireLeases(t.system, load.loadId);
      const second = load.chunk(0);
      await waitFor('the first attempt to be ended', () => first?.then(() => true));
      await waitFor('the second attempt to wait for our row', () => waitingSessions('sluice chunk'));
      // The row stays locked until this transaction ends below.
      first = second;
    });
    await first;
    const ended = await load.finish();
    expect(ended.status).toBe('completed');
    expect(ended.tally).toMatchObject({ read: 2, updated: 2 });
  });

  test('a late finish changes nothing, although a later load wrote the keys of its replay', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
    for (const chunkNo of [2, 1, 0]) await load.chunk(chunkNo);
    const paused = pausedWorker();
    const late = load.finish(paused.context);
    await paused.arrived;
    await expireLeases(t.system, load.loadId);
    expect((await load.finish()).status).toBe('completed');
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 2 });
    await runManually(await startManually(t.system, environmentId, users({ user_id: 'k', x: 9 })));
    const before = await readVersions(t.system, environmentId);
    paused.open();
    await late;
    expect(await readVersions(t.system, environmentId)).toEqual(before);
    expect((await load.look()).status).toBe('completed');
    expect(await countLeftovers(t.system, load.jobId)).toBe(0);
  });

  test('a late worker of a cancelled load writes nothing', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
    await load.chunk(1);
    const paused = pausedWorker();
    const late = load.chunk(0, paused.context);
    await paused.arrived;
    await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
    paused.open();
    await late;
    const { status, tally } = await load.look();
    expect(status).toBe('cancelled');
    expect(tally).toMatchObject({ read: 1, inserted: 1 });
    expect(Object.keys((await readProfiles(t.system, environmentId)).users)).toEqual(['v']);
  });

  test('a worker that commits the last chunk while its load is cancelled leaves no task', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { dryRun: true });
    const gate = await addGate(...commitOfFinish);
    try {
      const last = load.chunk(0);
      await waiting(1);
      const cancelled = cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
      await waiting(2);
      await gate.open();
      await Promise.all([last, cancelled]);
    } finally {
      await gate.remove();
    }
    expect((await load.look()).status).toBe('cancelled');
    const { rows } = await t.system.pool.query('select kind from tasks where subject_id = $1', [load.loadId]);
    expect(rows).toEqual([]);
  });

  test('a finish that begins while its load is cancelled completes the load, without a deadlock', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { dryRun: true });
    const commit = await addGate(...commitOfFinish);
    const cancel = await addGate('trigger', 'before update on loads', `new.status = 'cancelled'`);
    try {
      const last = load.chunk(0);
      await waiting(1);
      const cancelled = cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
      const refusal = expect(cancelled).rejects.toThrow('The job is completed already');
      await waiting(2);
      await commit.open();
      await last;
      await waiting(1);
      const finished = load.finish();
      await waiting(2);
      await cancel.open();
      await Promise.all([finished, refusal]);
    } finally {
      await commit.remove();
      await cancel.remove();
    }
    expect((await load.look()).status).toBe('completed');
  });

  test('a late worker of a load that was cancelled and retried writes nothing twice', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
    const paused = pausedWorker();
    const late = load.chunk(0, paused.context);
    await paused.arrived;
    await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
    await retryLoad(withoutQueue(t.system), environmentId, load.jobId);
    const again = [load.chunk(0), load.chunk(1), load.chunk(2)];
    paused.open();
    await Promise.all([late, ...again]);
    const ended = await load.finish();
    expect(ended.status).toBe('completed');
    expect(ended.tally).toMatchObject({ read: 3, inserted: 2, superseded: 1 });
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 2 });
  });
});

describe('repeated work', () => {
  test('chunks and finishes that run repeatedly and at once count once', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
    const calls = [0, 1, 2, 0, 1, 2, 2, 1, 0].map((chunkNo) => load.chunk(chunkNo));
    await Promise.all(calls);
    for (const chunkNo of [0, 1, 2]) await load.chunk(chunkNo);
    await Promise.all([load.finish(), load.finish(), load.finish()]);
    const ended = await load.finish();
    expect(ended.status).toBe('completed');
    expect(ended.tally).toMatchObject({ read: 3, inserted: 2, superseded: 1 });
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 2 });
  });

  test('a replay that was cut short starts again from the beginning', async () => {
    const environmentId = await newEnvironment(t.system);
    const file = users({ user_id: 'k', x: 1 }, { user_id: 'k', x: 2, y: 2 }, { user_id: 'k', x: 3, y: null });
    const load = await startManually(t.system, environmentId, file, { chunkBytes: 1 });
    for (const chunkNo of [2, 1, 0]) await load.chunk(chunkNo);
    const failing: LoadContext = {
      ...t.system,
      files: {
        ...t.system.files,
        create: () => t.system.files.create(),
        open: (ref) => t.system.files.open(ref),
        remove: (ref) => t.system.files.remove(ref),
        readRange: (ref, start, end) =>
          start > 0
            ? Promise.reject(Object.assign(new Error('the disk is away'), { code: 'ECONNRESET' }))
            : t.system.files.readRange(ref, start, end),
      },
    };
    expect((await load.finish(failing)).status).toBe('processing');
    expect((await load.finish()).status).toBe('completed');
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 3 });
  });
});

describe('the locks of a finish', () => {
  const track = (event_id: string | undefined, name: string) => ({
    event_type: 'track',
    event_id,
    event_name: name,
    user_id: 'k',
    inserted_at: '2026-03-01T00:00:00Z',
  });

  // A cancellation locks the task first. If a finish updated its load first, the two could wait for
  // each other, and the cancellation could be answered with 503.
  test.each([
    [
      'keys out of order',
      [
        { user_id: 'k', x: 1 },
        { user_id: 'v', x: 1 },
        { user_id: 'k', x: 2 },
      ],
      {},
    ],
    [
      'keys that it changed and changed back',
      [
        { user_id: 'k', x: 2 },
        { user_id: 'v', x: 1 },
        { user_id: 'k', x: 1 },
      ],
      {},
    ],
    [
      'repeated keys of a plan',
      [
        { user_id: 'k', x: 2 },
        { user_id: 'v', x: 1 },
        { user_id: 'k', x: 1 },
      ],
      { dryRun: true, pass: 'plan' },
    ],
    [
      'events without an id',
      [track(undefined, 'A'), track(undefined, 'A'), { user_id: 'v', x: 1 }],
      { entity: 'auto' },
    ],
    [
      'events with the same id',
      [track('e', 'B'), { user_id: 'v', x: 1 }, track('e', 'A')],
      { entity: 'auto' },
    ],
  ] as const)('a finish with %s locks its task before its load', async (_what, records, options) => {
    const environmentId = await newEnvironment(t.system);
    await runManually(
      await startManually(t.system, environmentId, users({ user_id: 'k', x: 1 }, { user_id: 'v', x: 1 })),
    );
    const load = await startManually(t.system, environmentId, users(...records), {
      ...options,
      chunkBytes: 1,
    });
    for (const chunkNo of [2, 1, 0]) await load.chunk(chunkNo);
    await query(`
      create function require_held_task() returns trigger language plpgsql as $$
      begin
        if exists (
          select from tasks
          where kind = 'finish' and subject_id = new.load_id and xmin <> pg_current_xact_id()::xid
        ) then raise exception 'load % was updated before its task was locked', new.load_id;
        end if;
        return new;
      end $$`);
    await query(`
      create trigger require_held_task before update on loads
      for each row when (new.load_id = ${load.loadId}) execute function require_held_task()`);
    try {
      expect(await load.finish()).toMatchObject({ status: 'completed', failure: null });
    } finally {
      await query('drop function require_held_task cascade');
    }
  });
});

describe('a load that was interrupted by another load', () => {
  const file = users(
    { user_id: 'first', x: 1 },
    { user_id: 'k', x: 1, y: 1 },
    { user_id: 'k', x: 2 },
    { user_id: 'k', y: 3, company: { id: 'c', p: 1 } },
    { user_id: 'last', company: { id: 'c', p: 2 } },
  );
  const between = users(
    { user_id: 'first', x: 9 },
    { user_id: 'k', x: 9, z: 9 },
    { company_id: 'c', p: 9, q: 9 },
  );
  const orders = [
    [
      [0, 1],
      [2, 3, 4],
    ],
    [[2], [1, 0, 4, 3]],
    [
      [4, 3],
      [2, 1, 0],
    ],
    [
      [2, 0, 4],
      [3, 1],
    ],
    [[1, 2, 3, 4], [0]],
    [
      [0, 4],
      [1, 2, 3],
    ],
  ] as const;

  test.each(orders)(
    'the last record of a key wins in chunks %j, and in chunks %j after another load',
    async (firstChunks, otherChunks) => {
      const environmentId = await newEnvironment(t.system);
      const load = await startManually(t.system, environmentId, file, { chunkBytes: 1 });
      for (const chunkNo of firstChunks) await load.chunk(chunkNo);
      await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
      await runManually(await startManually(t.system, environmentId, between));
      await retryLoad(withoutQueue(t.system), environmentId, load.jobId);
      for (const chunkNo of otherChunks) await load.chunk(chunkNo);
      const ended = await load.finish();
      expect(ended.failure).toBeNull();
      expect(ended.attempts).toBe(2);
      const { users: stored, companies } = await readProfiles(t.system, environmentId);
      expect(stored['k']?.metadata).toEqual({ x: 2, y: 3, z: 9 });
      expect(companies['c']?.metadata).toEqual({ p: 2, q: 9 });
      // The key `first` occurs in only one chunk. The stored value is the one that was written
      // last.
      expect(stored['first']?.metadata).toEqual({
        x: (firstChunks as readonly number[]).includes(0) ? 9 : 1,
      });
      expect(ended.tally).toMatchObject({ read: 5, superseded: 2, rejected: 0 });
      expect(await countLeftovers(t.system, load.jobId)).toBe(0);
    },
  );

  test('records that changed nothing before another load are not forgotten', async () => {
    const environmentId = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environmentId, users({ user_id: 'k', x: 1 })));
    // The second chunk runs first and changes nothing. Before the first chunk runs, another load
    // stores the value that the first chunk contains.
    const load = await startManually(
      t.system,
      environmentId,
      users({ user_id: 'k', x: 2 }, { user_id: 'k', x: 1 }),
      {
        chunkBytes: 1,
      },
    );
    await load.chunk(1);
    await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
    await runManually(await startManually(t.system, environmentId, users({ user_id: 'k', x: 2 })));
    await retryLoad(withoutQueue(t.system), environmentId, load.jobId);
    await load.chunk(0);
    const ended = await load.finish();
    expect(ended.failure).toBeNull();
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 1 });
  });
});

describe('unfinished work of a load', () => {
  test('the reconciler continues a chunk of a lost worker, then the finish, then the next load', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await startManually(t.system, environmentId, three, { chunkBytes: 1 });
    const next = await startManually(t.system, environmentId, users({ user_id: 'k', x: 7 }));
    const paused = pausedWorker();
    const lost = load.chunk(2, paused.context);
    await paused.arrived;
    await load.chunk(0);
    await load.chunk(1);
    await expireLeases(t.system, load.loadId);
    const notified: string[] = [];
    const context: System = {
      ...withoutQueue(t.system),
      queue: {
        async notify(tasks) {
          const ids = tasks.map(({ taskId }) => taskId);
          const { rows } = await sql<{ what: string }>`
            select kind || ' ' || part as what from tasks
            where task_id = any (${ids}::bigint[]) and subject_id = ${load.loadId}`.execute(t.system.db);
          notified.push(...rows.map(({ what }) => what));
        },
      },
    };
    await reconcileJobs(context);
    expect(notified).toEqual(['chunk 2']);
    await load.chunk(2);
    // Creates the state of a worker that died just before notifying the queue.
    await sql`update tasks set notified_at = null where subject_id = ${load.loadId}`.execute(t.system.db);
    await reconcileJobs(context);
    expect(notified.at(-1)).toBe('finish 0');
    expect((await load.finish()).status).toBe('completed');
    expect((await next.look()).status).toBe('processing');
    await startLane(context, environmentId);
    await next.chunk(0);
    expect((await next.finish()).status).toBe('completed');
    paused.open();
    await lost;
    expect((await readProfiles(t.system, environmentId)).users['k']?.metadata).toEqual({ x: 7 });
  });
});

async function waitingSessions(prefix: string): Promise<boolean> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from pg_stat_activity
    where application_name like ${`${prefix}%`} and wait_event_type = 'Lock' and datname = current_database()`.execute(
    t.system.db,
  );
  return (rows[0]?.count ?? 0) > 0;
}

describe('the only chunk of a load', () => {
  const start = (environmentId: number, content = three): Promise<ManualLoad> =>
    startManually(t.system, environmentId, content);
  const tasksOf = ({ loadId }: ManualLoad) =>
    t.system.db.selectFrom('tasks').select('kind').where('subject_id', '=', loadId).execute();

  // proves: one-commit
  test('the only chunk of a load completes it with its rows, and leaves no task', async () => {
    const environmentId = await newEnvironment(t.system);
    const load = await start(environmentId);
    await load.chunk(0);
    expect(await load.look()).toMatchObject({
      status: 'completed',
      tally: { read: 3, inserted: 2, superseded: 1 },
    });
    expect(await tasksOf(load)).toEqual([]);
    expect(await countLeftovers(t.system, load.jobId)).toBe(0);
  });

  // proves: one-commit
  test.each(['completed', 'cancelled'] as const)(
    'a late worker of the only chunk of a load leaves it %s and unchanged',
    async (status) => {
      const environmentId = await newEnvironment(t.system);
      const load = await start(environmentId);
      const paused = pausedWorker();
      const late = load.chunk(0, paused.context);
      await paused.arrived;
      if (status === 'cancelled') await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
      else {
        await expireLeases(t.system, load.loadId);
        await load.chunk(0);
      }
      const before = { ...(await state(environmentId, load)), load: await load.look() };
      expect(before.load.status).toBe(status);
      paused.open();
      await late;
      expect({ ...(await state(environmentId, load)), load: await load.look() }).toEqual(before);
    },
  );

  // proves: one-commit, load-survives
  test('the only chunk of a load waits for the disk, as a finish does, and a chunk of several does not', async () => {
    const environmentId = await newEnvironment(t.system);
    await query('create table commits (job_id uuid, status text, waits text)');
    await query(`
      create function note_commit() returns trigger language plpgsql as $$
      begin
        insert into commits values (new.job_id, new.status, current_setting('synchronous_commit'));
        return null;
      end $$`);
    await query(
      'create trigger note_commit after update on loads for each row execute function note_commit()',
    );
    const commitsOf = async (chunkBytes: number) => {
      const load = await startManually(t.system, environmentId, three, { chunkBytes });
      await query('truncate commits');
      await runManually(load);
      const { rows } = await t.system.pool.query<{ status: string; waits: string }>(
        'select distinct status, waits from commits where job_id = $1',
        [load.jobId],
      );
      return rows.map(({ status, waits }) => `${status} ${waits}`).sort();
    };
    expect(await commitsOf(1_000)).toEqual(['completed on']);
    expect(await commitsOf(1)).toEqual(expect.arrayContaining(['completed on', 'processing off']));
    await query('drop trigger note_commit on loads');
  });

  // proves: one-commit
  test('the only chunk of a load leaves a failure or a dry run to the finish', async () => {
    const environmentId = await newEnvironment(t.system);
    const refused = await start(environmentId, 'user_id,x\n,1\n');
    await refused.chunk(0);
    expect((await refused.look()).status).toBe('processing');
    expect(await refused.finish()).toMatchObject({
      status: 'failed',
      failure: { code: 'all_records_refused' },
    });
    const counted = await startManually(t.system, environmentId, three, { dryRun: true });
    await counted.chunk(0);
    expect(await tasksOf(counted)).toEqual([{ kind: 'finish' }]);
    expect(await counted.finish()).toMatchObject({ status: 'completed', tally: { read: 3, inserted: 2 } });
    expect(await countLeftovers(t.system, counted.jobId)).toBe(0);
    const some = await startManually(t.system, environmentId, 'user_id,x\n,1\na,2\n', {
      maxErrors: { count: 0 },
    });
    await some.chunk(0);
    expect(await some.look()).toMatchObject({ status: 'failed', failure: { code: 'too_many_rejects' } });
  });
});

test('a finish that lost its worker runs alone, and after too many losses its load fails', async () => {
  const environmentId = await newEnvironment(t.system);
  const load = await startManually(t.system, environmentId, 'user_id\na\nb\n', { chunkBytes: 1 });
  for (let no = 0; no < load.chunkCount; no++) await load.chunk(no);
  const next = { kind: 'finish', environmentId } as const;
  const ours = async () =>
    (await findNextTasks(t.system.db, ['chunk', 'finish'], [], 100)).filter(
      (task) => task.environmentId === environmentId,
    );
  expect(await ours()).toEqual([next]);
  for (let losses = 1; losses <= MAX_CHUNK_LOSSES; losses++) {
    const isSuspect = losses > SUSPECT_LOSSES;
    expect((await claimNextTask(t.system.db, next)) === null).toBe(isSuspect);
    if (isSuspect)
      expect(await claimTaskOf(t.system.db, 'finish', load.loadId, MAX_CHUNK_LOSSES)).not.toBeNull();
    expect(await ours()).toEqual([]);
    await expireLeases(t.system, load.loadId);
    await reconcileJobs(withoutQueue(t.system));
    expect(await ours()).toHaveLength(losses < SUSPECT_LOSSES ? 1 : 0);
    const suspect = losses < SUSPECT_LOSSES || losses === MAX_CHUNK_LOSSES ? null : 'finish';
    expect((await findSuspect(t.system.db, ['chunk', 'finish']))?.kind ?? null).toBe(suspect);
  }
  expect(await load.look()).toMatchObject({ status: 'failed', failure: { code: 'worker_lost' } });
});

test('a chunk that lost its worker is claimed before waiting chunks', async () => {
  const environmentId = await newEnvironment(t.system);
  const { loadId } = await startManually(t.system, environmentId, 'user_id\na\nb\nc\n', { chunkBytes: 1 });
  const next = async () => (await claimNextTask(t.system.db, { kind: 'chunk', environmentId }))?.part;
  expect([await next(), await next()]).toEqual([0, 1]);
  await sql`update tasks set lease_until = now() - interval '1 second' where subject_id = ${loadId} and part = 0`.execute(
    t.system.db,
  );
  await reconcileJobs(withoutQueue(t.system));
  expect([await next(), await next(), await next()]).toEqual([0, 2, undefined]);
});
