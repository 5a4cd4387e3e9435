import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pruneJob } from '../../jobs/kinds.ts';
import { readStatus } from '../../src/jobs/jobs.ts';
import { prune } from '../../src/jobs/prune.ts';
import { recordOf } from '../../src/jobs/status.ts';
import { createWatchPool } from '../../src/postgres/pool.ts';
import { queuePeriodic } from '../../src/tasks/task-kind.ts';
import { acceptFile, runTaskOf, startManually, withoutQueue } from '../support/files/load-file.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { acceptExport } from '../support/servers/exports.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';

describe('the status', () => {
  let t: TestSystem;
  beforeAll(async () => {
    t = await openTestSystem();
  });
  afterAll(() => t.close());

  test('the status reports workers, lanes, rates, exports, deletions and failures of all environments', async () => {
    const { system, environment } = t;
    const watch = createWatchPool(t.databaseUrl, 'test');
    const status = async () => {
      const report = await readStatus(watch, await system.figures());
      const disks = [{ folder: '/data', device: 1, freeBytes: 2 ** 20, allBytes: 2 ** 30 }];
      return recordOf(report, disks);
    };
    expect(await status()).toMatchObject({
      workers: [],
      lanes: [],
      running_exports: [],
      failures: [],
    });

    const first = environment.environmentId;
    const second = (await t.addEnvironment('second')).environment.environmentId;
    // Only the first of two chunks is done.
    const running = await startManually(system, first, 'user_id,name\na,1\nb,2\n', { chunkBytes: 1 });
    await running.chunk(0);
    const waiting = await acceptDeletion(system, first, 'users', ['a']);
    const other = await acceptFile(withoutQueue(system), second, 'user_id\na\n');
    const written = await acceptExport(system, first);
    await acceptExport(system, second);
    await sql`
      update exports
      set status = 'processing', started_at = now() - interval '9 s',
        rows_written = 70, bytes_written = 900
      where export_id = ${written.exportId}`.execute(system.db);
    await sql`update loads set status = 'queued', started_at = null, accepted_at = now() - interval '1 h'
      where job_id = ${other}`.execute(system.db);
    await sql`insert into workers (worker_id, host, pid, seen_at)
      values (gen_random_uuid(), 'alive', 7, now()), (gen_random_uuid(), 'dead', 8, now() - interval '1 min')`.execute(
      system.db,
    );
    await sql`update tasks set last_error = 'no room' where kind = 'chunk' and part = 1`.execute(system.db);
    expect(await status()).toMatchObject({
      retries: [
        { environment: 'default', job_id: running.jobId, type: 'import', last_error: 'chunk 1: no room' },
      ],
      disks: [{ folder: '/data', free_bytes: 2 ** 20, all_bytes: 2 ** 30, is_full: true }],
      workers: [{ host: 'alive', pid: 7 }],
      loads: { queued: 1, processing: 1, oldest_seconds: expect.closeTo(3_600, -2) },
      pending_chunks: 2,
      running_chunks: 0,
      exports: { queued: 1, processing: 1 },
      deletions: { queued: 1, processing: 0 },
      lanes: [
        {
          environment: 'second',
          running: null,
          waiting: 1,
          oldest_waiting_seconds: expect.closeTo(3_600, -2),
        },
        {
          environment: 'default',
          running: {
            ...{ job_id: running.jobId, type: 'import', done: 1, total: 2 },
            rows_per_second: expect.any(Number),
          },
          waiting: 1,
        },
      ],
      running_exports: [{ environment: 'default', job_id: written.jobId, rows: 70, bytes: 900 }],
      failures: [],
    });
    expect(waiting.jobId).not.toBe(running.jobId);

    await sql`update loads set status = 'failed', ended_at = now(), failure_code = 'file_lost', failure_message = 'gone'
      where job_id = ${other}`.execute(system.db);
    expect(await status()).toMatchObject({
      lanes: [{ environment: 'default' }],
      failures: [
        { environment: 'second', job_id: other, type: 'import', code: 'file_lost', message: 'gone' },
      ],
    });

    await watch.end();
  });
});

describe('pruning', () => {
  let t: TestSystem;
  beforeAll(async () => {
    t = await openTestSystem({ settings: { FILE_RETENTION_DAYS: '30', JOB_RETENTION_DAYS: '365' } });
  });
  afterAll(() => t.close());

  test('a pruning removes everything beyond its retention in several rounds, and the daily job does the same', async () => {
    const { system, environment } = t;
    const loads = (count: number, days: number, status = 'failed') =>
      sql`
      insert into loads (job_id, environment_id, type, entity, status, filename, file_size, sha256, file_ref,
        total_rows, chunk_count, ended_at, failure_code)
      select gen_random_uuid(), ${environment.environmentId}, 'import', 'users', ${status}, 'f.ndjson', 1, sha256('x'),
        '2020-01-01/01890000-0000-7000-8000-000000000000', 1, 1, now() - ${days} * interval '1 day', 'x'
      from generate_series(1, ${count})`.execute(system.db);
    // One round of pruning handles fewer than 510 loads, so pruning needs several rounds.
    await loads(510, 31);
    await loads(3, 366);
    await loads(2, 29);
    await sql`
      insert into deletions (job_id, environment_id, entity, status, ids_requested, ended_at, failure_code)
      values (gen_random_uuid(), ${environment.environmentId}, 'users', 'failed', 1, now() - interval '366 days', 'x')`.execute(
      system.db,
    );
    const old = await acceptExport(system, environment.environmentId);
    await sql`update exports set status = 'cancelled', ended_at = now() - interval '8 days'
      where export_id = ${old.exportId}`.execute(system.db);
    const others = { problem: null, events: 0, months: 0 };
    const counts = { files: 513, jobs: 3, exports: 1, records: 0, deletions: 1, ...others };
    expect(await prune(system)).toEqual({ ...counts, capabilityCounts: {}, archived: 0, temporary: 0 });
    const nothing = { files: 0, jobs: 0, exports: 0, records: 0, deletions: 0, ...others };

    await loads(1, 31);
    await queuePeriodic(withoutQueue(system), 'prune');
    await runTaskOf(system, pruneJob, 0);
    expect(await prune(system)).toEqual({ ...nothing, capabilityCounts: {}, archived: 0, temporary: 0 });
    const { rows } = await sql`select count(*) from loads where file_ref is not null`.execute(system.db);
    expect(rows).toEqual([{ count: 2 }]);
  });
});
