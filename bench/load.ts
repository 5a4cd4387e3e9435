/**
 * npm run bench:load [-- --rows N] [--flat] [--scale]
 * npm run bench:load -- --events N
 * npm run bench:load -- --workers [--rows N]
 * npm run bench:load -- --dialects [--rows N]
 *
 * Loads a deterministic file of users through the real service (upload, chunks, workers, ledger) and beside it, in
 * the same PostgreSQL, runs the SQL one would write by hand. Prints both, their ratio, and peak memory. Then the same
 * for a file of events, beside COPY of ready rows. With --events: only that, of N events. With --workers: the same file of
 * users with one worker process and with two, and nothing else. With --dialects: the same users written in other ways.
 */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { openBaseline } from './baseline.ts';
import { compareDialects } from './dialects.ts';
import { compareEvents } from './events.ts';
import { measureLatency } from './latency.ts';
import { peaks, resetPeaks, type Service, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';
import { compareWorkers } from './workers.ts';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    flat: { type: 'boolean', default: false },
    scale: { type: 'boolean', default: false },
    workers: { type: 'boolean', default: false },
    dialects: { type: 'boolean', default: false },
    events: { type: 'string' },
  },
});

interface Bench {
  readonly service: Service;
  readonly baseline: Awaited<ReturnType<typeof openBaseline>>;
  readonly client: pg.Client;
}

interface Step {
  readonly name: string;
  readonly path: string;
  readonly format: 'csv' | 'ndjson';
  /** Both tables are emptied first. */
  readonly fresh: boolean;
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-files-'));
try {
  if (flags.workers) await workers(Number(flags.rows));
  else await measure();
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function workers(rows: number): Promise<void> {
  const path = join(folder, 'users.csv');
  await writeUsersFile(path, { rows, format: 'csv' });
  print(`${rows} users, CSV, all new; ${process.version}\n`);
  await compareWorkers(path, rows, print);
}

async function measure(): Promise<void> {
  const service = await startService();
  const baseline = await openBaseline(service.databaseUrl);
  const client = new pg.Client({ connectionString: service.databaseUrl });
  await client.connect();
  const bench: Bench = { service, baseline, client };
  try {
    if (flags.events !== undefined) return await events(bench, Number(flags.events));
    if (flags.dialects) return await compareDialects(service, client, folder, Number(flags.rows), print);
    await compare(bench, Number(flags.rows));
    await latency(bench);
    await events(bench, 2_000_000);
    if (flags.flat) await flat(bench);
    if (flags.scale) await scale(bench);
  } finally {
    await client.end();
    await baseline.close();
    await service.stop();
  }
}

async function compare(bench: Bench, rows: number): Promise<void> {
  const file = (name: string): string => join(folder, name);
  await writeUsersFile(file('users.csv'), { rows, format: 'csv' });
  await writeUsersFile(file('half.csv'), { rows, format: 'csv', changed: 0.5 });
  await writeUsersFile(file('users.ndjson'), { rows, format: 'ndjson' });
  const { size } = await stat(file('users.csv'));
  print(
    `${rows} users, 10 columns, ${(size / 1e6).toFixed(0)} MB of CSV; ${process.version}, ${await version(bench.client)}\n`,
  );
  print('| load | seconds | rows/s | by hand, s | ratio | peak RSS, MiB |');
  print('|---|---|---|---|---|---|');
  const steps: Step[] = [
    { name: 'CSV, all new', path: file('users.csv'), format: 'csv', fresh: true },
    { name: 'CSV, all again, unchanged', path: file('users.csv'), format: 'csv', fresh: false },
    { name: 'CSV, half of the rows changed', path: file('half.csv'), format: 'csv', fresh: false },
    { name: 'NDJSON, all new', path: file('users.ndjson'), format: 'ndjson', fresh: true },
  ];
  for (const step of steps) await runStep(bench, step, rows);
}

async function runStep({ service, baseline, client }: Bench, step: Step, rows: number): Promise<void> {
  if (step.fresh) {
    await client.query('truncate sluice.users, sluice.companies');
    await baseline.clear();
  }
  await baseline.settle();
  const byHand = await baseline.load(step.path, step.format);
  await baseline.settle();
  resetPeaks(service.pid);
  const { seconds } = await service.load(step.path, contentType(step.format));
  const memory = Object.entries(peaks(service.pid)).map(([name, mib]) => `${name} ${mib}`);
  print(
    `| ${step.name} | ${seconds.toFixed(2)} | ${Math.round(rows / seconds)} | ${byHand.toFixed(2)} | ${(seconds / byHand).toFixed(2)} | ${memory.join(', ')} |`,
  );
}

function events({ service, client }: Bench, rows: number): Promise<void> {
  return compareEvents(service, client, folder, rows, print);
}

async function latency({ service }: Bench): Promise<void> {
  const { p50, p99 } = await measureLatency(service);
  print(
    `\narray of 100 users, POST to completed, 200 times: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
  );
}

/** Memory must not grow with the file. */
async function flat({ service, client }: Bench): Promise<void> {
  print('\n| file | seconds | peak RSS, MiB |\n|---|---|---|');
  for (const rows of [710_000, 7_100_000]) {
    await client.query('truncate sluice.users, sluice.companies');
    const path = join(folder, 'flat.csv');
    await writeUsersFile(path, { rows, format: 'csv' });
    const { size } = await stat(path);
    resetPeaks(service.pid);
    const { seconds } = await service.load(path, contentType('csv'));
    const memory = Object.entries(peaks(service.pid)).map(([name, mib]) => `${name} ${mib}`);
    print(`| ${(size / 1e6).toFixed(0)} MB | ${seconds.toFixed(1)} | ${memory.join(', ')} |`);
  }
}

/** Time per row must not grow with the file. */
async function scale({ service, baseline, client }: Bench): Promise<void> {
  print('\n| rows | seconds | µs per row |\n|---|---|---|');
  for (const rows of [500_000, 5_000_000]) {
    await client.query('truncate sluice.users, sluice.companies');
    await baseline.settle();
    const path = join(folder, 'scale.csv');
    await writeUsersFile(path, { rows, format: 'csv' });
    const { seconds } = await service.load(path, contentType('csv'));
    print(`| ${rows} | ${seconds.toFixed(1)} | ${((seconds * 1e6) / rows).toFixed(2)} |`);
  }
}

function contentType(format: 'csv' | 'ndjson'): string {
  return format === 'csv' ? 'text/csv' : 'application/x-ndjson';
}

async function version(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ v: string }>(
    "select 'PostgreSQL ' || current_setting('server_version') as v",
  );
  return rows[0]?.v ?? '';
}
