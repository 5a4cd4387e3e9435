import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MAX_EXPORT_FAILURES, MAX_EXPORT_LOSSES, pruneJob } from '../../jobs/kinds.ts';
import { Fault, Interrupted, TransientError } from '../../src/base/errors.ts';
import { ABANDONED_FILE_MS } from '../../src/base/limits.ts';
import type { ExportWriter } from '../../src/export/context.ts';
import { requireExport } from '../../src/export/inspect-exports.ts';
import { cancelExport } from '../../src/export/run-export.ts';
import { writeExport } from '../../src/export/write/write-export.ts';
import type { FileRef } from '../../src/files/file-store.ts';
import { pruneExports } from '../../src/jobs/prune.ts';
import { inSnapshot } from '../../src/postgres/session.ts';
import { claimNextTask } from '../../src/tasks/store.ts';
import { queuePeriodic } from '../../src/tasks/task-kind.ts';
import { taskSessionName } from '../../src/tasks/worker-store.ts';
import {
  acceptFile,
  expireLeases,
  runManually,
  runTaskOf,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { acceptExport, gatedWriter, type ManualExport, runExportTask } from '../support/servers/exports.ts';
import { closedGate } from '../support/servers/gate.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { reconcileJobs } from '../support/servers/tasks.ts';
import { waitFor } from '../support/wait-for.ts';

const never = new AbortController().signal;

const t = await systemOfFile();
let environmentId: number;
beforeAll(async () => {
  environmentId = t.environment.environmentId;
  const rows = Array.from({ length: 500 }, (_, n) => `u${n},name ${n}\n`).join('');
  const jobId = await acceptFile(t.system, environmentId, `user_id,name\n${rows}`);
  const worker = t.startWorker();
  await t.ended(jobId);
  await worker.stop();
  await sql`update loads set file_ref = null`.execute(t.system.db);
});
beforeEach(async () => {
  await sql`delete from exports`.execute(t.system.db);
  await sql`delete from tasks`.execute(t.system.db);
});

const accept = (body = {}): Promise<ManualExport> => acceptExport(t.system, environmentId, body);

function run(work: ManualExport, write: ExportWriter = writeExport, stopping = never): Promise<void> {
  return runExportTask(t.system, work.exportId, write, stopping);
}

/** Starts an export that pauses half-way. If `deaf` is true, the export ignores the stop signal. */
async function pauseExport(deaf: boolean, stopping = never) {
  const work = await accept();
  const gate = gatedWriter(writeExport, { deaf });
  const running = run(work, gate.write, stopping);
  running.catch(() => undefined);
  const signal = await gate.arrived;
  return { work, running, signal, open: gate.open };
}

const reconcile = () => reconcileJobs(withoutQueue(t.system));

/** Claims the next export. Returns `null` if no export is due. */
const claimNext = () => claimNextTask(t.system.db, { kind: 'export', environmentId });

async function filesOf({ jobId }: ManualExport): Promise<string[]> {
  return (await t.storedFiles()).filter((file) => file.includes(`exports/${jobId}/`));
}

async function longAgo(days = 0): Promise<void> {
  await sql`update exports set ended_at = ended_at - interval '1 minute' - ${days} * interval '1 day'`.execute(
    t.system.db,
  );
}

async function sessions(condition = 'true'): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select application_name as name from pg_stat_activity
    where datname = current_database() and application_name like 'sluice export %'
      and ${sql.raw(condition)}`.execute(t.system.db);
  return rows.map(({ name }) => name);
}

/** Starts a worker that opens a snapshot and then pauses, without renewing its lease. */
async function pauseInSnapshot(work: ManualExport) {
  const claim = await claimNext();
  if (claim === null) throw new Error('the export was not claimed');
  const name = taskSessionName(claim);
  const gate = closedGate();
  const reading = inSnapshot(t.system, { name, signal: never }, () => gate.pass()).catch(() => undefined);
  await waitFor('its session', async () => (await sessions()).includes(name));
  return {
    work,
    name,
    sessionEnded: () => waitFor('its session to end', async () => !(await sessions()).includes(name)),
    wake: () => {
      gate.open();
      return reading;
    },
  };
}

async function addSegment(key: string, definition: object): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into segments
      (environment_id, key, title, usage, category, is_hidden, is_protected, status, definition)
    values (${environmentId}, ${key}, '', '', '', false, false, '', ${JSON.stringify(definition)})
    returning segment_id as id`.execute(t.system.db);
  return rows[0]?.id ?? 0;
}

const failing =
  (error: Error): ExportWriter =>
  async ({ files }) => {
    const writer = await files.create();
    await writer.write(Buffer.from('some'));
    throw error;
  };

describe('an export', () => {
  test('an export is queued, then completed with its files, once for any number of runs', async () => {
    const work = await accept();
    expect(await work.look()).toMatchObject({ status: 'queued', progress: 0, attempts: 0, files: [] });
    await run(work);
    const job = await work.look();
    expect(job).toMatchObject({ status: 'completed', progress: 1, attempts: 1, rowsWritten: 500 });
    expect(job.snapshotAt).not.toBeNull();
    await run(work);
    expect(await work.look()).toEqual(job);
    expect(await filesOf(work)).toHaveLength(job.files.length);
  });

  test('a running export shows its progress', async () => {
    const work = await accept();
    const gate = gatedWriter(writeExport, { deaf: false });
    const write: ExportWriter = async (context, options) => {
      await options.onSnapshot({ rowsExpected: 1_000, backendPid: 1 });
      options.onProgress(250, 2_500);
      return gate.write(context, options);
    };
    const running = run(work, write);
    await gate.arrived;
    await waitFor('progress', async () => (await work.look()).progress === 0.25);
    expect(await work.look()).toMatchObject({ status: 'processing', rowsWritten: 250, bytesWritten: 2_500 });
    gate.open();
    await running;
    expect((await work.look()).status).toBe('completed');
  });
});

describe('a worker that is lost', () => {
  // proves: export-survives
  test('the export of a lost worker is taken over, and its unfinished files are removed', async () => {
    const { work } = await pauseExport(true);
    expect(await filesOf(work)).toHaveLength(2);
    await expireLeases(t.system);
    await reconcile();
    await run(work);
    const job = await work.look();
    expect(job).toMatchObject({ status: 'completed', attempts: 2 });
    expect(await filesOf(work)).toHaveLength(job.files.length);
  });

  test('a late worker changes nothing of its export, and removes its own files', async () => {
    const { work, running: late, open } = await pauseExport(true);
    await expireLeases(t.system);
    await reconcile();
    await run(work);
    const job = await work.look();
    open();
    await late;
    expect(await work.look()).toEqual(job);
    expect(await filesOf(work)).toHaveLength(job.files.length);
  });

  test('an export that loses worker after worker fails, and its files are then removed', async () => {
    const work = await accept({ emails: 'ada@example.com' });
    for (let loss = 0; loss < MAX_EXPORT_LOSSES; loss++) {
      const gate = gatedWriter(writeExport, { deaf: true });
      void run(work, gate.write).catch(() => undefined);
      await gate.arrived;
      await expireLeases(t.system);
      await reconcile();
    }
    expect(await work.look()).toMatchObject({ status: 'failed', failure: { code: 'worker_lost' } });
    await longAgo();
    await reconcile();
    expect(await filesOf(work)).toEqual([]);
    expect((await work.look()).filesExpired).toBe(true);
  });
});

test('an export that exceeds its time fails with the reason, and leaves no file', async () => {
  const work = await accept();
  const gate = gatedWriter(writeExport, { deaf: false });
  await runExportTask({ ...t.system, exportTimeoutMs: 60_000 / 200 }, work.exportId, gate.write);
  expect(await work.look()).toMatchObject({ status: 'failed', failure: { code: 'export_timeout' } });
  expect(await filesOf(work)).toEqual([]);
});

describe('a cancelled export', () => {
  test('a cancelled export stops its worker, and leaves no file', async () => {
    const { work, running, signal } = await pauseExport(false);
    await cancelExport(t.system, environmentId, work.jobId);
    await running;
    expect(signal.aborted).toBe(true);
    expect((await work.look()).status).toBe('cancelled');
    expect(await filesOf(work)).toEqual([]);
  });

  test('an export that is cancelled while its last bytes are written is not completed', async () => {
    const { work, running, open } = await pauseExport(true);
    await cancelExport(t.system, environmentId, work.jobId);
    open();
    await running;
    expect(await work.look()).toMatchObject({ status: 'cancelled', files: [] });
    expect(await filesOf(work)).toEqual([]);
  });

  test('a cancelled export of a dead worker leaves no file, a lease later', async () => {
    const { work } = await pauseExport(true);
    await cancelExport(t.system, environmentId, work.jobId);
    await reconcile();
    expect(await filesOf(work)).toHaveLength(2);
    await longAgo();
    await reconcile();
    expect(await filesOf(work)).toEqual([]);
  });
});

describe('a worker that is paused', () => {
  test('a worker that is paused in its snapshot loses its session with its lease, and no other worker does', async () => {
    const lost = await pauseInSnapshot(await accept());
    const other = await pauseInSnapshot(await accept());
    await expireLeases(t.system, lost.work.exportId);
    await reconcile();
    await lost.sessionEnded();
    expect(await sessions()).toEqual([other.name]);
    await other.wake();
    await lost.wake();
  });

  test('a paused worker loses its session when its export is cancelled', async () => {
    const paused = await pauseInSnapshot(await accept());
    await cancelExport(t.system, environmentId, paused.work.jobId);
    await paused.sessionEnded();
    await paused.wake();
  });

  test('a paused worker loses its session when another worker starts its export again, which keeps its own', async () => {
    const paused = await pauseInSnapshot(await accept());
    await sql`update tasks set lease_until = null`.execute(t.system.db);
    await run(paused.work);
    await paused.sessionEnded();
    await paused.wake();
    expect(await paused.work.look()).toMatchObject({ status: 'completed', attempts: 2 });
  });
});

describe('a worker that is asked to stop', () => {
  test('a worker that stops releases its export without a spent attempt', async () => {
    const stopping = new AbortController();
    const { work, running } = await pauseExport(false, stopping.signal);
    stopping.abort(new Interrupted('the worker stops'));
    await running;
    expect(await filesOf(work)).toEqual([]);
    const row = await t.system.db
      .selectFrom('tasks')
      .select(['kind', 'lease_until', 'failures', 'losses'])
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ kind: 'export', lease_until: null, failures: 0, losses: 0 });
    expect((await work.look()).status).toBe('processing');
    await run(work);
    expect((await work.look()).status).toBe('completed');
  });
});

describe('an error of an export', () => {
  test.each([new TransientError('disk full while writing a file'), new Error('something else')])(
    'an export with the error %s is retried a few times, and then fails',
    async (error) => {
      const work = await accept();
      for (let attempt = 1; attempt < MAX_EXPORT_FAILURES; attempt++) {
        await run(work, failing(error));
        expect(await work.look()).toMatchObject({ status: 'processing', lastError: error.message });
      }
      await run(work, failing(error));
      expect(await work.look()).toMatchObject({
        status: 'failed',
        failure: { code: 'export_failed', message: error.message },
        lastError: null,
      });
      expect(await filesOf(work)).toEqual([]);
    },
  );

  test('an export with an internal fault fails at once', async () => {
    const work = await accept();
    await run(work, failing(new Fault('an invariant broke')));
    expect(await work.look()).toMatchObject({ status: 'failed', failure: { code: 'export_failed' } });
  });

  test('an export of a segment has PostgreSQL analyze the tables that grew', async () => {
    await sql`
      insert into users (environment_id, user_id, metadata)
      select ${environmentId}, 'grown' || n, '{}' from generate_series(1, 5000) as n`.execute(t.system.db);
    const segment_id = await addSegment('grown', { property: 'user_id', starts_with: 'grown' });
    const changed = async (): Promise<number> => {
      const counted = await sql<{ rows: number }>`
        select n_mod_since_analyze::int as rows from pg_stat_user_tables
        where schemaname = 'sluice' and relname = 'users'`.execute(t.system.db);
      return counted.rows[0]?.rows ?? 0;
    };
    // PostgreSQL updates its count of changed rows with a short delay.
    await waitFor('the count of what changed', async () => (await changed()) >= 5000);
    const plain = await accept({ event_type: ['users'] });
    await run(plain);
    expect(await changed()).toBeGreaterThanOrEqual(5000);
    const work = await accept({ event_type: ['users'], segment_id });
    await run(work);
    expect(await work.look()).toMatchObject({ status: 'completed', rowsWritten: 5000 });
    await waitFor('the look at the table', async () => (await changed()) < 5000);
    await sql`delete from segments`.execute(t.system.db);
    await sql`delete from users where user_id like 'grown%'`.execute(t.system.db);
  });

  test('an export whose segment was removed fails at once with the reason', async () => {
    const segment_id = await addSegment('gone', { property: 'a', exists: true });
    const work = await accept({ segment_id });
    await sql`delete from segments`.execute(t.system.db);
    await run(work);
    expect(await work.look()).toMatchObject({ status: 'failed', failure: { code: 'unknown_segment' } });
  });
});

describe('files that a killed process had begun', () => {
  test('files of a killed process are removed when a worker starts, and once a day, unless they are recent', async () => {
    const folder = join(t.config.filesDir, 'tmp');
    const leave = async (name: string, agoMs: number) => {
      const at = new Date(Date.now() - agoMs);
      await writeFile(join(folder, name), 'some of an upload');
      await utimes(join(folder, name), at, at);
    };
    await leave('recent', ABANDONED_FILE_MS - 60_000);
    await leave('abandoned', ABANDONED_FILE_MS + 1_000);
    const worker = t.startWorker();
    try {
      await waitFor('it to be gone', async () => !(await readdir(folder)).includes('abandoned'));
    } finally {
      await worker.stop();
    }
    await leave('abandoned', ABANDONED_FILE_MS + 1_000);
    await queuePeriodic(withoutQueue(t.system), 'prune');
    await runTaskOf(t.system, pruneJob, 0);
    expect(await readdir(folder)).toEqual(['recent']);
  });
});

describe('pruning', () => {
  const prune = () => pruneExports(t.system, { exportDays: 7, jobDays: 365 });

  test('pruning removes the files of an export first, its record later, and nothing early', async () => {
    const work = await accept();
    await run(work);
    await longAgo(6);
    expect(await prune()).toEqual({ exports: 0, records: 0 });
    await longAgo(1);
    expect(await prune()).toEqual({ exports: 1, records: 0 });
    expect(await filesOf(work)).toEqual([]);
    expect(await work.look()).toMatchObject({ status: 'completed', filesExpired: true, files: [] });
    await longAgo(365);
    expect(await prune()).toEqual({ exports: 0, records: 1 });
    await expect(work.look()).rejects.toThrow('no such job');
  });
});

describe('an export during a load', () => {
  const dropLoads = () => sql`delete from loads where status <> 'completed'`.execute(t.system.db);

  test('an export during a load names the load in its warnings and its manifest, but not a dry run', async () => {
    const load = await startManually(t.system, environmentId, 'user_id,name\nlate,1\n');
    const work = await accept({ event_type: 'users', compression: 'none' });
    await sql`update loads set pass = 'dry_run' where job_id = ${await acceptFile(
      withoutQueue(t.system),
      environmentId,
      'user_id,name\nlater,2\n',
    )}`.execute(t.system.db);
    await run(work);
    const { warnings, files } = await requireExport(t.system, environmentId, work.jobId);
    expect(warnings).toEqual([
      { message: expect.stringMatching(/^1 load had been accepted/), details: `job_ids: ${load.jobId}` },
    ]);
    const { ref, bytes } = files.find(({ filename }) => filename === 'manifest.json') ?? {
      ref: '',
      bytes: 0,
    };
    const manifest = await t.system.files.readRange(ref as FileRef, 0, bytes);
    expect(JSON.parse(manifest.toString())).toMatchObject({ unfinished_loads: [load.jobId] });
    await dropLoads();
  });

  test('an export with wait_for_loads waits for the loads before it, and then has all of their rows', async () => {
    const load = await startManually(t.system, environmentId, 'user_id,name\nlate,1\n');
    const work = await accept({ event_type: 'users', wait_for_loads: true });
    await run(work);
    const waiting = await requireExport(t.system, environmentId, work.jobId);
    expect(waiting).toMatchObject({
      status: 'queued',
      lastError: 'Waits for 1 load that was accepted before it',
    });
    await runManually(load);
    // This load is accepted after the export, so the export does not wait for it.
    const later = await startManually(t.system, environmentId, 'user_id,name\nlater,2\n');
    await run(work);
    const job = await requireExport(t.system, environmentId, work.jobId);
    expect(job).toMatchObject({ status: 'completed', rowsWritten: 501 });
    expect(job.warnings).toMatchObject([{ details: `job_ids: ${later.jobId}` }]);
    await dropLoads();
  });
});
