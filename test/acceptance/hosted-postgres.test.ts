import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { SMALL_LOAD_BYTES } from '../../src/load/limits.ts';
import { prepareDatabase } from '../../src/queue/provide-database.ts';
import { type PoolMode, startPgBouncer } from '../support/servers/pgbouncer.ts';
import { createEmptyDatabase } from '../support/servers/postgres.ts';
import { startSystemPostgres, systemPostgres } from '../support/servers/system-postgres.ts';
import { isInstalled } from '../support/servers/system-tools.ts';
import { runCli, startService, temporaryFolder } from './cli.ts';
import { call, type Job, jobEnded, upload, usersCsv } from './service.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function openPooler(mode: PoolMode): Promise<string> {
  const database = await createEmptyDatabase();
  cleanups.push(() => database.drop());
  const pooler = await startPgBouncer(database.url, mode);
  cleanups.push(() => pooler.stop());
  return pooler.url;
}

/**
 * Loads a file of many chunks, then a file that changes every row. Sends a record, undoes the
 * second load, and checks the status.
 */
async function expectAllWorks(databaseUrl: string): Promise<void> {
  const env = { DATABASE_URL: databaseUrl, CHUNK_BYTES: '64k' };
  const dataDir = await temporaryFolder();
  const service = await startService(dataDir, env);
  const send = async (path: string, body: object): Promise<Job> => {
    const headers = { 'content-type': 'application/json' };
    const sent = await call(service.url, service.key, path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers,
    });
    expect(sent.status).toBe(202);
    return JSON.parse((await sent.text()) || 'null');
  };
  const ended = ({ job_id }: Job) => jobEnded(service.url, service.key, job_id);
  const rows = 4_000;
  const file = usersCsv(rows);
  expect(Buffer.byteLength(file)).toBeGreaterThan(SMALL_LOAD_BYTES);
  expect(await ended(await upload(service.url, service.key, file))).toMatchObject({
    status: 'completed',
    counts: { inserted: rows },
  });
  const wrong = await upload(service.url, service.key, usersCsv(rows, 'two'));
  expect(await ended(wrong)).toMatchObject({ status: 'completed', counts: { updated: rows } });
  await send('/v1/identify', { user_id: 'u1', metadata: { plan: 'pro' } });
  expect(await ended(await send(`/v1/background_jobs/${wrong.job_id}/undo`, {}))).toMatchObject({
    status: 'completed',
    counts: { updated: rows },
  });
  const history = await call(service.url, service.key, '/v1/users/u1/history');
  const { data } = (await history.json()) as { data: readonly { by: string }[] };
  expect(data.map(({ by }) => by)).toEqual(['load', 'request', 'load']);
  const { code, stdout } = await runCli(['status', '--data-dir', dataDir], { env });
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 failed') });
  service.signal('SIGTERM');
  expect(await service.finished).toMatchObject({
    code: 0,
    stderr: expect.not.stringContaining('"level":40'),
  });
}

// proves: plain-role
test.skipIf(systemPostgres === undefined)(
  'a role is enough that may only create schemas in the database of another owner',
  async () => {
    const server = await startSystemPostgres();
    cleanups.push(() => server.stop());
    for (const text of [
      'create role plain login',
      'create database hosted',
      'grant create on database hosted to plain',
    ])
      await server.query('postgres', text);
    const url = server.urlOf('hosted').replace('sluice@', 'plain@');
    await expectAllWorks(url);
    // A start with CHANGES_DAYS=0 removes the log of changes.
    await prepareDatabase(url, true, pino({ level: 'silent' }), 0);
  },
);

describe.runIf(isInstalled('pgbouncer'))('PgBouncer with its defaults, the queue in PostgreSQL', () => {
  // proves: pgbouncer
  test('a load of many chunks, a record and an undo work with session pooling, and each change has its maker', async () => {
    await expectAllWorks(await openPooler('session'));
  });

  // proves: pgbouncer
  test.each(['transaction', 'statement'] as const)(
    'PgBouncer with %s pooling is refused by every command in one sentence, before anything is written',
    async (mode) => {
      const env = { DATABASE_URL: await openPooler(mode) };
      const dataDir = await temporaryFolder();
      const sentence = 'leads to a pooler that gives every transaction another session of the server';
      const commands = [['start'], ['serve'], ['work'], ['migrate'], ['env', 'list']];
      for (const command of mode === 'transaction' ? commands : commands.slice(-1)) {
        const { code, stderr } = await runCli([...command, '--data-dir', dataDir], { env });
        expect({ code, stderr }, command.join(' ')).toMatchObject({
          code: 2,
          stderr: expect.stringContaining(sentence),
        });
      }
      const { stdout, code } = await runCli(['status', '--data-dir', dataDir], { env });
      expect({ code, stdout }).toMatchObject({ code: 1, stdout: expect.stringContaining(sentence) });
      expect(stdout).toMatch(/, 1 failed$/m);
    },
  );
});
