import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { eventMonths, writeEventsFile } from './events-file.ts';
import { peaks, resetPeaks, type Service } from './service.ts';

const rounds = 3;

interface Measured {
  readonly byHand: number;
  readonly seconds: number;
}

/**
 * Loads a file of events in order of time, and beside it, in turn, COPYs the ready rows on one connection into a table with
 * the same indexes and partitions, in the same PostgreSQL. The ratio is that of the rates: 1 is as fast as COPY.
 */
export async function compareEvents(
  service: Service,
  client: pg.Client,
  folder: string,
  rows: number,
  print: (line: string) => unknown,
): Promise<void> {
  const ready = join(folder, 'events.copy');
  await writeEventsFile(ready, rows, 'copy');
  await createBaselineTable(client);
  print(`\n${rows} track events in order of time over three months; median of ${rounds}, in turn\n`);
  print('| events | MB | seconds | rows/s | COPY, s | of COPY | peak RSS, MiB |');
  print('|---|---|---|---|---|---|---|');
  for (const format of ['csv', 'ndjson'] as const) {
    const path = join(folder, `events.${format}`);
    await writeEventsFile(path, rows, format);
    const { size } = await stat(path);
    const measured: Measured[] = [];
    resetPeaks(service.pid);
    for (let round = 0; round < rounds; round++) {
      await empty(client);
      const byHand = await copyByHand(client, ready);
      await empty(client);
      const type = format === 'csv' ? 'text/csv' : 'application/x-ndjson';
      const { job, seconds } = await service.load(path, type);
      if (job.counts['inserted'] !== rows)
        throw new Error(`not all were added: ${JSON.stringify(job.counts)}`);
      measured.push({ byHand, seconds });
    }
    const { byHand, seconds } = median(measured);
    const memory = Object.entries(peaks(service.pid)).map(([name, mib]) => `${name} ${mib}`);
    print(
      `| ${format === 'csv' ? 'CSV' : 'NDJSON'} | ${(size / 1e6).toFixed(0)} | ${seconds.toFixed(2)} | ${Math.round(rows / seconds)} | ${byHand.toFixed(2)} | ${(byHand / seconds).toFixed(2)} | ${memory.join(', ')} |`,
    );
  }
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
  await client.query('truncate sluice.events, sluice.event_ids, bench.events');
  await client.query('checkpoint');
}

async function copyByHand(client: pg.Client, path: string): Promise<number> {
  const startedAt = performance.now();
  await pipeline(
    createReadStream(path, { highWaterMark: 256 * 1024 }),
    client.query(copyFrom('copy bench.events from stdin')),
  );
  return (performance.now() - startedAt) / 1_000;
}

/** Of the ratios. */
function median(measured: readonly Measured[]): Measured {
  const sorted = [...measured].sort((a, b) => a.byHand / a.seconds - b.byHand / b.seconds);
  return sorted[Math.floor(sorted.length / 2)] ?? { byHand: Number.NaN, seconds: Number.NaN };
}
