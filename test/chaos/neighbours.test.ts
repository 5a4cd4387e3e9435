import pg from 'pg';
import { expect, test } from 'vitest';
import type { TaskClaim } from '../../src/domain/task.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { endEarlierSessions, endLostSessions, endTaskSessions } from '../../src/tasks/worker-store.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';

test.each(['chunk', 'export'] as const)(
  'a lost or cancelled %s does not affect another system on the same server with tasks of the same numbers',
  async (kind) => {
    const [ours, theirs] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    const pool = createPool({ url: ours.url, max: 2, applicationName: 'test' });
    const db = createDatabase(pool);
    const sessionOf = (url: string, taskId: number) => connect(url, `sluice ${kind} ${taskId}:1`);
    const clients = await Promise.all([
      ...[1, 2, 3].map((taskId) => sessionOf(ours.url, taskId)),
      sessionOf(theirs.url, 1),
    ]);
    const [silent, earlier, cancelled, neighbour] = clients as [pg.Client, pg.Client, pg.Client, pg.Client];
    const isThere = (client: pg.Client) =>
      client.query('select 1').then(
        () => true,
        () => false,
      );
    try {
      await endEarlierSessions(db, attemptAt(kind, 2, 2));
      expect(await isThere(earlier)).toBe(false);
      await endTaskSessions(db, { kind, taskId: 3 });
      expect(await isThere(cancelled)).toBe(false);
      await endEarlierSessions(db, attemptAt(kind, 1, 1));
      await endTaskSessions(db, { kind, taskId: 11 });
      expect(await isThere(silent)).toBe(true);
      for (const client of [silent, neighbour]) await client.query('begin');
      // The first attempt of task 1 has an expired lease.
      await pool.query(
        `insert into sluice.tasks (kind, subject_id, environment_id, attempt, lease_until)
         values ($1, 1, 1, 1, now() - interval '1 second')`,
        [kind],
      );
      await endLostSessions(db, [kind]);
      expect(await Promise.all([silent, neighbour].map(isThere))).toEqual([false, true]);
    } finally {
      for (const client of clients) await client.end().catch(() => undefined);
      await pool.end();
      await Promise.all([ours.drop(), theirs.drop()]);
    }
  },
);

const attemptAt = (kind: TaskClaim['kind'], taskId: number, attempt: number): TaskClaim => ({
  ...{ taskId, attempt, kind, subjectId: taskId, part: 0, environmentId: 1 },
  ...{ failures: 0, jobId: null, requestId: null },
});

async function connect(url: string, name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
