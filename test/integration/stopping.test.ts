import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { finishJob } from '../../jobs/load.ts';
import { Interrupted } from '../../src/base/errors.ts';
import { acceptFile, runTaskOf, startManually } from '../support/files/load-file.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

const file = 'user_id,name\na,Ada\nb,Bob\nc,Cyd\n';
let t: TestSystem;
afterEach(() => t.close());

test('a chunk that does not end while its worker stops is released in time, and spends no attempt', async () => {
  t = await openTestSystem({ settings: { SHUTDOWN_MS: '2000' } });
  const { system, environment } = t;
  // The chunk inserts the same key as this transaction, so it waits until the transaction ends.
  const brake = new pg.Client({ connectionString: t.databaseUrl });
  // If the test fails, the database is dropped while this connection is still open. Without a
  // listener, the error of the connection would end the process.
  brake.on('error', () => undefined);
  await brake.connect();
  await brake.query('begin');
  await brake.query('insert into sluice.users (environment_id, user_id) values ($1, $2)', [
    environment.environmentId,
    'b',
  ]);
  const worker = t.startWorker();
  const jobId = await acceptFile(system, environment.environmentId, file);
  await waitFor('the worker to come to the chunk', async () => {
    // Uses another connection, because an open transaction always sees the same statistics.
    const { rowCount } = await system.pool.query(
      `select from pg_stat_activity where datname = current_database() and application_name like 'sluice chunk %'
         and wait_event_type = 'Lock'`,
    );
    return rowCount === 1;
  });
  const askedAt = performance.now();
  await worker.stop();
  expect(performance.now() - askedAt).toBeLessThan(2_000);
  const tasks = await system.db
    .selectFrom('tasks')
    .select(['kind', 'losses', 'failures', 'last_error', 'lease_until'])
    .execute();
  expect(tasks).toEqual([{ kind: 'chunk', losses: 0, failures: 0, last_error: null, lease_until: null }]);
  await brake.query('rollback');
  await brake.end();
  t.startWorker();
  expect(await t.ended(jobId)).toMatchObject({ status: 'completed', tally: { read: 3, inserted: 3 } });
});

test('a finish without time left is released, and spends no attempt', async () => {
  t = await openTestSystem();
  const { system, environment } = t;
  const load = await startManually(system, environment.environmentId, file, { chunkBytes: 1 });
  for (let no = 0; no < load.chunkCount; no++) await load.chunk(no);
  const deadline = AbortSignal.abort(new Interrupted('no time left'));
  await runTaskOf(system, finishJob, load.loadId, 0, { stopping: deadline, deadline });
  const task = await system.db
    .selectFrom('tasks')
    .select(['kind', 'failures', 'lease_until'])
    .executeTakeFirstOrThrow();
  expect(task).toEqual({ kind: 'finish', failures: 0, lease_until: null });
  expect((await load.look()).status).toBe('processing');
  expect(await load.finish()).toMatchObject({ status: 'completed' });
});
