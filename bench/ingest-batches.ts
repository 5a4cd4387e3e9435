import { once } from 'node:events';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { itemsOf, type Measured, measure, type Run } from './ingest-run.ts';
import { targetOf } from './ingest-servers.ts';
import { eventRows } from './records.ts';
import type { Service } from './service.ts';

const warmUpSeconds = 3;
const rowsPerCopy = 10_000;

/** Compares batches of events with single events, and with COPY of rows in stored form. */
export async function compareBatches(
  client: pg.Client,
  service: Service,
  seconds: number,
): Promise<string[]> {
  const copyRate = await copyRows(client, seconds);
  const run = (kind: Run['kind'], connections: number): Promise<Measured> =>
    measure(client, service, targetOf(service), {
      kind,
      server: 'sluice',
      connections,
      warmUpSeconds,
      seconds,
    });
  const track = await run('track', 64);
  const lines = [
    '| case | connections | records/s | p50, ms | p99, ms | ÷ COPY | ÷ track at 64 | server CPU, µs per record | peak RSS, MiB |',
    '|---|---|---|---|---|---|---|---|---|',
    `| COPY of ready rows | 1 | ${Math.round(copyRate)} | | | | | | |`,
    row('track', 64, track, copyRate, track),
  ];
  for (const connections of [1, 4, 16]) {
    lines.push(
      row(
        `**batches of ${itemsOf('batch')}**`,
        connections,
        await run('batch', connections),
        copyRate,
        track,
      ),
    );
  }
  return lines;
}

function row(
  name: string,
  connections: number,
  measured: Measured,
  copyRate: number,
  track: Measured,
): string {
  const perSecond = measured.perSecond * itemsOf(name === 'track' ? 'track' : 'batch');
  const { p50, p99, cpuMicrosPerRecord, peakMib } = measured;
  const ratios = [perSecond / copyRate, perSecond / track.perSecond].map((ratio) => ratio.toFixed(2));
  const cells = [name, connections, Math.round(perSecond), p50.toFixed(1), p99.toFixed(1), ...ratios];
  return `| ${[...cells, cpuMicrosPerRecord, peakMib].join(' | ')} |`;
}

/** Rows per second on one connection. The rows are created before the measurement. */
async function copyRows(client: pg.Client, seconds: number): Promise<number> {
  const { rows } = await client.query<{ id: number }>(
    "select environment_id as id from sluice.environments where name = 'default'",
  );
  await client.query('truncate sluice.events');
  await client.query('checkpoint');
  let copiedRows = 0;
  let milliseconds = 0;
  while (milliseconds < seconds * 1_000) {
    const text = eventRows(rows[0]?.id ?? 0, 'copy', copiedRows, rowsPerCopy);
    const startedAt = performance.now();
    const copy = client.query(
      copyFrom(
        'copy sluice.events (environment_id, event_id, event_name, user_id, company_id, source, inserted_at, metadata) from stdin',
      ),
    );
    copy.end(text);
    await once(copy, 'finish');
    milliseconds += performance.now() - startedAt;
    copiedRows += rowsPerCopy;
  }
  return copiedRows / (milliseconds / 1_000);
}
