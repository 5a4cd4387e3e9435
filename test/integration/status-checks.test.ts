import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { openFileStore } from '../../src/files/storage.ts';
import { checkStorage, examine, hideSecrets } from '../../src/telemetry/health/checks.ts';
import { type Finding, runChecks } from '../../src/telemetry/health/findings.ts';
import { checkClock } from '../../src/telemetry/health/postgres.ts';
import { createCertificates } from '../support/servers/certificates.ts';
import { connectTo } from '../support/servers/connect.ts';
import { startPgBouncer } from '../support/servers/pgbouncer.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/servers/postgres.ts';
import { startTlsPostgres } from '../support/servers/postgres-tls.ts';
import { redisAvailable, startRedis } from '../support/servers/redis.ts';
import { isInstalled } from '../support/servers/system-tools.ts';

let dataDir: string;
let database: TestDatabase;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-status-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

async function look(settings: Readonly<Record<string, string>> = {}): Promise<ReadonlyMap<string, Finding>> {
  const variables = { DATA_DIR: dataDir, DATABASE_URL: database.url, ...settings };
  const findings = await examine(readConfig(variables));
  return new Map(findings.map((finding) => [finding.check, finding]));
}

async function summaryOf(check: string, settings: Readonly<Record<string, string>>): Promise<string> {
  const { status, found, advice } = (await look(settings)).get(check) ?? {};
  return `${status}: ${found} → ${advice}`;
}

const verdicts = (findings: ReadonlyMap<string, Finding>) =>
  Object.fromEntries([...findings].map(([check, { status }]) => [check, status]));

describe('the checks of the status', () => {
  test('a sound installation has no failed check, and every other finding has advice', async () => {
    const findings = await look();
    expect(verdicts(findings)).toMatchObject({
      node: 'ok',
      'postgres version': 'ok',
      'postgres rights': 'ok',
      'postgres connections': 'ok',
      'postgres fsync': 'warning',
      'postgres clock': 'ok',
      migrations: 'ok',
      queue: 'ok',
      storage: 'ok',
    });
    expect([...findings.values()].filter(({ status }) => status === 'failed')).toEqual([]);
    for (const { status, advice } of findings.values()) expect(advice === null).toBe(status === 'ok');
  });

  test('every part that is away is a finding without a secret', async () => {
    const folder = join(dataDir, 'no-folder');
    await writeFile(folder, 'a file');
    const findings = await look({
      DATABASE_URL: 'postgres://me:pw-of-postgres@127.0.0.1:1/x',
      REDIS_URL: 'redis://:pw-of-redis@127.0.0.1:1',
      STORAGE_URL: folder,
    });
    expect(verdicts(findings)).toMatchObject({ postgres: 'failed', redis: 'failed', storage: 'failed' });
    expect(findings.get('redis')?.found).toContain('ECONNREFUSED');
    expect(JSON.stringify([...findings.values()])).not.toContain('pw-of-');
  });

  test('a service for other machines without PUBLIC_URL is warned about its links', async () => {
    const open = { HOST: '0.0.0.0' };
    expect(await summaryOf('links', open)).toMatch(/^warning: .*PUBLIC_URL is not set → Set PUBLIC_URL/);
    expect(await summaryOf('links', { ...open, PUBLIC_URL: 'https://sluice.example.com' })).toMatch(/^ok: /);
    expect(await summaryOf('links', {})).toMatch(/^ok: /);
  });

  test('a check that hangs or throws stops no other', async () => {
    const advise = (): string => 'look';
    const findings = await runChecks([
      { name: 'hangs', deadlineMs: 50, run: () => new Promise(() => undefined), advise },
      { name: 'throws', deadlineMs: 50, run: () => Promise.reject(new Error('so it is')), advise },
      { name: 'ends', deadlineMs: 5_000, run: async () => [], advise },
    ]);
    expect(findings.map(({ check, status, found }) => [check, status, found])).toEqual([
      ['hangs', 'failed', 'no answer within 0.05 s'],
      ['throws', 'failed', 'so it is'],
    ]);
  });

  test('secrets in the messages of servers are hidden', () => {
    const settings = {
      REDIS_URL: 'redis://me:p%40ss%20word@r.example.com',
      ADMIN_KEY: 'k'.repeat(24),
      OIDC_CLIENT_SECRET: 'the-client-secret',
    };
    const text = `not p@ss word nor p%40ss%20word nor ${'k'.repeat(24)} nor the-client-secret`;
    const finding: Finding = { check: 'redis', status: 'failed', found: text, advice: text };
    const hidden = 'not [secret] nor [secret] nor [secret] nor [secret]';
    expect(hideSecrets([finding], readConfig(settings))).toEqual([
      { ...finding, found: hidden, advice: hidden },
    ]);
  });
});

describe('the checks of PostgreSQL', () => {
  // proves: upgrade
  test('a database without migrations is a warning, and a database of a newer program is a failed check', async () => {
    const empty = await createEmptyDatabase();
    const newer = await createTestDatabase();
    await connectTo(newer.url, (client) =>
      client.query("insert into sluice.migrations (name, digest) values ('9999_from_the_future.sql', 'x')"),
    );
    const migrations = ({ url }: TestDatabase) => summaryOf('migrations', { DATABASE_URL: url });
    expect(await migrations(empty)).toMatch(/^warning: \d+ to be applied →/);
    expect(await migrations(newer)).toMatch(/^failed: .*9999_from_the_future\.sql/);
    await connectTo(newer.url, (client) =>
      client.query("update sluice.migrations set digest = 'other' where name like '0001%'"),
    );
    expect(await migrations(newer)).toMatch(
      /0001_create_environments\.sql.* → No release made this data\. Run `sluice export /,
    );
    const schema = await connectTo(empty.url, (client) =>
      client.query("select 1 from pg_namespace where nspname = 'sluice'"),
    );
    expect(schema.rows).toEqual([]);
    await empty.drop();
    await newer.drop();
  });

  test('an encoding that cannot store every text is a failed check', async () => {
    const name = `${new URL(database.url).pathname.slice(1)}_latin`;
    await connectTo(database.url, (client) =>
      client.query(`create database ${name} encoding 'LATIN1' template template0 locale 'C'`),
    );
    const url = new URL(database.url);
    url.pathname = name;
    expect(await summaryOf('postgres encoding', { DATABASE_URL: url.href })).toMatch(/^failed: LATIN1/);
    await connectTo(database.url, (client) => client.query(`drop database ${name} with (force)`));
  });

  test('a role without the rights for migrations is a failed check', async ({ skip }) => {
    if (process.env['SLUICE_TEST_POSTGRES_URL'] !== undefined) return skip('superusers of other servers may');
    // This database belongs to the superuser, and no other role may create schemas in it.
    const url = new URL(database.url);
    url.pathname = '/postgres';
    const summary = await summaryOf('postgres rights', { DATABASE_URL: url.href });
    expect(summary).toMatch(/^failed: .*may not create schemas/);
  });

  test('harmful settings of the database are named, each with advice', async () => {
    const limited = await createTestDatabase();
    await connectTo(limited.url, async (client) => {
      const { rows } = await client.query<{ name: string }>('select current_database() as name');
      await client.query(`alter database ${rows[0]?.name} set statement_timeout = '5s'`);
      await client.query(`alter database ${rows[0]?.name} set synchronous_commit = off`);
    });
    const findings = await look({ DATABASE_URL: limited.url, WORKERS: '64' });
    expect(findings.get('postgres statement_timeout')).toMatchObject({
      status: 'warning',
      found: '5000 ms',
    });
    expect(findings.get('postgres synchronous_commit')).toMatchObject({ status: 'warning' });
    // The server allows fewer connections than 64 workers need.
    expect(findings.get('postgres connections')).toMatchObject({ status: 'warning' });
    await limited.drop();
  });

  test('a clock that is off by more than two seconds is a warning', async () => {
    const clock = (offMs: number) =>
      connectTo(database.url, (client) => checkClock(client, () => Date.now() + offMs));
    expect(await clock(1_000)).toMatchObject({ status: 'ok' });
    for (const [offMs, word] of [
      [10_000, 'behind'],
      [-10_000, 'ahead'],
    ] as const)
      expect(await clock(offMs)).toMatchObject({ status: 'warning', found: expect.stringContaining(word) });
  });

  test('an embedded server that does not run is a failed check, and is not started', async () => {
    expect(await summaryOf('postgres', { DATABASE_URL: '' })).toContain('→ Run `sluice start`');
    expect(await readdir(dataDir)).not.toContain('postgres');
  });
});

describe('a failing connection', () => {
  const trusting = (caFile: string): string => `sslmode=verify-full&sslrootcert=${caFile}`;
  const adviceFor = async (url: string, change: (url: URL) => void): Promise<string | null | undefined> => {
    const changed = new URL(url);
    change(changed);
    return (await look({ DATABASE_URL: changed.href })).get('postgres')?.advice;
  };

  test('each fault of password, database, host, port and TLS has advice of its own', async () => {
    const [certificates, others] = await Promise.all([createCertificates(), createCertificates()]);
    const tls = await startTlsPostgres(database.url, certificates);
    const target = await createTestDatabase();
    const name = new URL(target.url).pathname.slice(1);
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
    for (const [change, advice] of faults) expect(await adviceFor(target.url, change)).toContain(advice);
    await connectTo(database.url, (client) => client.query(`alter database ${name} connection limit 0`));
    expect(await adviceFor(target.url, () => undefined)).toContain('takes no more connections');
    await tls.stop();
    await target.drop();
    await Promise.all([certificates.remove(), others.remove()]);
  });

  test.runIf(isInstalled('pgbouncer'))(
    'the same faults behind PgBouncer have advice of their own',
    async () => {
      const pooler = await startPgBouncer(database.url, 'session');
      const faults: readonly (readonly [(url: URL) => void, string])[] = [
        [(url) => Object.assign(url, { password: 'wrong' }), 'refuses the password'],
        [(url) => Object.assign(url, { pathname: '/nowhere' }), 'does not exist'],
        [(url) => Object.assign(url, { search: 'options=-c%20jit%3Doff' }), 'ignore_startup_parameters'],
      ];
      for (const [change, advice] of faults) expect(await adviceFor(pooler.url, change)).toContain(advice);
      await pooler.stop();
    },
  );
});

test.runIf(redisAvailable)('a Redis that may evict keys is a failed check', async () => {
  const redis = await startRedis();
  const settings = { REDIS_URL: redis.url };
  expect(verdicts(await look(settings))).toMatchObject({ 'redis version': 'ok', 'redis policy': 'ok' });
  await redis.configure('maxmemory-policy', 'allkeys-lru');
  expect(await summaryOf('redis policy', settings)).toMatch(/^failed: .*allkeys-lru → /);
  await redis.stop();
});

test('a store that returns wrong bytes is a failed check', async () => {
  const files = openFileStore(readConfig({ DATA_DIR: dataDir }).storage, 1_000_000);
  const lying = {
    ...files,
    readRange: async (...of: Parameters<typeof files.readRange>) => (await files.readRange(...of)).fill(0),
  };
  expect(await checkStorage(lying)).toMatchObject([{ check: 'storage', status: 'failed' }]);
  const leftovers = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true });
  expect(leftovers.filter((entry) => entry.isFile())).toEqual([]);
});
