import pg from 'pg';
import { expect, test } from 'vitest';
import { createDatabase } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { endEarlierSessions, endLostSessions } from '../../src/postgres/stores/workers.ts';
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
