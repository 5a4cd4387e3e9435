import { readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { writeEventsFile } from './events-file.ts';
import { cpuSince, megabytes, readCpu } from './figures.ts';
import { nodeProcesses, type Service } from './service.ts';
import { writeUsersFile } from './users-file.ts';

export interface LargeLoad {
  readonly what: 'users' | 'events';
  readonly rows: number;
}

/** Number of parts of a load. The speeds of the first and the last part are compared. */
const tenths = 10;

/**
 * Loads many new records into empty tables. Compares the speed at start and end, samples the
 * memory, and reports a row's processor time, disk and WAL.
 */
export async function measureLarge(
  service: Service,
  client: pg.Client,
  folder: string,
  { what, rows }: LargeLoad,
  print: (line: string) => unknown,
): Promise<void> {
  const path = join(folder, 'large.csv');
  if (what === 'users') await writeUsersFile(path, { rows, format: 'csv' });
  else await writeEventsFile(path, rows, 'csv');
  const { size } = await stat(path);
  await client.query('checkpoint');
  const cpu = readCpu(service);
  const wal = await walPosition(client);
  const memories = nodeProcesses(service.pid).map(({ name, pid }) => ({ name, end: watchMemory(pid) }));
  const { job, seconds } = await service.load(path, 'text/csv');
  print(`${rows} ${what}, ${megabytes(size)}: ${seconds.toFixed(1)} s, ${perSecond(rows, seconds)}\n`);
  const used = Object.entries(cpuSince(service, cpu));
  const share = used.map(([part, spent]) => `${part} ${((spent * 1e6) / rows).toFixed(2)}`);
  print(`- processor, µs a row: ${share.join(', ')}`);
  print(`- WAL, bytes a row: ${Math.round(((await walPosition(client)) - wal) / rows)}`);
  await printDisk(client, what, rows, print);
  await printPace(client, job.job_id, print);
  for (const { name, end } of memories) {
    const { startMib, endMib, peakMib, mibPerMinute } = end();
    print(`- RSS of ${name}, MiB: ${startMib} → ${endMib}, peak ${peakMib}, ${mibPerMinute} a minute`);
  }
}

async function walPosition(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes",
  );
  return Number(rows[0]?.bytes);
}

async function printDisk(
  client: pg.Client,
  what: LargeLoad['what'],
  rows: number,
  print: (line: string) => unknown,
): Promise<void> {
  const { rows: sizes } = await client.query<{ table: string; rows: string; indexes: string }>(
    `select c.relname as table, sum(pg_table_size(coalesce(p.relid, c.oid))) as rows,
      sum(pg_indexes_size(coalesce(p.relid, c.oid))) as indexes
    from pg_class c
    left join lateral pg_partition_tree(c.oid) p on true
    where c.relkind in ('r', 'p') and c.relnamespace = 'sluice'::regnamespace and c.relname = any($1)
    group by c.relname`,
    [what === 'users' ? ['users', 'load_chunk_keys'] : ['events', 'event_ids', 'load_chunk_keys']],
  );
  for (const { table, rows: bytes, indexes } of sizes) {
    const perRow = (bytes: string): string => (Number(bytes) / rows).toFixed(0);
    print(`- disk, bytes a row: ${table} ${perRow(bytes)}, its indexes ${perRow(indexes)}`);
  }
}

/**
 * Prints the rows per second in each tenth of the load, computed from the times at which its chunks
 * ended.
 */
async function printPace(client: pg.Client, jobId: string, print: (line: string) => unknown): Promise<void> {
  const { rows: chunks } = await client.query<{ seconds: number; rows: number }>(
    `select extract(epoch from c.done_at - l.started_at)::float8 as seconds, c.row_count as rows
    from sluice.loads l
    join sluice.load_chunks c using (load_id)
    where l.job_id = $1
    order by c.done_at`,
    [jobId],
  );
  const each = Math.ceil(chunks.length / tenths);
  const paces: number[] = [];
  let from = 0;
  for (let at = 0; at < chunks.length; at += each) {
    const part = chunks.slice(at, at + each);
    const until = part.at(-1)?.seconds ?? from;
    paces.push(part.reduce((sum, { rows }) => sum + rows, 0) / (until - from));
    from = until;
  }
  const [first = Number.NaN, last = Number.NaN] = [paces.at(0), paces.at(-1)];
  print(`- rows/s by tenth: ${paces.map((pace) => Math.round(pace)).join(', ')}`);
  print(`- last tenth ÷ first: ${(last / first).toFixed(2)}`);
}

function perSecond(rows: number, seconds: number): string {
  return `${Math.round(rows / seconds)} rows/s`;
}

interface MemoryOverTime {
  readonly startMib: number;
  readonly endMib: number;
  readonly peakMib: number;
  /** Slope of a line fitted to the samples. */
  readonly mibPerMinute: string;
}

/**
 * Share of the samples that are ignored, because the heap still grows to its usual size at the
 * start.
 */
const warmUpShare = 0.2;

/** Samples every second until the returned function is called. Linux only. */
function watchMemory(pid: number): () => MemoryOverTime {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMib(pid)), 1_000);
  return () => {
    clearInterval(timer);
    const steady = samples.slice(Math.floor(samples.length * warmUpShare));
    return {
      startMib: Math.round(steady.at(0) ?? Number.NaN),
      endMib: Math.round(steady.at(-1) ?? Number.NaN),
      peakMib: Math.round(Math.max(...samples)),
      mibPerMinute: (slope(steady) * 60).toFixed(2),
    };
  };
}

function residentMib(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

/** Slope of the straight line that fits the values best (least squares), per sample. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let products = 0;
  let squares = 0;
  for (const [at, value] of values.entries()) {
    products += (at - middle) * (value - mean);
    squares += (at - middle) ** 2;
  }
  return products / squares;
}
