import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { expect, test } from 'vitest';
import { createDatabase } from '../../src/postgres/database.ts';
import {
  endEarlierAttempts,
  endEarlierExportSessions,
  endExportSessions,
  endSilentExportSessions,
  endSilentSessions,
} from '../../src/postgres/ledger/sessions.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { createTestDatabase } from '../support/postgres.ts';

test('a worker that went silent costs another system on the same server, with loads of the same numbers, nothing', async () => {
  const [ours, theirs] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const pool = createPool({ url: ours.url, max: 2, applicationName: 'test' });
  const name = 'sluice chunk 1:0:1';
  const [silent, neighbour] = await Promise.all([connect(ours.url, name), connect(theirs.url, name)]);
  try {
    await pool.query(silentChunk);
    await endSilentSessions(createDatabase(pool));
    await expect(silent.query('select 1')).rejects.toThrow();
    await expect(neighbour.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
    const claim = { loadId: 1, chunkNo: 0, attempt: 2, byteStart: 0, byteEnd: 1, firstRow: 1, firstLine: 1 };
    const job = { jobId: uuidv7(), requestId: null };
    await endEarlierAttempts(createDatabase(pool), { ...claim, ...job, rowCount: 1, oversized: false });
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
    await endEarlierExportSessions(db, { exportId: 2, attempt: 2 });
    await expect(earlier?.query('select 1')).rejects.toThrow();
    await endExportSessions(db, 3);
    await expect(cancelled?.query('select 1')).rejects.toThrow();
    await endEarlierExportSessions(db, { exportId: 1, attempt: 1 });
    await endExportSessions(db, 11);
    await silent?.query('begin');
    await silent?.query('select 1');
    await neighbour.query('begin');
    await endSilentExportSessions(db);
    await expect(silent?.query('select 1')).rejects.toThrow();
    await expect(neighbour.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
  } finally {
    for (const client of [neighbour, silent, earlier, cancelled]) await client?.end().catch(() => undefined);
    await pool.end();
    await ours.drop();
    await theirs.drop();
  }
});

/** Load 1 with one chunk, whose first attempt has lost its lease. */
const silentChunk = `
  with environment as (
    insert into sluice.environments (name, app_token) values ('test', 'NX-00000000') returning environment_id
  ),
  load as (
    insert into sluice.loads
      (job_id, environment_id, type, entity, status, filename, file_size, sha256, file_format, total_rows, chunk_count)
    select gen_random_uuid(), environment_id, 'import', 'users', 'processing', 'f', 1, sha256(''), 'ndjson', 1, 1
    from environment
    returning load_id
  )
  insert into sluice.load_chunks
    (load_id, chunk_no, byte_start, byte_end, first_row, first_line, row_count, oversized, state, attempt, lease_until)
  select load_id, 0, 0, 1, 1, 1, 1, false, 'running', 1, now() - interval '1 second'
  from load`;

async function connect(url: string, name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
