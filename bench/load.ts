/**
 * npm run bench:load [-- --rows N] [--turns N] [--only STEPS] [--against WAYS] [--rules 20|unique]
 * npm run bench:load -- --events N [--turns N]
 * npm run bench:load -- --workers [--rows N]
 * npm run bench:load -- --dialects [--rows N]
 * npm run bench:load -- --large [--rows N | --events N]
 * npm run bench:load -- --plans [--rows N] [--turns N]
 * npm run bench:load -- --mirror [--rows N] [--turns N]
 *
 * Loads a file of users through the real service (upload, chunks, workers, ledger). In turn with
 * these loads, also loads the file into the same PostgreSQL in two other ways: by hand-written SQL,
 * and by COPY of rows that already have their stored form. This COPY is the least work for the
 * database. Prints the times, the ratios to the other ways, and the peak memory. Then prints how
 * long a JSON array of 100 users takes.
 *
 * --only: steps, separated by commas: unchanged, 1%, 10%, 50%, ndjson. "CSV, all new" always runs
 * first.
 * --against: other ways to measure, separated by commas: copy, hand.
 * --events: loads only N events, and compares this load with COPY of rows in stored form.
 * --workers: loads the same file of users with one worker process and with two.
 * --dialects: loads the same users from different kinds of files.
 * --large: runs one load of users or events, and prints the cost of a row.
 * --plans: plans each file and then loads it.
 * --mirror: loads a file that lacks 1 % of the users, both as an ordinary load and as a mirror.
 * --rules: adds rules from `benchRules`: twenty rules, or unique emails. Every record satisfies
 * them.
 */
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { compareDialects } from './dialects.ts';
import { compareEvents } from './events.ts';
import { diskOfBenches, makeFolder } from './folder.ts';
import { type LargeLoad, measureLarge } from './large.ts';
import { compareMirrors, comparePlans, measureLatency } from './plans.ts';
import { type Service, startService } from './service.ts';
import { compareUsers, stepKeys, wayKeys } from './users.ts';
import { benchRules, writeUsersFile } from './users-file.ts';
import { compareWorkers } from './workers.ts';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '200000' },
    turns: { type: 'string', default: '3' },
    only: { type: 'string' },
    against: { type: 'string' },
    large: { type: 'boolean', default: false },
    workers: { type: 'boolean', default: false },
    dialects: { type: 'boolean', default: false },
    plans: { type: 'boolean', default: false },
    mirror: { type: 'boolean', default: false },
    events: { type: 'string' },
    rules: { type: 'string', default: '0' },
  },
});

interface Bench {
  readonly service: Service;
  readonly client: pg.Client;
}

const rows = Number(flags.rows);
const turns = Number(flags.turns);
let compare: typeof comparePlans | null = null;
if (flags.plans) compare = comparePlans;
else if (flags.mirror) compare = compareMirrors;
const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await makeFolder('sluice-bench-files-');
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
  const client = new pg.Client({ connectionString: service.databaseUrl });
  await client.connect();
  const bench: Bench = { service, client };
  try {
    print(
      `${process.version}, ${await version(client)}, ${availableParallelism()} cores, ${diskOfBenches}\n`,
    );
    if (flags.rules !== '0') {
      const document = JSON.stringify(benchRules[flags.rules]);
      await client.query(
        'insert into sluice.rules (environment_id, version, document) select environment_id, 1, $1 from sluice.environments',
        [document],
      );
      await client.query(
        "insert into sluice.environment_uses (environment_id, name) select environment_id, 'rules' from sluice.environments",
      );
    }
    if (flags.large) await measureLarge(service, client, folder, largeLoad(), print);
    else if (flags.events !== undefined) await events(bench, Number(flags.events));
    else if (compare !== null) await compare(service, client, folder, { rows, turns }, print);
    else if (flags.dialects) await compareDialects(service, client, folder, Number(flags.rows), print);
    else await users(bench, Number(flags.rows));
  } finally {
    await client.end();
    await service.stop();
  }
}

function largeLoad(): LargeLoad {
  if (flags.events === undefined) return { what: 'users', rows: Number(flags.rows) };
  return { what: 'events', rows: Number(flags.events) };
}

async function users(bench: Bench, rows: number): Promise<void> {
  const turns = Number(flags.turns);
  print(`${rows} users, 10 columns; in each turn (${turns}) one way after the other\n`);
  const only = chosen(flags.only, stepKeys);
  const against = chosen(flags.against, wayKeys);
  await compareUsers(bench.service, bench.client, folder, { rows, turns, only, against }, print);
  if (flags.only === undefined) await latency(bench);
}

/** Default: all names. */
function chosen(list: string | undefined, all: readonly string[]): readonly string[] {
  const names = list?.split(',') ?? all;
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`not known: ${unknown.join()}; there are ${all.join()}`);
  return names;
}

function events({ service, client }: Bench, rows: number): Promise<void> {
  return compareEvents(service, client, folder, { rows, turns: Number(flags.turns) }, print);
}

async function latency({ service }: Bench): Promise<void> {
  const { p50, p99 } = await measureLatency(service);
  print(
    `\narray of 100 users, POST to completed, 200 times: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
  );
}

async function version(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ v: string }>(
    "select 'PostgreSQL ' || current_setting('server_version') as v",
  );
  return rows[0]?.v ?? '';
}
