import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { embeddedPostgres } from '../../src/postgres/embedded/embedded-postgres.ts';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { ended, expectExact, progressed, report } from '../support/oracles/exactness.ts';
import { expectEachOnce } from '../support/oracles/records-exactness.ts';
import { signalPostmaster } from '../support/servers/private-postgres.ts';
import { type SluiceProcess, startSluice } from '../support/servers/processes.ts';
import { RecordSender } from '../support/servers/record-sender.ts';
import { type Api, callApi, openSql, type Sql } from '../support/servers/site.ts';
import { mountSmallDisk, type SmallDisk } from '../support/servers/tmpfs.ts';
import { patienceMs, waitFor } from '../support/wait-for.ts';

const file = createProfileFile({ rows: 40_000, seed: 5 });
const table = oracleOf(file);

/**
 * A running `sluice start` on a data directory, with embedded PostgreSQL, a server and two workers.
 */
interface Service {
  readonly key: string;
  readonly process: SluiceProcess;
  readonly api: Api;
}

interface House {
  readonly dataDir: string;
  start(): Promise<Service>;
  /** Runs another `sluice` command on the same data directory until it exits. */
  run(...args: readonly string[]): Promise<{ readonly code: string; readonly output: string }>;
  databaseUrl(): Promise<string>;
  readonly sql: Sql;
}

test('a service restarts its killed embedded Postgres, continues after all its processes were killed, and is exact', async () => {
  await inHouse(async (house) => {
    const { process, api } = await house.start();
    const jobId = await api.upload(file.bytes);
    for (const [share, signal] of [
      [0.2, 'SIGQUIT'],
      [0.4, 'SIGKILL'],
    ] as const) {
      await progressed(house.sql, jobId, share);
      const untilEnded = await signalPostmaster(join(house.dataDir, 'postgres'), signal);
      await untilEnded();
      const killedAt = performance.now();
      await waitFor('the service to answer again', async () => {
        const { status } = await api.fetch(`/v1/background_jobs/${jobId}`);
        expect([200, 503]).toContain(status);
        return status === 200;
      });
      report(`embedded Postgres ${signal}: the API is back after ${seconds(killedAt)} s`);
    }
    await progressed(house.sql, jobId, 0.6);
    // The postmaster has its own process group, so it is killed separately.
    await signalPostmaster(join(house.dataDir, 'postgres'), 'SIGKILL');
    await process.killGroup();
    const killedAt = performance.now();
    await house.start();
    const startedAt = performance.now();
    const load = await expectExact(house.sql, jobId, file, table);
    report(
      `whole service killed: listening ${seconds(killedAt, startedAt)} s after the kill, load done ${seconds(startedAt)} s later (${load.seconds.toFixed(1)} s in all)`,
    );
  });
});

// proves: disk-full
test('a service with a full disk reports it and continues when there is room, with nothing lost or doubled', async ({
  skip,
}) => {
  const disk = await mountSmallDisk(256 * 2 ** 20);
  if (typeof disk === 'string') return skip(disk);
  try {
    await inHouse((house) => fillDisk(house, disk), join(disk.path, 'data'));
  } finally {
    await disk.remove();
  }
});

async function expectFullDiskTold(house: House): Promise<void> {
  const status = await house.run('status');
  expect(status.code).toBe('exit code 1');
  expect(status.output).toMatch(/^failed +disk of \S+: The disk of \S+ is full: .* Make room: /m);
  expect(status.output).toMatch(/^disks\n.*is full.*\n.*\n.* yes\s*$/m);
  expect(status.output).toMatch(/import +(?:chunk \d+: )?could not /);
}

async function fillDisk(house: House, disk: SmallDisk): Promise<void> {
  const { sql } = house;
  const { api, key } = await house.start();
  const sender = new RecordSender(api.url, key, 4);
  const jobId = await api.upload(file.bytes);
  await progressed(sql, jobId, 0.1);
  // Connects in advance, because the database may refuse new connections when its disk is full.
  const writer = new pg.Client({ connectionString: await house.databaseUrl() });
  writer.on('error', () => undefined);
  await writer.connect();
  const fillLog = `select pg_logical_emit_message(false, 'test', repeat('x', 1000000)) from generate_series(1, $1)`;
  await writer.query(fillLog, [1]);
  const ballast = join(disk.path, 'ballast');
  await writeFile(ballast, Buffer.alloc(disk.bytes)).catch(() => undefined);

  // Usually, PostgreSQL first finds the disk full when it writes a page of a table. In this case,
  // PostgreSQL keeps running. If PostgreSQL first finds the disk full when it writes the WAL,
  // PostgreSQL ends.
  const finder = await waitFor('the disk to be found full', async () => {
    const answer = await (await api.fetch(`/v1/background_jobs/${jobId}`)).text();
    if (/No space left/.test(answer)) return 'by the load';
    return /no room left/.test(answer) && 'by the server';
  });
  const upload = { method: 'POST', body: file.bytes.toString(), headers: { 'content-type': 'text/csv' } };
  expect(await refusal(api, '/v1/imports', upload)).toMatch(
    /^disk of (the database|the files|the data directory): no room left$/,
  );
  if (finder === 'by the load') await expectFullDiskTold(house);

  // This statement fills the WAL. PostgreSQL finds the disk full there, ends, and cannot restart.
  await expect(writer.query(fillLog, [64])).rejects.toThrow();
  await api.process.prints(/no room left on the disk of/);
  const record = { method: 'POST', body: '{"user_id":"u"}', headers: { 'content-type': 'application/json' } };
  expect(await refusal(api, '/v1/identify', record)).toBe('disk of the data directory: no room left');
  expect(await house.run('status')).toMatchObject({
    code: 'exit code 1',
    output: expect.stringMatching(/The disk of .* is full/),
  });

  await rm(ballast);
  const freedAt = performance.now();
  await sender.untilServed(patienceMs);
  report(`disk full: records are accepted ${seconds(freedAt)} s after there was room`);
  await ended(sql, jobId);
  await sender.stop();
  await expectEachOnce(sql, sender);
  const drafts = (await readdir(join(house.dataDir, 'postgres', 'data'))).filter((name) =>
    name.startsWith('postmaster.pid.'),
  );
  expect(drafts, 'what could not be written').toEqual([]);
  for (const entity of ['users', 'companies'])
    await sql(`delete from sluice.${entity} where metadata ?| array['id', 'batch']`);
  await expectExact(sql, jobId, file, table);
}

/** Returns the reason given when a request is refused because the disk is full. */
async function refusal(api: Api, path: string, request: RequestInit): Promise<string> {
  return waitFor(`${path} to be refused for the disk`, async () => {
    const response = await api.fetch(path, request);
    const text = await response.text();
    if (response.status !== 503) throw new Error(`${response.status} ${text}`);
    expect(response.headers.get('retry-after')).not.toBeNull();
    const { errors } = JSON.parse(text) as { errors: { error_code: string; details: string }[] };
    expect(errors).toMatchObject([{ error_code: 'unavailable' }]);
    return errors[0]?.details ?? '';
  });
}

async function inHouse(run: (house: House) => Promise<void>, folder?: string): Promise<void> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'sluice-house-')));
  const variables = {
    DATA_DIR: dataDir,
    PORT: '0',
    WORKERS: '2',
    LOG_LEVEL: 'warn',
    CHUNK_BYTES: '64k',
  };
  const services: SluiceProcess[] = [];
  let key = '';
  /** Pools by the URL of the database. The URL can change when the service restarts. */
  const looks = new Map<string, { readonly pool: pg.Pool; readonly sql: Sql }>();
  const house: House = {
    dataDir,
    async start() {
      const process = startSluice(['start'], variables);
      services.push(process);
      const [, url = ''] = await process.prints(/sluice listens on (http:\S+) /);
      // The first start creates the key.
      key ||= (await readFile(join(dataDir, 'first-key'), 'utf8')).trim();
      return { process, key, api: callApi(process, url, key) };
    },
    async run(...args) {
      const command = startSluice(args, variables);
      await waitFor(`${command.name} to end`, () => command.ending !== null);
      return { code: command.ending ?? '', output: command.output };
    },
    databaseUrl: () =>
      waitFor('the embedded Postgres', () => embeddedPostgres.findRunning(join(dataDir, 'postgres'))),
    async sql(text, values) {
      const url = await house.databaseUrl();
      const look = looks.get(url) ?? openSql(url);
      looks.set(url, look);
      return look.sql(text, values);
    },
  };
  try {
    await run(house);
  } finally {
    await Promise.all([...looks.values()].map(({ pool }) => pool.end()));
    await Promise.all(services.map((service) => stop(service)));
    await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/**
 * Stops a service and the database that it started. Does not resolve if the database does not stop.
 */
async function stop(service: SluiceProcess): Promise<void> {
  if (service.ending === null) await service.kill('SIGTERM');
}

function seconds(since: number, until = performance.now()): string {
  return ((until - since) / 1000).toFixed(1);
}
