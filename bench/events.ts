import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { halvesOf } from './baseline.ts';
import {
  type EventsFormat,
  eventMonths,
  eventsFormats,
  readyColumns,
  writeEventsFile,
} from './events-file.ts';
import { type CpuSeconds, cpuSince, median, readCpu } from './figures.ts';
import { peaks, resetPeaks, type Service } from './service.ts';

/** All steps except `the same file again` start with empty tables. */
const steps = [
  'COPY of the ready rows',
  'CSV, new',
  'the same file again',
  'NDJSON, new',
  'preset=mixpanel, new',
] as const;
type Step = (typeof steps)[number];

interface Measured {
  readonly seconds: number;
  /** Seconds from the end of the last chunk to the end of the load. */
  readonly finish: number;
  readonly cpu: CpuSeconds;
}

/**
 * Loads events sorted by time. Alternates these loads with a COPY of the same events in stored
 * form, on two connections. The tables of sluice and of the COPY have the same indexes and
 * partitions.
 */
export async function compareEvents(
  service: Service,
  client: pg.Client,
  folder: string,
  { rows, turns }: { readonly rows: number; readonly turns: number },
  print: (line: string) => unknown,
): Promise<void> {
  const path = (format: EventsFormat): string => join(folder, `events.${format}`);
  for (const format of eventsFormats) await writeEventsFile(path(format), rows, format);
  await createBaselineTable(client);
  resetPeaks(service.pid);
  const measured = new Map<Step, Measured[]>(steps.map((step) => [step, []]));
  const measure = async (step: Step, work: () => Promise<Omit<Measured, 'cpu'>>): Promise<void> => {
    const before = readCpu(service);
    const result = await work();
    measured.get(step)?.push({ ...result, cpu: cpuSince(service, before) });
  };
  let bytes = 0;
  for (let round = 0; round < turns; round++) {
    await empty(client);
    await measure('COPY of the ready rows', () => copyByHand(service.databaseUrl, path('copy')));
    await empty(client);
    await measure('CSV, new', () => load(service, client, path('csv'), 'text/csv', { inserted: rows }));
    bytes = await sizeOf(client);
    await measure('the same file again', () =>
      load(service, client, path('csv'), 'text/csv', { unchanged: rows }),
    );
    await empty(client);
    await measure('NDJSON, new', () =>
      load(service, client, path('ndjson'), 'application/x-ndjson', { inserted: rows }),
    );
    await empty(client);
    const type = 'application/x-ndjson';
    await measure('preset=mixpanel, new', () =>
      load(service, client, path('mixpanel'), type, { inserted: rows }, 'preset=mixpanel'),
    );
  }
  print(`\n${rows} track events in order of time over three months; medians of ${turns}, in turn\n`);
  print('| | seconds | rows/s | ÷ COPY | finish ÷ load | processor, µs a row |');
  print('|---|---|---|---|---|---|');
  const secondsOf = (step: Step): number => median((measured.get(step) ?? []).map(({ seconds }) => seconds));
  for (const step of steps) {
    const results = measured.get(step) ?? [];
    const ratio = median(results.map(({ seconds }, round) => seconds / copySeconds(measured, round)));
    const finish = median(results.map((each) => each.finish / each.seconds));
    const cpu = (['api', 'workers', 'postgres', 'client'] as const).map(
      (part) => `${part} ${((median(results.map((each) => each.cpu[part])) * 1e6) / rows).toFixed(1)}`,
    );
    print(
      `| ${step} | ${secondsOf(step).toFixed(2)} | ${Math.round(rows / secondsOf(step))} | ${ratio.toFixed(2)} | ${finish.toFixed(3)} | ${cpu.join(', ')} |`,
    );
  }
  const ratioOf = (step: Step): string => (secondsOf(step) / secondsOf('CSV, new')).toFixed(2);
  const again = ratioOf(steps[2]);
  const ndjson = ratioOf(steps[3]);
  const preset = ratioOf(steps[4]);
  print(`\n- of the new CSV: the same file again ${again}, NDJSON ${ndjson}, the preset ${preset}`);
  const processorOf = (step: Step): number =>
    median((measured.get(step) ?? []).map(({ cpu }) => cpu.api + cpu.workers + cpu.postgres));
  const ofCsv = (step: Step): string => (processorOf(step) / processorOf('CSV, new')).toFixed(2);
  print(
    `- processor of the new CSV, without the client: NDJSON ${ofCsv(steps[3])}, the preset ${ofCsv(steps[4])}`,
  );
  print(`- an event on disk, with its indexes: ${Math.round(bytes / rows)} bytes`);
  const memory = Object.entries(peaks(service.pid)).map(([name, mib]) => `${name} ${mib}`);
  print(`- peak RSS, MiB: ${memory.join(', ')}`);
}

function copySeconds(measured: ReadonlyMap<Step, readonly Measured[]>, round: number): number {
  return measured.get('COPY of the ready rows')?.[round]?.seconds ?? Number.NaN;
}

async function load(
  service: Service,
  client: pg.Client,
  path: string,
  type: string,
  expected: Readonly<Record<string, number>>,
  options = '',
): Promise<Omit<Measured, 'cpu'>> {
  const { job, seconds } = await service.load(path, type, options);
  for (const [count, rows] of Object.entries(expected)) {
    if (job.counts[count] !== rows) throw new Error(`not all are ${count}: ${JSON.stringify(job.counts)}`);
  }
  const { rows } = await client.query<{ finish: number }>(
    `select extract(epoch from l.ended_at - max(c.done_at))::float8 as finish
    from sluice.loads l
    join sluice.load_chunks c using (load_id)
    where l.job_id = $1
    group by l.ended_at`,
    [job.job_id],
  );
  return { seconds, finish: rows[0]?.finish ?? Number.NaN };
}

async function createBaselineTable(client: pg.Client): Promise<void> {
  await client.query(`
    create schema if not exists bench;
    drop table if exists bench.events;
    create table bench.events (like sluice.events including all) partition by range (inserted_at)`);
  for (const month of eventMonths) {
    const table = `bench.events_${month.slice(0, 7).replace('-', '_')}`;
    await client.query(`
      create table ${table} partition of bench.events
      for values from ('${month} 00:00Z') to (timestamptz '${month} 00:00Z' + interval '1 month')`);
  }
}

async function empty(client: pg.Client): Promise<void> {
  await client.query(
    'truncate sluice.events, sluice.event_ids, sluice.users, sluice.companies, bench.events',
  );
  await client.query('checkpoint');
}

async function copyByHand(databaseUrl: string, path: string): Promise<Omit<Measured, 'cpu'>> {
  const clients = [0, 1].map(() => new pg.Client({ connectionString: databaseUrl }));
  await Promise.all(clients.map((client) => client.connect()));
  const startedAt = performance.now();
  const halves = await halvesOf(path);
  await Promise.all(
    clients.map((client, at) =>
      pipeline(halves[at as 0 | 1], client.query(copyFrom(`copy bench.events (${readyColumns}) from stdin`))),
    ),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  for (const client of clients) await client.end();
  return { seconds, finish: 0 };
}

async function sizeOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(`
    select sum(pg_total_relation_size(relid))::float8 as bytes
    from pg_partition_tree('sluice.events')`);
  return rows[0]?.bytes ?? Number.NaN;
}
