import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import type { Finding } from '../../src/doctor/check.ts';
import { runChecks } from '../../src/doctor/check.ts';
import { checkNode, checkPublicUrl, checkStorage, judgeSpace } from '../../src/doctor/check-machine.ts';
import { checkClock } from '../../src/doctor/check-servers.ts';
import { examine, hideSecrets } from '../../src/doctor/examine.ts';
import { openFileStore } from '../../src/files/storage.ts';
import { createCertificates } from '../support/certificates.ts';
import { connectTo } from '../support/connect.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTlsPostgres } from '../support/postgres-tls.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { isInstalled } from '../support/system-tools.ts';

let dataDir: string;
let database: TestDatabase;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-doctor-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

async function look(settings: Readonly<Record<string, string>> = {}): Promise<ReadonlyMap<string, Finding>> {
  const given = { DATA_DIR: dataDir, DATABASE_URL: database.url, ...settings };
  const findings = await examine(readConfig(given), given);
  return new Map(findings.map((finding) => [finding.check, finding]));
}

/** Returns what a check says: its status, what it found, and what to do. */
async function said(check: string, settings: Readonly<Record<string, string>>): Promise<string> {
  const { status, found, advice } = (await look(settings)).get(check) ?? {};
  return `${status}: ${found} → ${advice}`;
}

const verdicts = (found: ReadonlyMap<string, Finding>) =>
  Object.fromEntries([...found].map(([check, { status }]) => [check, status]));

describe('the doctor', () => {
  test('finds nothing wrong where nothing is, but what the tests do to their server', async () => {
    const found = await look();
    expect(verdicts(found)).toMatchObject({
      node: 'ok',
      'postgres version': 'ok',
      'postgres privileges': 'ok',
      'postgres connections': 'ok',
      'postgres fsync': 'warning',
      'postgres clock': 'ok',
      migrations: 'ok',
      'event retention': 'ok',
      redis: 'ok',
      storage: 'ok',
      smtp: 'ok',
      inbox: 'ok',
      schedules: 'ok',
      port: 'ok',
      'public url': 'ok',
    });
    expect([...found.values()].filter(({ status }) => status === 'failed')).toEqual([]);
    for (const { status, advice } of found.values()) expect(advice === null).toBe(status === 'ok');
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('everything that is away is said, and without a secret', async () => {
    const folder = join(dataDir, 'no-folder');
    await writeFile(folder, 'a file');
    const found = await look({
      DATABASE_URL: 'postgres://me:pw-of-postgres@127.0.0.1:1/x',
      REDIS_URL: 'redis://:pw-of-redis@127.0.0.1:1',
      SMTP_URL: 'smtp://me:pw-of-smtp@127.0.0.1:1',
      STORAGE_URL: folder,
      PUBLIC_URL: 'https://me:pw-of-url@sluice.example.com',
    });
    expect(verdicts(found)).toMatchObject({
      node: 'ok',
      postgres: 'failed',
      redis: 'failed',
      storage: 'failed',
      smtp: 'failed',
      'public url': 'warning',
    });
    expect(found.get('redis')?.found).toContain('ECONNREFUSED');
    expect(JSON.stringify([...found.values()])).not.toContain('pw-of-');
  });

  test('a check that hangs or throws stops no other', async () => {
    const findings = await runChecks([
      { name: 'hangs', deadlineMs: 50, run: () => new Promise(() => undefined), advice: 'look' },
      { name: 'throws', deadlineMs: 50, run: () => Promise.reject(new Error('so it is')), advice: 'look' },
      { name: 'node', deadlineMs: 5_000, run: () => checkNode('20.19.0'), advice: 'look' },
    ]);
    expect(findings.map(({ check, status, found }) => [check, status, found])).toEqual([
      ['hangs', 'failed', 'no answer within 0.05 s'],
      ['throws', 'failed', 'so it is'],
      ['node', 'ok', 'Node.js 20.19.0'],
    ]);
    expect(await checkNode('20.18.3')).toMatchObject([{ status: 'failed' }]);
  });

  test('secrets do not come through in the words of others', async () => {
    const settings = { SMTP_URL: 'smtp://me:p%40ss%20word@mail.example.com', ADMIN_KEY: 'k'.repeat(24) };
    const said = `535 not p@ss word nor p%40ss%20word nor ${'k'.repeat(24)}`;
    const finding: Finding = { check: 'smtp', status: 'failed', found: said, advice: said };
    const hidden = '535 not [secret] nor [secret] nor [secret]';
    expect(hideSecrets([finding], readConfig(settings))).toEqual([
      { ...finding, found: hidden, advice: hidden },
    ]);
  });
});

describe('of Postgres', () => {
  // proves: upgrade
  test('a database that was never migrated is about to be, one of a newer program is not to be touched', async () => {
    const empty = await createEmptyDatabase();
    const newer = await createTestDatabase();
    await connectTo(newer.url, (client) =>
      client.query("insert into sluice.migrations (name, digest) values ('9999_from_the_future.sql', 'x')"),
    );
    const migrations = ({ url }: TestDatabase) => said('migrations', { DATABASE_URL: url });
    expect(await migrations(empty)).toMatch(/^warning: \d+ to be applied →/);
    expect(await migrations(newer)).toMatch(/^failed: .*9999_from_the_future\.sql/);
    await connectTo(newer.url, (client) =>
      client.query("update sluice.migrations set digest = 'other' where name like '0001%'"),
    );
    expect(await migrations(newer)).toMatch(/0001_create_environments\.sql.* →.*was never released/);
    const made = await connectTo(empty.url, (client) =>
      client.query("select 1 from pg_namespace where nspname = 'sluice'"),
    );
    expect(made.rows).toEqual([]);
    await empty.drop();
    await newer.drop();
  });

  test('an encoding that cannot hold every text is found', async () => {
    const name = `${new URL(database.url).pathname.slice(1)}_latin`;
    await connectTo(database.url, (client) =>
      client.query(`create database ${name} encoding 'LATIN1' template template0 locale 'C'`),
    );
    const url = new URL(database.url);
    url.pathname = name;
    expect(await said('postgres encoding', { DATABASE_URL: url.href })).toMatch(/^failed: LATIN1/);
    await connectTo(database.url, (client) => client.query(`drop database ${name} with (force)`));
  });

  test('a role without the rights that migrations take is found before they fail', async ({ skip }) => {
    if (process.env['SLUICE_TEST_POSTGRES_URL'] !== undefined) return skip('superusers of other servers may');
    // Belongs to the superuser, who lets nobody create schemas in it.
    const url = new URL(database.url);
    url.pathname = '/postgres';
    const found = await said('postgres privileges', { DATABASE_URL: url.href });
    expect(found).toMatch(/^failed: .*may not create schemas/);
  });

  test('settings of the database that harm are named, each with what to do', async () => {
    const own = await createTestDatabase();
    await connectTo(own.url, async (client) => {
      const { rows } = await client.query<{ name: string }>('select current_database() as name');
      await client.query(`alter database ${rows[0]?.name} set statement_timeout = '5s'`);
      await client.query(`alter database ${rows[0]?.name} set synchronous_commit = off`);
    });
    const found = await look({ DATABASE_URL: own.url, WORKERS: '64' });
    expect(found.get('postgres statement_timeout')).toMatchObject({ status: 'warning', found: '5000 ms' });
    expect(found.get('postgres synchronous_commit')).toMatchObject({ status: 'warning' });
    // 64 workers are more than the server has connections for.
    expect(found.get('postgres connections')).toMatchObject({ status: 'warning' });
    await own.drop();
  });

  test('a clock that is off by more than two seconds shows, one that is not does not', async () => {
    const clock = (offMs: number) =>
      connectTo(database.url, (client) => checkClock(client, () => Date.now() + offMs));
    expect(await clock(1_000)).toMatchObject([{ status: 'ok' }]);
    for (const [offMs, word] of [
      [10_000, 'behind'],
      [-10_000, 'ahead'],
    ] as const)
      expect(await clock(offMs)).toMatchObject([{ status: 'warning', found: expect.stringContaining(word) }]);
  });

  test('an inbox that cannot be made, a schedules file that is wrong or wants variables', async () => {
    const file = join(dataDir, 'schedules.yaml');
    const load = '{ http: { url: "https://example.com/$' + '{env:SCHEDULE_WHERE}" } }';
    await writeFile(file, `schedules:\n  - name: a\n    cron: "61 * * * *"\n    load: ${load}\n`);
    const bad = await look({ INBOX_DIR: join(file, 'inbox'), SCHEDULES_FILE: file });
    expect(verdicts(bad)).toMatchObject({ inbox: 'failed', schedules: 'failed' });
    expect(bad.get('schedules')?.found).toContain('schedules.yaml:3:11: ');
    await writeFile(file, `schedules:\n  - name: a\n    cron: "1 * * * *"\n    load: ${load}\n`);
    const settings = { INBOX_DIR: join(dataDir, 'inbox'), SCHEDULES_FILE: file };
    expect(await said('inbox', settings)).toMatch(/^ok: .*can be made/);
    expect(await said('schedules', settings)).toMatch(/^warning: not set here: SCHEDULE_WHERE →/);
    const right = await said('schedules', { ...settings, SCHEDULE_WHERE: 'users.csv' });
    expect(right).toContain(`ok: 1 in ${file}`);
    expect(await said('schedules', { SCHEDULES_FILE: `${file}.gone` })).toMatch(/^failed: .*ENOENT/);
    expect(await readdir(dataDir)).not.toContain('inbox');
    await rm(file);
  });

  test('where no embedded server runs none is started, and what can be told is', async () => {
    const found = await look({ DATABASE_URL: '' });
    expect(verdicts(found)).toMatchObject({
      postgres: 'warning',
      'embedded postgres': 'ok',
      'data folder': 'ok',
    });
    expect(await readdir(dataDir)).not.toContain('postgres');
    // Data of another major version cannot be read by the program that is installed.
    await mkdir(join(dataDir, 'postgres', 'data'), { recursive: true });
    await writeFile(join(dataDir, 'postgres', 'data', 'PG_VERSION'), '14\n');
    expect((await look({ DATABASE_URL: '' })).get('embedded postgres')).toMatchObject({ status: 'failed' });
    await rm(join(dataDir, 'postgres'), { recursive: true });
  });
});

describe('a connection that does not come about', () => {
  const trusting = (caFile: string): string => `sslmode=verify-full&sslrootcert=${caFile}`;
  const adviceFor = async (url: string, change: (url: URL) => void): Promise<string | null | undefined> => {
    const changed = new URL(url);
    change(changed);
    return (await look({ DATABASE_URL: changed.href })).get('postgres')?.advice;
  };

  test('each fault of password, database, host, port and TLS has advice of its own', async () => {
    const [certificates, others] = await Promise.all([createCertificates(), createCertificates()]);
    const tls = await startTlsPostgres(database.url, certificates);
    const own = await createTestDatabase();
    const name = new URL(own.url).pathname.slice(1);
    const faults: readonly (readonly [(url: URL) => void, string])[] = [
      [(url) => Object.assign(url, { password: 'wrong' }), 'refuses the password'],
      [(url) => Object.assign(url, { password: '' }), 'DATABASE_URL has none'],
      [(url) => Object.assign(url, { pathname: '/nowhere' }), 'does not exist'],
      [(url) => Object.assign(url, { port: '1' }), 'Nothing listens there'],
      [(url) => Object.assign(url, { hostname: 'nowhere.invalid' }), 'Is the name spelt right'],
      [(url) => Object.assign(url, { search: 'sslmode=verify-full' }), 'does not support TLS'],
      [
        (url) => Object.assign(url, { host: `localhost:${tls.port}`, search: 'sslmode=verify-full' }),
        'no authority that this machine trusts',
      ],
      [
        (url) => Object.assign(url, { host: `127.0.0.1:${tls.port}`, search: trusting(certificates.caFile) }),
        'bears another name',
      ],
      [
        (url) => Object.assign(url, { host: `localhost:${tls.port}`, search: trusting(others.caFile) }),
        'is not to be trusted',
      ],
    ];
    for (const [change, advice] of faults) expect(await adviceFor(own.url, change)).toContain(advice);
    await connectTo(database.url, (client) => client.query(`alter database ${name} connection limit 0`));
    expect(await adviceFor(own.url, () => undefined)).toContain('takes no more connections');
    await tls.stop();
    await own.drop();
    await Promise.all([certificates.remove(), others.remove()]);
  });

  test.runIf(isInstalled('pgbouncer'))('PgBouncer has its own words for the same', async () => {
    const pooler = await startPgBouncer(database.url, 'session');
    const faults: readonly (readonly [(url: URL) => void, string])[] = [
      [(url) => Object.assign(url, { password: 'wrong' }), 'refuses the password'],
      [(url) => Object.assign(url, { pathname: '/nowhere' }), 'does not exist'],
      [(url) => Object.assign(url, { search: 'options=-c%20jit%3Doff' }), 'ignore_startup_parameters'],
    ];
    for (const [change, advice] of faults) expect(await adviceFor(pooler.url, change)).toContain(advice);
    await pooler.stop();
  });

  test('a port that another program has is a fault, one that a sluice serves is none', async () => {
    const answers = { other: 'hello', sluice: '{"status":"live"}' };
    const found: string[] = [];
    for (const body of Object.values(answers)) {
      const server = createServer((_request, response) => response.end(body)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as { port: number };
      const finding = (await look({ PORT: String(port) })).get('port');
      found.push(`${finding?.status}: ${finding?.found}`.replace(String(port), 'N'));
      server.close();
      await once(server, 'close');
    }
    expect(found).toEqual([
      'failed: another program listens on 127.0.0.1, port N',
      'ok: sluice listens on 127.0.0.1, port N',
    ]);
  });
});

describe.runIf(redisAvailable)('of Redis', () => {
  test('its version, policy, memory and persistence', async () => {
    const redis = await startRedis();
    const settings = { REDIS_URL: redis.url };
    expect(verdicts(await look(settings))).toMatchObject({
      'redis version': 'ok',
      'redis maxmemory-policy': 'ok',
      'redis memory': 'ok',
      'redis persistence': 'warning',
    });
    await redis.configure('maxmemory-policy', 'allkeys-lru');
    await redis.configure('maxmemory', '1mb');
    await redis.configure('appendonly', 'yes');
    expect(verdicts(await look(settings))).toMatchObject({
      'redis maxmemory-policy': 'failed',
      'redis memory': 'warning',
      'redis persistence': 'ok',
    });
    await redis.stop();
  });
});

describe('of the rest', () => {
  test('a mail server is greeted and sent nothing', async () => {
    const server = await startMailServer();
    expect(await said('smtp', { SMTP_URL: server.url })).toMatch(/^ok: /);
    expect(server.mails).toEqual([]);
    await server.stop();
  });

  test('links that nobody could follow', async () => {
    for (const [url, status] of [
      ['', 'warning'],
      ['http://localhost:8080', 'warning'],
      ['http://sluice.example.com', 'warning'],
      ['https://sluice.example.com/base', 'ok'],
    ] as const) {
      const [finding] = await checkPublicUrl(readConfig({ HOST: '0.0.0.0', PUBLIC_URL: url }));
      expect(finding, url).toMatchObject({ status });
    }
  });

  test('a disk with less than a tenth or a GiB left, and one that is full', () => {
    const judge = (freeGiB: number, allGiB: number) =>
      judgeSpace('disk', { freeBytes: freeGiB * 2 ** 30, allBytes: allGiB * 2 ** 30 });
    expect([judge(20, 100), judge(9, 100), judge(0.9, 2)]).toMatchObject([
      ...['ok', 'warning', 'warning'].map((status) => ({ status })),
    ]);
    const full = { status: 'failed', found: 'the disk is full: 10 MiB free, 0 % of 2.0 GiB' };
    expect(judge(0.01, 2)).toMatchObject(full);
  });

  test('a store that gives back other bytes than it was given', async () => {
    const files = openFileStore(readConfig({ DATA_DIR: dataDir }).storage, 1_000_000);
    const lying = {
      ...files,
      readRange: async (...of: Parameters<typeof files.readRange>) => (await files.readRange(...of)).fill(0),
    };
    expect(await checkStorage(lying)).toMatchObject([{ check: 'storage', status: 'failed' }]);
    const left = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true });
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
  });
});
