import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from '../wait-for.ts';
import { connectTo } from './connect.ts';
import { freePort } from './free-port.ts';

/**
 * Folders in which the programs of PostgreSQL may be installed. Tests use an installed PostgreSQL
 * for pg_dump, because the embedded one does not include it. Debian's versions are sorted, newest
 * first.
 */
const debian = '/usr/lib/postgresql';
const folders = [
  ...(existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []).map((version) =>
    join(debian, version, 'bin'),
  ),
  ...(process.env['PATH'] ?? '').split(':'),
];
const tools = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'pg_basebackup', 'psql'];

/**
 * Folder of the programs. `undefined` if no folder has all of them. Tests that need the programs
 * are then skipped.
 */
export const systemPostgres = folders.find((folder) => tools.every((tool) => existsSync(join(folder, tool))));

interface SystemPostgres {
  readonly url: string;
  urlOf(database: string): string;
  /** Returns a path to which the tools may write. */
  scratch(name: string): string;
  /** Runs a tool. If the tool fails, throws its error output. */
  run(tool: string, ...args: readonly string[]): void;
  query(database: string, sql: string): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
}

const account = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Starts a server on `data`, which is a restored data directory. Default: a new data directory. */
export async function startSystemPostgres(data?: string): Promise<SystemPostgres> {
  const bin = systemPostgres;
  if (bin === undefined) throw new Error('this machine has no PostgreSQL with its tools');
  const folder = await mkdtemp(join(tmpdir(), 'sluice-system-postgres-'));
  if (account.uid !== undefined) await chown(folder, account.uid, account.gid);
  const run = (tool: string, ...args: readonly string[]): void => {
    const { status, stderr } = spawnSync(join(bin, tool), args, {
      cwd: folder,
      encoding: 'utf8',
      ...account,
    });
    if (status !== 0) throw new Error(`${tool} ${args.join(' ')}: ${stderr}`);
  };
  const directory = data ?? join(folder, 'data');
  if (data === undefined) run('initdb', '-D', directory, '-U', 'sluice', '-A', 'trust', '--no-sync');
  const port = await freePort();
  const options = ['-D', directory, '-k', folder, '-p', String(port), '-c', 'fsync=off'];
  const child = spawn(join(bin, 'postgres'), options, { stdio: 'ignore', ...account });
  const urlOf = (database: string): string => `postgres://sluice@127.0.0.1:${port}/${database}`;
  const query = async (database: string, sql: string) =>
    (await connectTo(urlOf(database), (client) => client.query<Record<string, unknown>>(sql))).rows;
  await waitFor('the server', () => query('postgres', 'select 1'));
  return {
    url: urlOf('postgres'),
    urlOf,
    scratch: (name) => join(folder, name),
    run,
    query,
    async stop() {
      await endFast(child);
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

async function endFast(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGINT');
  await exited;
}
