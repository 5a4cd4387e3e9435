import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { deletionJob } from '../../jobs/kinds.ts';
import { Interrupted } from '../../src/base/errors.ts';
import { uuidv7 } from '../../src/base/uuid.ts';
import type { System } from '../../src/context.ts';
import { requireDeletion } from '../../src/deletion/deletions.ts';
import type { DeletionContext } from '../../src/deletion/seam.ts';
import { insertDeletion } from '../../src/deletion/store.ts';
import { writeExport } from '../../src/export/write/write-export.ts';
import { cancelLoad } from '../../src/load/end.ts';
import { retryLoad } from '../../src/load/retry.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import {
  expireLeases,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  runTaskOf,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { readPlannedRows } from '../support/oracles/plans.ts';
import { acceptDeletion, insertEvents, readStored } from '../support/servers/deletions.ts';
import { acceptExport, gatedWriter, runExportTask } from '../support/servers/exports.ts';
import { closedGate } from '../support/servers/gate.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { reconcileJobs } from '../support/servers/tasks.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();

const lines = (...items: readonly object[]): string =>
  items.map((item) => `${JSON.stringify(item)}\n`).join('');

async function load(environmentId: number, content: string, options = {}) {
  return runManually(await startManually(t.system, environmentId, content, options));
}

const storedUsers = async (environmentId: number) =>
  (await readProfiles(t.system, environmentId)).users as Record<string, { metadata: object }>;

describe('deleted users', () => {
  test('deleted users with any ids lose their profiles and events of every month, and all else stays', async () => {
    const weird = [
      `o'brien"; drop table users; --`,
      '100%_\\x',
      'Ünï\u200d🙂',
      'ü'.repeat(128),
      'a,b{c}',
      ' u ',
    ];
    const others = ['plain', '100', 'U', 'o'];
    const environmentId = await newEnvironment(t.system);
    const neighbour = await newEnvironment(t.system);
    for (const environment of [environmentId, neighbour]) {
      await load(
        environment,
        lines(...[...weird, ...others].map((user_id) => ({ user_id, company_id: 'c' }))),
      );
      const events = [...weird, ...others].flatMap((user, at) =>
        ['2026-07-31', '2026-08-31', '2026-09-01'].map((day) => ({
          id: `${at} ${day}`,
          user,
          company: 'c',
          day,
        })),
      );
      await insertEvents(t.system, environment, events);
    }
    const untouched = await readStored(t.system, neighbour);
    // This user has an event but no profile.
    await insertEvents(t.system, environmentId, [{ id: 'stray', user: 'stray', day: '2026-08-01' }]);

    const deletion = await acceptDeletion(t.system, environmentId, 'users', [...weird, 'nobody', 'stray']);
    const ended = await deletion.run();
    expect(ended).toMatchObject({
      status: 'completed',
      counts: { requested: 8, deleted: 7, not_found: 1, pending: 0 },
      removed: { events: 19 },
    });
    expect(await deletion.outcomes()).toEqual({
      ...Object.fromEntries(weird.map((id) => [id, ['deleted', 3, 0]])),
      nobody: ['not_found', 0, 0],
      stray: ['deleted', 1, 0],
    });
    const remaining = await readStored(t.system, environmentId);
    expect(remaining.users).toEqual(others.map((id) => `${id} of c`).sort());
    expect(remaining.companies).toEqual(['c']);
    expect(remaining.events).toHaveLength(3 * others.length);
    expect(remaining.eventIds).toHaveLength(3 * others.length);
    expect(await readStored(t.system, neighbour)).toEqual(untouched);
  });

  test('users are deleted in slices of their events, and counted once despite a late worker', async () => {
    const environmentId = await newEnvironment(t.system);
    const ids = Array.from({ length: 450 }, (_, at) => `u${at}`);
    await load(environmentId, lines(...ids.slice(0, 400).map((user_id) => ({ user_id }))));
    const events = Array.from({ length: 11_000 }, (_, at) => ({
      id: `e${at}`,
      user: 'u0',
      day: '2026-09-02',
    }));
    await insertEvents(t.system, environmentId, events);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ids);
    const paused = pausedAt(4);
    const late = deletion.run(paused.context);
    await paused.arrived;
    // Two transactions have removed half the events of the first user. The user is still pending.
    expect(await deletion.look()).toMatchObject({ counts: { deleted: 0 }, removed: { events: 10_000 } });
    expect((await deletion.outcomes())['u0']).toEqual(['pending', 10_000, 0]);
    await expireLeases(t.system);
    await reconcileJobs(withoutQueue(t.system));
    const ended = await deletion.run();
    const expected = {
      status: 'completed',
      attempts: 2,
      counts: { requested: 450, deleted: 400, not_found: 50, pending: 0 },
      removed: { events: 11_000 },
    };
    expect(ended).toMatchObject(expected);
    // When the late worker continues, the user has been created again and must not be deleted.
    await load(environmentId, lines({ user_id: 'u0' }));
    paused.open();
    await late;
    expect(await deletion.look()).toEqual(ended);
    expect((await deletion.outcomes())['u0']).toEqual(['deleted', 11_000, 0]);
    expect((await readStored(t.system, environmentId)).users).toEqual(['u0']);
  });

  test('a deletion is released by a worker that stops, and completed by the next', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'a' }));
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['a']);
    const stopping = new AbortController();
    const paused = pausedAt(2);
    const stopped = deletion.run(paused.context, stopping.signal);
    await paused.arrived;
    stopping.abort(new Interrupted('the worker stops'));
    paused.open();
    // The worker stops after its current step. This does not count as a failed attempt, and another
    // worker may claim the deletion immediately.
    expect(await stopped).toMatchObject({ status: 'processing', counts: { deleted: 1 } });
    const [row] = await t.system.db
      .selectFrom('tasks')
      .select(['lease_until', 'losses', 'failures'])
      .where('job_id', '=', deletion.jobId)
      .execute();
    expect(row).toEqual({ lease_until: null, losses: 0, failures: 0 });
    expect(await deletion.run()).toMatchObject({ status: 'completed', attempts: 2 });
  });
});

/** Returns a context whose nth transaction waits at a gate, as in a paused worker. */
function pausedAt(nth: number) {
  const gate = closedGate();
  let connections = 0;
  const pool = {
    connect: async () => {
      connections++;
      if (connections === nth) await gate.pass();
      return t.system.pool.connect();
    },
  } as unknown as pg.Pool;
  const context: DeletionContext = { ...withoutQueue(t.system), pool };
  return { ...gate, context };
}

describe('the lane', () => {
  // proves: deletion-order
  test('a deletion waits for the load before it, and the load after it waits for the deletion', async () => {
    const environmentId = await newEnvironment(t.system);
    const record = (x: number) => lines({ user_id: 'k', x }, { user_id: 'v', x });
    const before = await startManually(t.system, environmentId, record(1), { chunkBytes: 1 });
    await before.chunk(0);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['k']);
    const after = await startManually(t.system, environmentId, lines({ user_id: 'k', y: 2 }));
    expect((await after.look()).queuePosition).toBe(2);
    expect(await deletion.run()).toMatchObject({ status: 'queued', queuePosition: 1 });
    expect(Object.keys(await storedUsers(environmentId))).toEqual(['k']);

    await before.chunk(1);
    expect((await before.finish()).status).toBe('completed');
    // The end of the first load starts the deletion. The second load waits behind the deletion.
    expect(await deletion.look()).toMatchObject({ status: 'processing', queuePosition: 0 });
    expect((await after.look()).status).toBe('queued');
    await after.chunk(0);
    expect(await storedUsers(environmentId)).toMatchObject({ k: { metadata: { x: 1 } } });

    expect((await deletion.run()).status).toBe('completed');
    expect(Object.keys(await storedUsers(environmentId))).toEqual(['v']);
    // When the deletion ends, the next load starts and creates the user again.
    expect((await after.look()).status).toBe('processing');
    await after.chunk(0);
    expect((await after.finish()).status).toBe('completed');
    expect(await storedUsers(environmentId)).toMatchObject({ k: { metadata: { y: 2 } } });
    expect((await storedUsers(environmentId))['k']?.metadata).toEqual({ y: 2 });
  });

  // proves: deletion-order
  test('a load that was accepted before a deletion is not retried after it', async () => {
    const environmentId = await newEnvironment(t.system);
    const stopped = await startManually(t.system, environmentId, lines({ user_id: 'k' }));
    await cancelLoad(withoutQueue(t.system), environmentId, stopped.jobId);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['k']);
    const retry = () => retryLoad(withoutQueue(t.system), environmentId, stopped.jobId);
    const refusal = { problems: [{ code: 'job_expired' }] };
    await expect(retry()).rejects.toMatchObject(refusal);
    expect((await deletion.run()).removed.files).toBe(1);
    await expect(retry()).rejects.toMatchObject(refusal);
    expect((await stopped.look()).status).toBe('cancelled');
    // Retries a load that was accepted after the deletion.
    const later = await startManually(t.system, environmentId, lines({ user_id: 'k' }));
    await cancelLoad(withoutQueue(t.system), environmentId, later.jobId);
    await retryLoad(withoutQueue(t.system), environmentId, later.jobId);
    expect((await later.look()).status).toBe('processing');
  });

  test('a deletion in a stalled lane is started by the reconciler of loads', async () => {
    const environmentId = await newEnvironment(t.system);
    const jobId = uuidv7();
    // Creates the state left by a process that dies after one job has ended and before the next has
    // started.
    const request = {
      jobId,
      requestId: null,
      origin: null,
      environmentId,
      entity: 'users',
      ids: ['k'],
      purgeExports: false,
      options: {},
    } as const;
    await inTransaction(t.system.pool, ({ db }) => insertDeletion(db, request));
    const notified: string[] = [];
    const context: System = {
      ...withoutQueue(t.system),
      queue: { notify: async (tasks) => void notified.push(...tasks.map(({ kind }) => kind)) },
    };
    await reconcileJobs(context);
    const { deletionId, status } = await requireDeletion(t.system, environmentId, jobId);
    expect(status).toBe('processing');
    expect(notified).toEqual(['deletion']);
    await runTaskOf(context, deletionJob, deletionId);
  });
});

describe('stored data of loads', () => {
  const refused = ['u1,too,many', '"a,b",x,y', '"u ""2""",1,2', 'u11,other,user', 'x,u1 is only mentioned,y'];

  test('a deletion removes rejects with a deleted id and the files of loads, and keeps other rejects', async () => {
    const environmentId = await newEnvironment(t.system);
    const neighbour = await newEnvironment(t.system);
    const csv = `user_id,name\nfine,Fine\n${refused.join('\n')}\n`;
    const ndjson = `{"user_id":"u\\u0031","metadata":7}\n{"user_id":12,"metadata":7}\n{"user_id":"u12","metadata":7}\n`;
    const jobs: Record<string, string> = {};
    for (const environment of [environmentId, neighbour]) {
      jobs[`${environment} csv`] = (await load(environment, csv)).jobId;
      jobs[`${environment} ndjson`] = (await load(environment, ndjson)).jobId;
    }
    const filesOf = async (environment: number) =>
      (
        await t.system.db
          .selectFrom('loads')
          .select('file_ref')
          .where('environment_id', '=', environment)
          .where('file_ref', 'is not', null)
          .execute()
      ).length;
    const raws = async (environment: number, kind: string) =>
      (await readRejects(t.system, jobs[`${environment} ${kind}`] ?? '')).map(({ raw }) =>
        Buffer.from(raw).toString(),
      );
    const stored = (await t.storedFiles()).length;
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1', 'a,b', 'u "2"', '12']);
    const ended = await deletion.run();
    expect(ended).toMatchObject({ counts: { not_found: 4 }, removed: { rejects: 5, files: 2 } });
    expect(await raws(environmentId, 'csv')).toEqual([refused[3], refused[4]]);
    expect(await raws(environmentId, 'ndjson')).toEqual(['{"user_id":"u12","metadata":7}']);
    expect(await filesOf(environmentId)).toBe(0);
    expect((await t.storedFiles()).length).toBe(stored - 2);
    expect(await raws(neighbour, 'csv')).toEqual(refused);
    expect(await raws(neighbour, 'ndjson')).toHaveLength(3);
    expect(await filesOf(neighbour)).toBe(2);
  });

  // proves: erased-images
  test('a deletion removes the rows of its users from plans', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, 'user_id,plan\nu1,free\n');
    const { jobId } = await load(environmentId, 'user_id,plan\nu1,pro\n', { plan: true });
    const neighbour = await load(await newEnvironment(t.system), 'user_id,plan\nu1,pro\n', { plan: true });
    expect(await readPlannedRows(t.system, jobId)).toHaveLength(1);
    await (await acceptDeletion(t.system, environmentId, 'users', ['u1'])).run();
    expect(await readPlannedRows(t.system, jobId)).toEqual([]);
    expect(await readPlannedRows(t.system, neighbour.jobId)).toHaveLength(1);
  });
});

describe('deleted companies', () => {
  test('deleted companies are removed from their users and events, which stay', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(
      environmentId,
      lines(
        { user_id: 'a', company: { company_id: 'acme', size: 3 } },
        { user_id: 'b', company_id: 'acme' },
        { user_id: 'c', company_id: 'other' },
      ),
    );
    await insertEvents(t.system, environmentId, [
      { id: 'e1', user: 'a', company: 'acme', day: '2026-07-01' },
      { id: 'e2', user: 'a', company: 'acme', day: '2026-09-01' },
      { id: 'e3', user: 'c', company: 'other', day: '2026-09-01' },
      { id: 'e4', user: 'c', company: 'ghost', day: '2026-09-01' },
    ]);
    const deletion = await acceptDeletion(t.system, environmentId, 'companies', ['acme', 'ghost', 'none']);
    expect(await deletion.run()).toMatchObject({ status: 'completed', removed: { events: 3 } });
    expect(await deletion.outcomes()).toEqual({
      acme: ['deleted', 2, 2],
      ghost: ['deleted', 1, 0],
      none: ['not_found', 0, 0],
    });
    expect(await readStored(t.system, environmentId)).toEqual({
      users: ['a', 'b', 'c of other'],
      companies: ['other'],
      events: ['e1 by a', 'e2 by a', 'e3 by c of other', 'e4 by c'],
      eventIds: ['e1', 'e2', 'e3', 'e4'],
    });
  });

  test('a deleted company is removed from a user that was written at the same time', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'a', company_id: 'acme' }));
    const deletion = await acceptDeletion(t.system, environmentId, 'companies', ['acme']);
    let ending: Promise<unknown> = Promise.resolve();
    // The writer has found the company, so it creates only the user. The writer commits after the
    // deletion has removed the company.
    await inTransaction(t.system.pool, async ({ client }) => {
      await client.query('insert into users (environment_id, user_id, company_id) values ($1, $2, $3)', [
        environmentId,
        'late',
        'acme',
      ]);
      ending = deletion.run();
      await waitFor('the company to be gone', async () => (await deletion.look()).counts.deleted === 1);
    });
    await ending;
    const { users, companies } = await readStored(t.system, environmentId);
    expect({ users, companies }).toEqual({ users: ['a', 'late'], companies: [] });
  });
});

describe('files of exports', () => {
  test('files of exports survive a deletion unless it also removes them, and then a running export starts again', async () => {
    const environmentId = await newEnvironment(t.system);
    await load(environmentId, lines({ user_id: 'a' }, { user_id: 'b' }));
    const stop = new AbortController().signal;
    const finished = await acceptExport(t.system, environmentId);
    await runExportTask(t.system, finished.exportId, writeExport, stop);
    const plain = await acceptDeletion(t.system, environmentId, 'users', ['a']);
    expect((await plain.run()).removed.exports).toBe(0);
    expect((await finished.look()).filesExpired).toBe(false);

    const running = await acceptExport(t.system, environmentId);
    const gate = gatedWriter(writeExport, { deaf: true });
    const late = runExportTask(t.system, running.exportId, gate.write, stop);
    await gate.arrived;
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['b'], { purgeExports: true });
    expect((await deletion.run()).removed.exports).toBe(1);
    expect(await finished.look()).toMatchObject({ filesExpired: true, files: [] });
    gate.open();
    await late;
    expect((await running.look()).status).toBe('processing');
    await runExportTask(t.system, running.exportId, writeExport, stop);
    const again = await running.look();
    expect(again).toMatchObject({ status: 'completed', attempts: 2 });
    expect(again.files.find(({ filename }) => filename.startsWith('users'))?.rows ?? 0).toBe(0);
    const folders = (await t.storedFiles()).filter((name) => name.includes(finished.jobId));
    expect(folders).toEqual([]);
  });
});
