/**
 * npm run bench:lake [-- --events N] [--turns N] [--append] [--chdb PATH]
 *
 * Alternately exports a month of events as Parquet and appends the month to the lake. Then drops
 * the month twice: once without a lake, and once by moving the month to the lake. At the end,
 * prints the targets and the results. `--append` only exports and appends. The printed
 * memory is that of this process, which does the work of a worker. With `--chdb`, ClickHouse also
 * reads the table. PATH is a folder in which `npm install chdb` was run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { pino } from 'pino';
import { requireEnvironment } from '../src/access/acts.ts';
import { readConfig } from '../src/base/config.ts';
import { appendEvents } from '../src/capabilities/lake/append-events.ts';
import { removeReplaced } from '../src/capabilities/lake/commit.ts';
import { pruneEvents } from '../src/jobs/prune-events.ts';
import { openSystem } from '../src/processes/open-system.ts';
import { prepareDatabase, provideDatabase } from '../src/queue/provide-database.ts';
import { median } from './figures.ts';
import { exportEvents, measure, mostMemory } from './lake-export.ts';

const { values: flags } = parseArgs({
  options: {
    events: { type: 'string', default: '500000' },
    turns: { type: 'string', default: '5' },
    append: { type: 'boolean', default: false },
    chdb: { type: 'string' },
  },
});
const events = Number(flags.events);
const startedAt = performance.now();
const gates: string[] = [];
const counts = 'event_name as name, count(*) as events, count(distinct user_id) as users';
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

const dataDir = await mkdtemp(join(tmpdir(), 'sluice-bench-lake-'));
const log = pino({ level: 'silent' });
const config = readConfig({ ...process.env, DATA_DIR: dataDir, EVENT_RETENTION_DAYS: '100' });
const database = await provideDatabase(config, log, { share: false });
await prepareDatabase(database.url, true, log);
const system = openSystem({ config, databaseUrl: database.url, log, role: 'bench', poolSize: 4 });
try {
  const { environmentId } = await requireEnvironment(system, 'default');
  await fill(environmentId);
  await appendInTurns(environmentId);
  if (!flags.append) await moveAll(environmentId);
  gate('peak memory of a worker, MiB', mostMemory(), '≤ 250');
  print(
    `\n${events} events, ${((performance.now() - startedAt) / 60_000).toFixed(1)} min\n${gates.join('\n')}`,
  );
} finally {
  await system.close();
  await database.stop();
  await rm(dataDir, { recursive: true, force: true });
}

function gate(what: string, figure: number, bound: string, about = ''): void {
  gates.push(`${what}: ${figure >= 100 ? Math.round(figure) : figure.toFixed(2)} (${bound})${about}`);
}

type Measured = Pick<Awaited<ReturnType<typeof measure>>, 'seconds' | 'cpu' | 'peak'>;

/**
 * Alternately exports events and appends them to the lake. An export and an append read, compress
 * and store the same events in the same way.
 */
async function appendInTurns(environmentId: number): Promise<void> {
  const context = { ...system, config: { ...system.config, eventRetentionDays: 0, lakeEveryMs: 1 } };
  const exported: Measured[] = [];
  const appended: Measured[] = [];
  for (let turn = 0; turn <= Number(flags.turns); turn++) {
    const first = await measure(() => exportEvents(system, environmentId, { format: 'parquet' }));
    await sql`update lake_months set cursor = null`.execute(system.db);
    const second = await measure(() => appendEvents(context));
    await removeReplaced(system);
    // The first turn does not count, because it includes the time to compile the code.
    if (turn === 0) continue;
    exported.push(first);
    appended.push(second);
  }
  const [before, after] = [exported, appended].map((all) => median(all.map(({ seconds }) => seconds)));
  const rates = Object.entries({ exported, appended }).map(([what, all]) => {
    const rate = Math.round(events / median(all.map(({ seconds }) => seconds)));
    const cpu = (median(all.map((each) => each.cpu)) * 1e6) / events;
    const peak = Math.max(...all.map((each) => each.peak));
    return `${what}: ${rate}/s, ${cpu.toFixed(2)} µs of processor here, peak ${peak} MiB`;
  });
  gate(
    'append ÷ export as Parquet, events/s',
    (before ?? 0) / (after ?? 0),
    '≥ 0.9',
    `; ${rates.join('; ')}`,
  );
  await appendEvents({ ...context, config: { ...context.config, lakeEveryMs: null } });
}

async function moveAll(environmentId: number): Promise<void> {
  await prune(null, environmentId);
  const stored = flags.chdb === undefined ? null : await countByName('select * from sluice.events');
  await prune(1, environmentId);
  if (flags.chdb !== undefined) await readWithClickHouse(flags.chdb, stored);
}

/**
 * With a lake, pruning moves the expired month. Without one, it deletes the month, which is then
 * created again.
 */
async function prune(lakeEveryMs: number | null, environmentId: number): Promise<void> {
  const context = { ...system, config: { ...system.config, eventRetentionDays: 100, lakeEveryMs } };
  const { seconds, peak, done } = await measure(() => pruneEvents(context));
  const lake = lakeEveryMs === null ? 'without' : 'with';
  print(`${done.events} events dropped, ${lake} a lake: ${seconds.toFixed(1)} s, peak ${peak} MiB`);
  if (lakeEveryMs === null) return fill(environmentId);
  const { rows } = await sql<{ bytes: number }>`
    select sum(byte_count)::bigint as bytes from lake_files where kind = 'data'`.execute(system.db);
  gate('bytes an event', (rows[0]?.bytes ?? 0) / events, '≤ 60');
}

async function countByName(events: string): Promise<string> {
  const { rows } = await system.pool.query(`select ${counts} from (${events}) e group by 1 order by 1`);
  return JSON.stringify(rows);
}

async function readWithClickHouse(folder: string, expected: string | null): Promise<void> {
  const { query } = createRequire(join(folder, 'package.json'))('chdb') as {
    query: (sql: string, as: string) => string;
  };
  const { rows } = await system.pool.query<{ at: string }>(
    `select regexp_replace(metadata_location, '^file://(.*)/metadata/.*', '\\1') as at from sluice.iceberg_tables`,
  );
  // ClickHouse reads only files below its working directory.
  process.chdir(rows[0]?.at ?? '');
  const { seconds, done } = await measure(async () =>
    query(
      `select ${counts} from icebergLocal('${process.cwd()}') group by 1 order by 1 settings output_format_json_quote_64bit_integers = 0`,
      'JSONEachRow',
    ),
  );
  const actual = JSON.stringify(
    done
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  );
  if (actual !== expected) throw new Error(`ClickHouse reads something else: ${actual}`);
  print(`ClickHouse reads the same counts: ${seconds.toFixed(1)} s`);
}

async function fill(environmentId: number): Promise<void> {
  await sql`select ensure_events_partition(date_trunc('month', now()) - interval '8 months')`.execute(
    system.db,
  );
  await sql`
    with made as (
      insert into events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
      select ${environmentId}, md5(n::text), 'event_' || n % 20, 'user-' || n % 50000, 'company-' || n % 1000, 'backend-http',
        date_trunc('month', now()) - interval '8 months' + n * interval '27 days' / ${events},
        jsonb_build_object('page', '/reports/' || n, 'duration_ms', n % 5000, 'plan', 'business')
      from generate_series(1, ${events}) n
      returning environment_id, event_id, user_id, inserted_at
    )
    insert into event_ids select * from made`.execute(system.db);
  await sql`vacuum (analyze) events, event_ids`.execute(system.db);
}
