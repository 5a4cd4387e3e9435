import { sql } from 'kysely';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { chunkJob } from '../../jobs/load.ts';
import type { System } from '../../src/context.ts';
import { requestDeletion } from '../../src/deletion/deletions.ts';
import { type DueTask, kindsInTurn, queueName } from '../../src/domain/task.ts';
import type { ExportWriter } from '../../src/export/context.ts';
import { requestExport } from '../../src/export/request-export.ts';
import { startLane } from '../../src/load/end.ts';
import { requireLoad } from '../../src/load/read-store.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { lockLane } from '../../src/tasks/lane-store.ts';
import { type OwnTasks, openOwnTasks } from '../../src/tasks/runner.ts';
import { acceptFile, manualLoad, startManually } from '../support/files/load-file.ts';
import { queues } from '../support/servers/site.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';
import { patienceMs, waitFor } from '../support/wait-for.ts';

/**
 * Number of tasks that the greedy environment queues before the other environment queues its task.
 */
const many = 200;
/**
 * Maximum number of tasks of the greedy environment that may run before the task of the other
 * environment. Tasks that already run finish first. Then the environments take turns.
 */
const few = 6;

let t: TestSystem;
let greedy: number;
let other: number;
afterEach(() => t.close());

async function open(queue: 'postgres' | 'redis', settings: Record<string, string> = {}): Promise<void> {
  t = await openTestSystem({ queue, settings });
  greedy = t.environment.environmentId;
  other = (await t.addEnvironment('other')).environment.environmentId;
}

async function countCompleted(
  table: 'exports' | 'deletions' | 'loads',
  environmentId: number,
): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from ${sql.table(table)}
    where environment_id = ${environmentId} and status = 'completed'`.execute(t.system.db);
  return rows[0]?.n ?? 0;
}

const records = (count: number): string =>
  `user_id,name\n${Array.from({ length: count }, (_, at) => `u${at},name ${at}\n`).join('')}`;

const writeNothing: ExportWriter = async () => ({
  files: [],
  snapshotAt: new Date(),
  endedAt: new Date(),
  cursor: '',
  unfinishedLoads: [],
});

describe('a server that merges small loads itself', () => {
  const notified: number[] = [];
  let ownTasks: OwnTasks;

  /**
   * Accepts a small load as a server does. Returns its job id. For each message to the queue,
   * appends the number of its tasks to `notified`.
   */
  async function accept(environmentId: number, content: string): Promise<string> {
    const queue = { notify: async (tasks: readonly DueTask[]) => void notified.push(tasks.length) };
    return acceptFile({ ...t.system, queue, ownTasks }, environmentId, content);
  }

  async function openServer(places: number): Promise<void> {
    await open('postgres');
    notified.length = 0;
    ownTasks = openOwnTasks<System>(t.system, [chunkJob], kindsInTurn(queueName), places);
  }

  const look = (environmentId: number, jobId: string) => requireLoad(t.system, environmentId, jobId);
  const untilNotified = () => waitFor('the queue to be notified', async () => notified.length > 0);
  const untilCompleted = (environmentId: number, jobId: string) =>
    waitFor('the load to be completed', async () => {
      return (await look(environmentId, jobId)).status === 'completed';
    });

  /**
   * Inserts the user `u0` in an open transaction. A load of this user waits until the transaction
   * ends.
   */
  async function openBrake(): Promise<pg.Client> {
    const brake = new pg.Client({ connectionString: t.databaseUrl });
    brake.on('error', () => undefined);
    await brake.connect();
    await brake.query('begin');
    await brake.query("insert into sluice.users (environment_id, user_id) values ($1, 'u0')", [greedy]);
    return brake;
  }

  const untilMergeWaits = () =>
    waitFor('the merge to be under way', async () => {
      const { rows } = await sql`
        select from pg_stat_activity
        where datname = current_database() and application_name like 'sluice chunk %' and wait_event_type = 'Lock'`.execute(
        t.system.db,
      );
      return rows.length > 0;
    });

  // proves: load-survives
  test('a server leaves a small load to the workers while another environment is first, and else merges it', async () => {
    await openServer(2);
    const first = await startManually(t.system, other, records(1));
    const jobId = await accept(greedy, records(1));
    await untilNotified();
    expect(await look(greedy, jobId)).toMatchObject({ status: 'processing', tally: { read: 0 } });
    await first.chunk(0);
    await (await manualLoad(t.system, greedy, jobId)).chunk(0);
    notified.length = 0;
    await untilCompleted(greedy, await accept(greedy, records(2)));
    expect(notified).toEqual([]);
    await ownTasks.stop(0);
  });

  // proves: load-survives
  test('a server merges a bounded number of loads at a time, and a stop spends no attempt', async () => {
    await openServer(1);
    const brake = await openBrake();
    const runningJob = await accept(greedy, records(1));
    await untilMergeWaits();
    const waitingJob = await accept(other, records(1));
    await untilNotified();
    expect((await look(other, waitingJob)).tally.read).toBe(0);
    await ownTasks.stop(0);
    const { rows } = await sql`
      select attempt, failures, losses, lease_until from tasks where environment_id = ${greedy}`.execute(
      t.system.db,
    );
    expect(rows).toEqual([{ attempt: 1, failures: 0, losses: 0, lease_until: null }]);
    await brake.query('rollback');
    await brake.end();
    await (await manualLoad(t.system, greedy, runningJob)).chunk(0);
    expect(await look(greedy, runningJob)).toMatchObject({ status: 'completed', tally: { inserted: 1 } });
    // Once the server has stopped, it no longer runs new loads itself, but notifies the queue of
    // them.
    notified.length = 0;
    await accept(greedy, records(2));
    await untilNotified();
  });

  // proves: load-survives
  test('a load whose server dies right after accepting it is merged once by a worker', async () => {
    await openServer(1);
    const dying: OwnTasks = {
      ...ownTasks,
      reserve: () => {
        const place = ownTasks.reserve();
        return place && { ...place, run: () => place.release() };
      },
    };
    const jobId = await acceptFile({ ...t.system, ownTasks: dying }, greedy, records(3));
    expect(await look(greedy, jobId)).toMatchObject({ status: 'processing', tally: { read: 0 } });
    await sql`update tasks set lease_until = now() - interval '1 second'`.execute(t.system.db);
    t.startWorker();
    await untilCompleted(greedy, jobId);
    expect(await look(greedy, jobId)).toMatchObject({ tally: { read: 3, inserted: 3 } });
  });

  // proves: load-survives
  test('a server that stops while it accepts a small load ends only after that load', async () => {
    await openServer(1);
    const brake = await openBrake();
    let isStopped = false;
    let stop: Promise<void> | undefined;
    const stopping: OwnTasks = {
      ...ownTasks,
      reserve: () => {
        const place = ownTasks.reserve();
        stop = ownTasks.stop(patienceMs).then(() => {
          isStopped = true;
        });
        return place;
      },
    };
    const jobId = await acceptFile({ ...t.system, ownTasks: stopping }, greedy, records(1));
    await untilMergeWaits();
    expect(isStopped).toBe(false);
    await brake.query('rollback');
    await brake.end();
    await stop;
    expect(await look(greedy, jobId)).toMatchObject({ status: 'completed', tally: { inserted: 1 } });
  });

  test('a small load is accepted while another transaction has locked the lane, and starts afterwards', async () => {
    await openServer(1);
    const jobId = await inTransaction(t.system.pool, async ({ db }) => {
      await lockLane(db, greedy);
      const accepted = await accept(greedy, records(1));
      expect(await look(greedy, accepted)).toMatchObject({ status: 'queued' });
      return accepted;
    });
    await untilNotified();
    expect(await look(greedy, jobId)).toMatchObject({ status: 'processing' });
  });
});

describe.each(queues)('with the queue on %s', (queue) => {
  // proves: fair-shares
  test('an export is completed soon, although another environment has 200 queued', async () => {
    await open(queue);
    const { db } = t.system;
    for (let count = 0; count < 3; count++) await requestExport(t.system, greedy, {});
    await sql`
      insert into exports (job_id, environment_id, request, format, compression)
      select gen_random_uuid(), environment_id, request, format, compression
      from (select * from exports order by export_id limit 1) one, generate_series(1, ${many - 3})`.execute(
      db,
    );
    await sql`
      insert into tasks (kind, subject_id, environment_id)
      select 'export', export_id, environment_id from exports order by export_id
      on conflict do nothing`.execute(db);
    await requestExport(t.system, other, {});
    const before = await countCompleted('exports', greedy);
    t.startWorker(writeNothing);
    await waitFor('the export of the other', async () => (await countCompleted('exports', other)) === 1, {
      everyMs: 1,
    });
    expect((await countCompleted('exports', greedy)) - before).toBeLessThan(few);
  });

  // proves: fair-shares
  test('a load is completed soon, although another environment has one of 100 chunks and 200 queued', async () => {
    await open(queue);
    const { db } = t.system;
    const jobId = await acceptFile(t.system, greedy, records(100), { chunkBytes: 1 });
    await sql`
      insert into loads
        (job_id, environment_id, type, entity, filename, file_size, sha256, header, total_rows, chunk_count)
      select gen_random_uuid(), environment_id, type, entity, filename, file_size, sha256, header, 1, 1
      from loads, generate_series(1, ${many})
      where job_id = ${jobId}`.execute(db);
    const theirs = await acceptFile(t.system, other, records(5), { chunkBytes: 1 });
    t.startWorker();
    const load = await waitFor('the load of the other', async () => {
      const { rows } = await sql<{ chunks_done: number }>`
        select (select chunks_done from loads where job_id = ${jobId})
        from loads where job_id = ${theirs} and status = 'completed'`.execute(db);
      return rows[0] ?? null;
    });
    expect(load.chunks_done).toBeLessThan(5 + few);
  });

  // proves: fair-shares
  test('a deletion is completed soon, although another environment has 200 queued', async () => {
    await open(queue);
    const { db } = t.system;
    await sql`
      with queued as (
        insert into deletions (job_id, environment_id, entity, ids_requested)
        select gen_random_uuid(), ${greedy}, 'users', 1 from generate_series(1, ${many})
        returning deletion_id
      )
      insert into deletion_ids (deletion_id, position, id) select deletion_id, 1, 'u' from queued`.execute(
      db,
    );
    await startLane(t.system, greedy);
    await requestDeletion(t.system, other, 'users', { ids: ['u'], purgeExports: false, options: {} });
    t.startWorker();
    await waitFor('the deletion of the other', async () => (await countCompleted('deletions', other)) === 1, {
      everyMs: 1,
    });
    expect(await countCompleted('deletions', greedy)).toBeLessThan(few);
  });
});
