/**
 * npm run bench:peers [-- --rows N] [--turns N] [--limit]
 *
 * Loads the same files of users with sluice and in the usual ways to load files into PostgreSQL,
 * alternately, in one database. In three steps, the users are all new, half changed, and all
 * unchanged. For each way, prints the time, the processor time by process, and the WAL. pgloader is
 * measured if it is installed. Linux only. With `--limit`, only sluice and COPY of ready rows are
 * compared, and only for new users.
 */
import { execFile, execFileSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs, promisify } from 'node:util';
import { parse } from 'csv-parse';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { openBaseline, openReadyRows } from './baseline.ts';
import { type CpuSeconds, cpuSince, least, median, readCpu } from './figures.ts';
import { diskOfBenches, makeFolder } from './folder.ts';
import { peaks, resetPeaks, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '300000' },
    turns: { type: 'string', default: '3' },
    limit: { type: 'boolean', default: false },
  },
});
const rows = Number(flags.rows);
const turns = Number(flags.turns);
const batchRows = 1_000;

const steps = [
  { title: 'all new', changed: 0, version: 0 },
  { title: 'half changed', changed: 0.5, version: 1 },
  { title: 'unchanged', changed: 0.5, version: 1 },
] as const;
type Step = (typeof steps)[number];

interface Way {
  readonly title: string;
  readonly table: string;
  /** Whether to measure this way only with new rows. */
  readonly onlyNew?: boolean;
  run(path: string): Promise<unknown>;
}

interface Costs {
  readonly seconds: number;
  readonly cpu: CpuSeconds;
  readonly walBytes: number;
  readonly peakMib: number | null;
}

const peersTable = 'by_hand.users';
const merge = `
  on conflict (environment_id, user_id) do update set
    metadata = users.metadata || excluded.metadata,
    company_id = coalesce(excluded.company_id, users.company_id),
    updated_at = now()
  where (users.metadata || excluded.metadata, coalesce(excluded.company_id, users.company_id))
    is distinct from (users.metadata, users.company_id)`;

type Cells = Readonly<Record<string, string>>;

async function* recordsOf(path: string): AsyncGenerator<readonly [string, string | null, string]> {
  const cells: AsyncIterable<Cells> = createReadStream(path).pipe(parse({ columns: true }));
  for await (const { user_id = '', company_id, ...others } of cells) {
    const properties = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== ''));
    yield [user_id, company_id || null, JSON.stringify(properties)];
  }
}

/** Loads a file with csv-parse and pg-copy-streams into a temporary table, then runs one upsert. */
async function copyByNode(client: pg.Client, path: string): Promise<void> {
  const escaped = (text: string): string => text.replace(/[\\\t\n\r]/g, (character) => `\\${character}`);
  async function* lines(): AsyncGenerator<string> {
    for await (const [id, company, properties] of recordsOf(path))
      yield `${escaped(id)}\t${company === null ? '\\N' : escaped(company)}\t${escaped(properties)}\n`;
  }
  await client.query('create temporary table incoming (id text, company text, properties jsonb)');
  await pipeline(Readable.from(lines()), client.query(copyFrom('copy incoming from stdin')));
  await client.query(`
    insert into ${peersTable} (environment_id, user_id, company_id, metadata)
    select 1, id, company, properties from incoming ${merge}`);
  await client.query('drop table incoming');
}

/** Loads a file with csv-parse and one upsert per thousand rows. */
async function insertByNode(client: pg.Client, path: string): Promise<void> {
  let batch: (string | null)[] = [];
  const write = async (): Promise<void> => {
    const places = Array.from(
      { length: batch.length / 3 },
      (_, n) => `(1, $${3 * n + 1}, $${3 * n + 2}, $${3 * n + 3})`,
    );
    const statement = `insert into ${peersTable} (environment_id, user_id, company_id, metadata) values ${places.join()}`;
    await client.query(`${statement} ${merge}`, batch);
    batch = [];
  };
  for await (const record of recordsOf(path)) {
    batch.push(...record);
    if (batch.length === 3 * batchRows) await write();
  }
  if (batch.length > 0) await write();
}

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/**
 * Loads a file with pgloader into a table of text columns, then runs one upsert from that table.
 */
async function loadByPgloader(
  client: pg.Client,
  databaseUrl: string,
  path: string,
  folder: string,
): Promise<void> {
  await client.query('create unlogged table if not exists by_hand.loaded (like by_hand.staged)');
  await client.query('truncate by_hand.loaded');
  const script = join(folder, 'users.load');
  const target = `${databaseUrl}?tablename=by_hand.loaded`;
  await writeFile(
    script,
    `LOAD CSV FROM '${path}' INTO ${target} WITH skip header = 1, fields terminated by ',';\n`,
  );
  await promisify(execFile)('pgloader', ['--quiet', script]);
  await client.query(`
    insert into ${peersTable} (environment_id, user_id, company_id, metadata)
    select 1, user_id, company_id, jsonb_strip_nulls(to_jsonb(l) - 'user_id' - 'company_id')
    from by_hand.loaded l ${merge}`);
}

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await makeFolder('sluice-peers-');
const service = await startService();
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
const baseline = await openBaseline(service.databaseUrl);
const readyRows = await openReadyRows(service.databaseUrl);
const fileOf = ({ version }: Step): string => join(folder, `users-${version}.csv`);
const ready = join(folder, 'users.copy');

const ours: Way = { title: 'sluice', table: 'sluice.users', run: (path) => service.load(path, 'text/csv') };
const limit: Way = {
  title: 'COPY of ready rows, two connections',
  table: 'sluice.users',
  onlyNew: true,
  run: () => readyRows.copy(ready),
};
const peers: readonly Way[] = [
  {
    title: 'COPY, then INSERT … ON CONFLICT',
    table: peersTable,
    run: (path) => baseline.load(path, 'csv', { onlyChanged: true }),
  },
  { title: 'csv-parse, COPY, upsert', table: peersTable, run: (path) => copyByNode(client, path) },
  { title: 'csv-parse, INSERT of 1 000 rows', table: peersTable, run: (path) => insertByNode(client, path) },
  ...(isInstalled('pgloader')
    ? [
        {
          title: 'pgloader, upsert',
          table: peersTable,
          run: (path: string) => loadByPgloader(client, service.databaseUrl, path, folder),
        },
      ]
    : []),
];

const ways = flags.limit ? [ours, limit] : [ours, limit, ...peers];

async function walPosition(): Promise<number> {
  const { rows: positions } = await client.query<{ at: string }>("select pg_current_wal_lsn() - '0/0' as at");
  return Number(positions[0]?.at);
}

async function measure(way: Way, path: string): Promise<Costs> {
  await client.query(`vacuum (analyze) ${way.table}`);
  await client.query('checkpoint');
  resetPeaks(service.pid);
  const cpu = readCpu(service);
  const wal = await walPosition();
  const startedAt = performance.now();
  await way.run(path);
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    seconds,
    cpu: cpuSince(service, cpu),
    walBytes: (await walPosition()) - wal,
    peakMib: way === ours ? Math.max(...Object.values(peaks(service.pid))) : null,
  };
}

function printStep(step: Step, costs: ReadonlyMap<Way, readonly Costs[]>): void {
  const ourSeconds = (costs.get(ours) ?? []).map(({ seconds }) => seconds);
  for (const [way, all] of costs) {
    const seconds = all.map((each) => each.seconds);
    const micros = (part: keyof CpuSeconds): string =>
      median(all.map(({ cpu }) => (cpu[part] * 1e6) / rows)).toFixed(1);
    const ratios = seconds.map((each, turn) => each / (ourSeconds[turn] ?? Number.NaN));
    const times = `${least(seconds).toFixed(2)} / ${median(seconds).toFixed(2)}`;
    const wal = Math.round(median(all.map(({ walBytes }) => walBytes)) / rows);
    const peak = all[0]?.peakMib === null ? '' : Math.max(...all.map(({ peakMib }) => peakMib ?? 0));
    const cpu = [micros('client'), micros('api'), micros('workers'), micros('postgres')].join(' | ');
    print(`| ${[step.title, way.title, times, median(ratios).toFixed(2), cpu, wal, peak].join(' | ')} |`);
  }
}

try {
  print(
    `${process.version}, ${availableParallelism()} cores, ${diskOfBenches}; ${rows} users of 10 columns, ${turns} turns\n`,
  );
  for (const step of steps) await writeUsersFile(fileOf(step), { rows, format: 'csv', ...step });
  await service.load(fileOf(steps[0]), 'text/csv');
  await readyRows.save(ready);
  const costs = new Map(steps.map((step) => [step, new Map<Way, Costs[]>()]));
  for (let turn = 0; turn < turns; turn++)
    for (const way of turn % 2 === 0 ? ways : ways.toReversed()) {
      await client.query('truncate sluice.users, sluice.companies, by_hand.users');
      for (const step of steps) {
        if ((way.onlyNew === true || flags.limit) && step !== steps[0]) continue;
        const costsByWay = costs.get(step);
        costsByWay?.set(way, [...(costsByWay.get(way) ?? []), await measure(way, fileOf(step))]);
      }
    }
  print(
    '| load | way | seconds, least / median | ÷ sluice | µs a record: client | server | workers | PostgreSQL | WAL, bytes a record | peak RSS, MiB |',
  );
  print('|---|---|---|---|---|---|---|---|---|---|');
  for (const [step, costsByWay] of costs) printStep(step, costsByWay);
} finally {
  await baseline.close();
  await readyRows.close();
  await client.end();
  await service.stop();
  await rm(folder, { recursive: true });
}
