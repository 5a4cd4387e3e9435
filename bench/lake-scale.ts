/**
 * npm run bench:lake-scale [-- --events 5000000,10000000,20000000]
 *
 * Fills two years with events, in steps. After each step, updates the lake, rewrites all months
 * completely, erases one user, and moves the oldest month out of the database. As the lake grows,
 * the time per event must stay the same. The printed memory is that of this process, which does the
 * work of a worker.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { pino } from 'pino';
import { requireEnvironment } from '../src/access/acts.ts';
import { readConfig } from '../src/base/config.ts';
import { appendEvents } from '../src/capabilities/lake/append-events.ts';
import { eraseFiles } from '../src/capabilities/lake/lake.ts';
import { insertDeletion } from '../src/deletion/store.ts';
import { pruneEvents } from '../src/jobs/prune-events.ts';
import { inTransaction } from '../src/postgres/database.ts';
import { openSystem } from '../src/processes/open-system.ts';
import { prepareDatabase, provideDatabase } from '../src/queue/provide-database.ts';
import { exportEvents, measure } from './lake-export.ts';

const { values: flags } = parseArgs({
  options: { events: { type: 'string', default: '5000000,10000000,20000000' } },
});
const steps = flags.events.split(',').map(Number);
const months = 24;
const users = 1_000_000;
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

const dataDir = await mkdtemp(join(tmpdir(), 'sluice-bench-lake-'));
const log = pino({ level: 'silent' });
const config = readConfig({ ...process.env, DATA_DIR: dataDir });
const database = await provideDatabase(config, log, { share: false });
await prepareDatabase(database.url, true, log);
const system = openSystem({ config, databaseUrl: database.url, log, role: 'bench', poolSize: 4 });
const { db, pool } = system;
try {
  const { environmentId } = await requireEnvironment(system, 'default');
  for (const [index, events] of steps.entries()) {
    await runStep(environmentId, index, events, events - (steps[index - 1] ?? 0));
  }
} finally {
  await system.close();
  await database.stop();
  await rm(dataDir, { recursive: true, force: true });
}

async function runStep(environmentId: number, index: number, events: number, added: number): Promise<void> {
  await fill(environmentId, index, added);
  print(`\n${events} events in ${months} months`);
  const context = { ...system, config: { ...system.config, eventRetentionDays: 0, lakeEveryMs: 1 } };
  if (index === 0)
    report(
      'exported as Parquet',
      added,
      await measure(() => exportEvents(system, environmentId, { format: 'parquet' })),
    );
  report('appended', added, await measure(() => appendEvents(context)));
  await sql`update lake_months set appends = 1000`.execute(db);
  const whole = await measure(() => appendEvents(context));
  const { rows, hot, bytes, files, metadata } = await readLake();
  report('written whole', hot, whole);
  print(`${files} data files, ${(bytes / rows).toFixed(1)} bytes an event, ${metadata} bytes of metadata`);
  report('looked at to erase one user', rows, await measure(() => erase(environmentId, `user-${index}`)));
  const days = await readMonth(index);
  const retention = { ...context, config: { ...context.config, eventRetentionDays: days } };
  const dropped = await measure(() => pruneEvents(retention));
  report('compared and dropped', dropped.done.events, dropped);
}

function report(
  what: string,
  events: number,
  { seconds, cpu, peak }: { readonly seconds: number; readonly cpu: number; readonly peak: number },
): void {
  const perEvent = (all: number): string => `${((all * 1e6) / events).toFixed(2)} µs`;
  const each = `${perEvent(seconds)} each, ${perEvent(cpu)} of processor here, ${Math.round(events / seconds)}/s`;
  print(`${events} events ${what}: ${seconds.toFixed(1)} s, ${each}, peak ${peak} MiB`);
}

/** Adds equally many events of random users to each month. */
async function fill(environmentId: number, gone: number, events: number): Promise<void> {
  const each = Math.round(events / months);
  for (let month = gone; month < months; month++) {
    const begin = sql`(date_trunc('month', now()) - ${months - month} * interval '1 month')`;
    await sql`select ensure_events_partition(${begin})`.execute(db);
    await sql`
      with made as (
        insert into events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata)
        select ${environmentId}, md5(${`${gone} ${month} `} || n), 'event_' || n % 20,
          'user-' || (hashint8(n * ${months} + ${month}) & 1073741823) % ${users}, 'company-' || n % 1000, 'backend-http',
          ${begin} + n * interval '27 days' / ${each},
          jsonb_build_object('page', '/reports/' || n, 'duration_ms', n % 5000, 'plan', 'business')
        from generate_series(1, ${each}) n
        returning environment_id, event_id, user_id, inserted_at
      )
      insert into event_ids select * from made`.execute(db);
  }
  await sql`vacuum (analyze) events, event_ids`.execute(db);
}

async function erase(environmentId: number, id: string): Promise<void> {
  const jobId = crypto.randomUUID();
  await insertDeletion(db, {
    jobId,
    environmentId,
    entity: 'users',
    ids: [id],
    origin: null,
    requestId: null,
    purgeExports: false,
    options: {},
  });
  const { rows } = await sql<{ deletionId: number }>`
    select deletion_id as "deletionId" from deletions where job_id = ${jobId}`.execute(db);
  const deletionId = rows[0]?.deletionId ?? Number.NaN;
  await eraseFiles({
    context: system,
    deletion: { deletionId, environmentId, entity: 'users' },
    step: (work) => inTransaction(pool, ({ db: inside }) => work(inside)),
    throwIfAborted: () => undefined,
  });
}

async function readLake() {
  const { rows } = await sql<Record<'rows' | 'hot' | 'bytes' | 'files' | 'metadata', number>>`
    select sum(row_count) filter (where kind = 'data') as rows,
      sum(row_count) filter (where kind = 'data' and is_hot) as hot,
      sum(byte_count) filter (where kind = 'data') as bytes,
      count(*) filter (where kind = 'data') as files,
      sum(byte_count) filter (where kind <> 'data') as metadata
    from lake_files
    where state = 'stored'`.execute(db);
  const figures = Object.entries(rows[0] ?? {}).map(([name, value]) => [name, Number(value)]);
  return Object.fromEntries(figures) as (typeof rows)[number];
}

/** Returns the retention in days with which the month at `index` has just expired. */
async function readMonth(index: number): Promise<number> {
  const { rows } = await sql<{ days: number }>`
    select floor(extract(epoch from now() - (date_trunc('month', now()) - ${months - 1 - index} * interval '1 month')) / 86400)::integer as days`.execute(
    db,
  );
  return rows[0]?.days ?? Number.NaN;
}
