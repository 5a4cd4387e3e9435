import pg from 'pg';
import { expect, test } from 'vitest';
import type { TaskClaim } from '../../src/domain/task.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { endEarlierSessions, endLostSessions, endTaskSessions } from '../../src/postgres/stores/workers.ts';
import { createTestDatabase } from '../support/postgres.ts';

test('a worker that went silent costs another system on the same server, with tasks of the same numbers, nothing', async () => {
  const [ours, theirs] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const pool = createPool({ url: ours.url, max: 2, applicationName: 'test' });
  const name = 'sluice chunk 1:1';
  const [silent, neighbour] = await Promise.all([connect(ours.url, name), connect(theirs.url, name)]);
  try {
    await pool.query(silentChunk);
    for (const client of [silent, neighbour]) await client.query('begin');
    await endLostSessions(createDatabase(pool), ['chunk']);
    await expect(silent.query('select 1')).rejects.toThrow();
    await expect(neighbour.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
    const claim = { taskId: 1, kind: 'chunk', subjectId: 1, part: 0, environmentId: 1, attempt: 2 } as const;
    await endEarlierSessions(createDatabase(pool), { ...claim, failures: 0, jobId: null, requestId: null });
    await expect(neighbour.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  } finally {
    await Promise.all([
      silent.end().catch(() => undefined),
      neighbour.end().catch(() => undefined),
      pool.end(),
    ]);
    await ours.drop();
    await theirs.drop();
  }
});

test('an export that is lost or cancelled costs another system on the same server, with exports of the same numbers, nothing', async () => {
  const [ours, theirs] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const pool = createPool({ url: ours.url, max: 2, applicationName: 'test' });
  const neighbour = await connect(theirs.url, 'sluice export 1:1');
  const [silent, earlier, cancelled] = await Promise.all(
    ['sluice export 1:1', 'sluice export 2:1', 'sluice export 3:1'].map((name) => connect(ours.url, name)),
  );
  try {
    const db = createDatabase(pool);
    await endEarlierSessions(db, attemptAt(2, 2));
    await expect(earlier?.query('select 1')).rejects.toThrow();
    await endTaskSessions(db, { kind: 'export', taskId: 3 });
    await expect(cancelled?.query('select 1')).rejects.toThrow();
    await endEarlierSessions(db, attemptAt(1, 1));
    await endTaskSessions(db, { kind: 'export', taskId: 11 });
    await silent?.query('begin');
    await silent?.query('select 1');
    await neighbour.query('begin');
    await endLostSessions(db, ['export']);
    await expect(silent?.query('select 1')).rejects.toThrow();
    await expect(neighbour.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  } finally {
    for (const client of [neighbour, silent, earlier, cancelled]) await client?.end().catch(() => undefined);
    await pool.end();
    await ours.drop();
    await theirs.drop();
  }
});

const attemptAt = (taskId: number, attempt: number): TaskClaim => ({
  taskId,
  attempt,
  kind: 'export',
  subjectId: taskId,
  part: 0,
  environmentId: 1,
  failures: 0,
  jobId: null,
  requestId: null,
});

/** Task 1, whose first attempt has lost its lease. */
const silentChunk = `
  insert into sluice.tasks (kind, subject_id, environment_id, attempt, lease_until)
  values ('chunk', 1, 1, 1, now() - interval '1 second')`;

async function connect(url: string, name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
