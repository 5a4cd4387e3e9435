/**
 * npm run bench:copies [-- --users N] [--events N]
 *
 * Backs up a running service and restores the backup into a new data directory; beside each, what one would do by hand:
 * `psql -c 'copy … to stdout' | gzip -1` for each large table, and the way back. By hand nothing is compared, nothing is one
 * snapshot, and no small tables and files are copied.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { packageRoot } from '../src/package-root.ts';
import { prepareDatabase } from '../src/provide-database.ts';
import { addEvents } from './export-data.ts';
import { megabytes } from './figures.ts';
import { diskOfBenches, makeFolder } from './folder.ts';
import { startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '2000000' },
  },
});
const [users, events] = [Number(flags.users), Number(flags.events)];
/** Smaller ones are not worth a process by hand. */
const largeRows = 1_000;

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await makeFolder('sluice-bench-copies-');
const service = await startService();
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  await fill();
  print('| copy | seconds | rows/s | MB | by hand, s | ratio | peak RSS, MiB |');
  print('|---|---|---|---|---|---|---|');
  const archive = join(folder, 'backup.tar.gz');
  const [restored, byHand] = [join(folder, 'restored'), join(folder, 'by-hand')];
  await mkdir(byHand);
  const tables = await largeTables();

  const backup = await sluice(['backup', archive], { DATA_DIR: service.folder });
  const out = await inTurn(
    tables,
    (table) => `${psql(service.databaseUrl, copyOut(table))} | gzip -1 > ${byHand}/${table}.gz`,
  );
  const { size } = await stat(archive);
  row(`backup (${megabytes(await sizeOf(byHand))} by hand)`, backup, size, out);
  row('backup --verify', await sluice(['backup', '--verify', archive], {}), size);

  const restore = await sluice(['restore', archive], { DATA_DIR: restored });
  const back = await newDatabase('back');
  row(
    'restore',
    restore,
    size,
    await inTurn(tables, (table) => `gunzip -c ${byHand}/${table}.gz | ${copyIn(back, table)}`),
  );
} finally {
  await client.end();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}

async function fill(): Promise<void> {
  const path = join(folder, 'users.csv');
  await writeUsersFile(path, { rows: users, format: 'csv' });
  await service.load(path, 'text/csv');
  await addEvents(client, 0, events);
  await client.query(
    'insert into sluice.event_ids select environment_id, event_id, user_id, inserted_at from sluice.events',
  );
  await client.query('vacuum (analyze)');
  await client.query('checkpoint');
  print(`${users} users, ${events} events with their ids; ${process.version}, ${diskOfBenches}\n`);
}

async function largeTables(): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' and reltuples > $1
    order by 1`,
    [largeRows],
  );
  return rows.map(({ name }) => name);
}

/** Creates another database of the server, with our tables. */
async function newDatabase(name: string): Promise<string> {
  await client.query(`create database ${name}`);
  const url = new URL(service.databaseUrl);
  url.pathname = `/${name}`;
  await prepareDatabase(url.href, true, pino({ level: 'silent' }));
  const copy = new pg.Client({ connectionString: url.href });
  await copy.connect();
  await copy.query(
    `select sluice.ensure_events_partition(now() - make_interval(days => day)) from generate_series(0, 100) day`,
  );
  await copy.end();
  return url.href;
}

function psql(url: string, ...statements: readonly string[]): string {
  return `psql -qX1 '${url}' ${statements.map((statement) => `-c '${statement}'`).join(' ')}`;
}

function copyOut(table: string): string {
  return `copy sluice.${table} to stdout`;
}

/** Into a table that is emptied by the same transaction: no WAL is written. */
function copyIn(url: string, table: string): string {
  return psql(url, `truncate sluice.${table}`, `copy sluice.${table} from stdin with (freeze)`);
}

/** Seconds that all of them take, one after another. */
async function inTurn(tables: readonly string[], command: (table: string) => string): Promise<number> {
  const startedAt = performance.now();
  for (const table of tables) {
    const shell = spawn('bash', ['-o', 'pipefail', '-c', command(table)], { stdio: 'inherit' });
    const [code] = (await once(shell, 'exit')) as [number];
    if (code !== 0) throw new Error(`${table}: the shell ended with ${code}`);
  }
  return (performance.now() - startedAt) / 1_000;
}

interface Outcome {
  readonly rows: number;
  readonly seconds: number;
  readonly peakMib: number;
}

/** A command as it is shipped. */
async function sluice(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Outcome> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [join(packageRoot, 'dist/bundle/main.js'), ...args, '--json'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let peakMib = 0;
  const timer = setInterval(() => {
    peakMib = peakOf(child.pid) ?? peakMib;
  }, 20);
  let output = '';
  child.stdout.on('data', (text) => {
    output += String(text);
  });
  const [code] = (await once(child, 'close')) as [number];
  clearInterval(timer);
  if (code !== 0) throw new Error(`sluice ${args[0]} ended with ${code}`);
  const result = JSON.parse(output) as Pick<Outcome, 'rows'>;
  return { ...result, seconds: (performance.now() - startedAt) / 1_000, peakMib };
}

/** Linux only. Undefined once the process has ended. */
function peakOf(pid: number | undefined): number | undefined {
  try {
    const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Math.round(Number(kib) / 1_024);
  } catch {
    return undefined;
  }
}

async function sizeOf(path: string): Promise<number> {
  const sizes = (await readdir(path)).map(async (name) => (await stat(join(path, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

function row(what: string, { seconds, rows, peakMib }: Outcome, bytes: number, byHand?: number): void {
  const ratio = byHand === undefined ? ' | ' : `${byHand.toFixed(1)} | ${(seconds / byHand).toFixed(2)}`;
  const size = (bytes / 1e6).toFixed(0);
  print(
    `| ${what} | ${seconds.toFixed(1)} | ${Math.round(rows / seconds)} | ${size} | ${ratio} | ${peakMib} |`,
  );
}
