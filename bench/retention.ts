/**
 * npm run bench:retention [-- --events N]
 *
 * Drops a month of events, with an archive and without; exports it before and after, in each format. Memory is that of
 * this process, which does what a worker does.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { pino } from 'pino';
import { readConfig } from '../src/config.ts';
import { openSystem } from '../src/context.ts';
import { type ExportFormat, exportFormatFacts, exportFormats } from '../src/domain/export.ts';
import { EXPORT_PART_BYTES } from '../src/domain/limits.ts';
import { writeExport } from '../src/export/write/write-export.ts';
import type { FileRef } from '../src/files/file-store.ts';
import { ensureDefaultEnvironment } from '../src/postgres/stores/environments.ts';
import { prepareDatabase, provideDatabase } from '../src/provide-database.ts';
import { pruneEvents } from '../src/retention/prune-events.ts';

const { values: flags } = parseArgs({ options: { events: { type: 'string', default: '500000' } } });
const events = Number(flags.events);
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

const dataDir = await mkdtemp(join(tmpdir(), 'sluice-bench-retention-'));
const log = pino({ level: 'silent' });
const config = readConfig({ ...process.env, DATA_DIR: dataDir, EVENT_RETENTION_DAYS: '100' });
const database = await provideDatabase(config, log, { share: false });
await prepareDatabase(database.url, true, log);
const system = openSystem({ config, databaseUrl: database.url, log, role: 'bench', poolSize: 4 });
try {
  const { environment } = await ensureDefaultEnvironment(system.db);
  await prune('off', environment.environmentId);
  const before = await exportAll(environment.environmentId, 'live');
  await prune('parquet', environment.environmentId);
  const after = await exportAll(environment.environmentId, 'archived');
  if (before.join() !== after.join()) throw new Error('the exports differ');
  print('the exports before and after are equal, byte for byte');
} finally {
  await system.close();
  await database.stop();
  await rm(dataDir, { recursive: true, force: true });
}

/** With an archive it is left to the exports; without one it is filled again. */
async function prune(eventArchive: 'off' | 'parquet', environmentId: number): Promise<void> {
  if (eventArchive === 'off') await fill(environmentId);
  const context = { ...system, config: { eventRetentionDays: 100, eventArchive } };
  const { seconds, peak, done } = await measure(() => pruneEvents(context));
  print(`${done.events} events dropped, archive ${eventArchive}: ${seconds} s, peak ${peak} MB`);
  if (eventArchive === 'off') return fill(environmentId);
  const { rows } = await sql<{ bytes: number }>`
    select sum(byte_count)::bigint as bytes from event_archives`.execute(system.db);
  print(`archive: ${((rows[0]?.bytes ?? 0) / 1e6).toFixed(1)} MB`);
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

async function exportAll(environmentId: number, what: string): Promise<string[]> {
  const hashes: string[] = [];
  for (const format of exportFormats) hashes.push(await exportOnce(environmentId, format, what));
  return hashes;
}

async function exportOnce(environmentId: number, format: ExportFormat, what: string): Promise<string> {
  const { seconds, peak, done } = await measure(() =>
    writeExport(system, {
      environmentId,
      manifest: { jobId: 'bench', environmentName: 'bench', appToken: 'NX-00000000' },
      sessionName: 'sluice bench',
      ...{ segment: null, excludedSegments: [], splitBytes: EXPORT_PART_BYTES },
      signal: new AbortController().signal,
      onProgress: () => undefined,
      onSnapshot: () => undefined,
      request: {
        ...{
          from: null,
          to: null,
          since: null,
          includeRemoved: false,
          distinctIds: false,
          layout: 'datasets',
          datasets: ['events'],
          eventKinds: [],
          eventNames: [],
          userIds: [],
        },
        ...{ companyIds: [], segmentId: null, exclusions: [], format, escapeFormulas: true },
        compression: exportFormatFacts[format].isPackedInside ? 'none' : 'gzip',
      },
    }),
  );
  const hash = createHash('sha256');
  for (const { ref, dataset } of done.files) {
    if (dataset !== 'manifest')
      for await (const bytes of system.files.open(ref as FileRef)) hash.update(bytes);
  }
  const rows = done.files.reduce((sum, file) => sum + file.rows, 0);
  print(`${what} export, ${format}: ${rows} events, ${seconds} s, peak ${peak} MB`);
  return hash.digest('hex');
}

/** The peak of the resident memory, in megabytes, and how long it took. */
async function measure<T>(work: () => Promise<T>): Promise<{ seconds: string; peak: number; done: T }> {
  let peak = 0;
  const look = (): void => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, 20);
  const began = performance.now();
  try {
    const done = await work();
    look();
    return { seconds: ((performance.now() - began) / 1000).toFixed(1), peak: Math.round(peak / 1e6), done };
  } finally {
    clearInterval(timer);
  }
}
