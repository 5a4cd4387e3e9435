/**
 * npm run bench:export [-- --users N] [--events N] [--turns N] [--scale]
 *
 * Exports users, companies and events through the real service. Alternates these exports with the
 * same queries run by hand: `COPY (…) TO STDOUT`, with a client that discards the rows. Then
 * exports the data of one company and of one date, and prints PostgreSQL's query plans. `--scale`
 * exports five times as many events, to measure memory.
 */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type Body, exportOnce, type Finished, gzipSeconds, openBaseline } from './export-baseline.ts';
import { addEvents, days } from './export-data.ts';
import { least, median, megabytes } from './figures.ts';
import { peaks, resetPeaks, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '2000000' },
    turns: { type: 'string', default: '3' },
    scale: { type: 'boolean', default: false },
  },
});
const users = Number(flags.users);
const events = Number(flags.events);
const turns = Number(flags.turns);

/** If `byHand` is set, a turn also runs the same queries by hand. */
const ways: readonly { readonly name: string; readonly body: Body; readonly byHand: boolean }[] = [
  { name: 'NDJSON', body: { format: 'ndjson', compression: 'none' }, byHand: true },
  { name: 'CSV', body: { format: 'csv', compression: 'none' }, byHand: true },
  { name: 'NDJSON, gzip', body: {}, byHand: false },
  { name: 'CSV, gzip', body: { format: 'csv' }, byHand: false },
  { name: 'Parquet', body: { format: 'parquet' }, byHand: false },
];

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-files-'));
const service = await startService();
const client = new pg.Client({ connectionString: service.databaseUrl });
const baseline = await openBaseline(service.databaseUrl);
await client.connect();
try {
  await fill();
  await compare();
  await gzipAlone();
  await filtered();
  if (flags.scale) await scale();
} finally {
  await client.end();
  await baseline.close();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}

async function fill(): Promise<void> {
  const path = join(folder, 'users.csv');
  await writeUsersFile(path, { rows: users, format: 'csv' });
  await service.load(path, 'text/csv');
  await addEvents(client, 0, events);
  await client.query('vacuum (analyze) sluice.users, sluice.companies');
  await client.query('checkpoint');
  const { rows } = await client.query<{ v: string }>("select current_setting('server_version') as v");
  print(`${users} users, ${events} events over ${days} days; ${process.version}, PostgreSQL ${rows[0]?.v}\n`);
}

/** Reads all tables once before the first turn, so that they are in memory. */
async function compare(): Promise<void> {
  await baseline.drain({ compression: 'none' });
  const measured = ways.map((way) => ({ ...way, seconds: [] as number[], hand: [] as number[], shown: '' }));
  for (let turn = 1; turn <= turns; turn++) {
    for (const way of measured) {
      if (way.byHand) way.hand.push((await baseline.drain(way.body)).seconds);
      const { seconds, rows, bytes } = await run(way.body);
      way.seconds.push(seconds);
      way.shown = `${Math.round(rows / least(way.seconds))} | ${megabytes(bytes)}`;
      way.shown += ` | ${memory()}`;
    }
  }
  const packed = measured.find(({ name }) => name === 'NDJSON, gzip')?.seconds ?? [];
  print(`In each turn (${turns}) one after the other; least / median.\n`);
  print(
    '| export of everything | seconds | rows/s | MB | peak RSS, MiB | by hand, s | ÷ by hand | ÷ NDJSON, gzip |',
  );
  print('|---|---|---|---|---|---|---|---|');
  for (const { name, seconds, hand, shown } of measured)
    print(
      `| ${name} | ${both(seconds)} | ${shown} | ${both(hand)} | ${both(ratios(seconds, hand))} | ${both(ratios(seconds, packed))} |`,
    );
}

function ratios(seconds: readonly number[], others: readonly number[]): number[] {
  return others.map((other, turn) => (seconds[turn] ?? Number.NaN) / other);
}

function both(values: readonly number[]): string {
  return values.length === 0 ? '' : `${least(values).toFixed(2)} / ${median(values).toFixed(2)}`;
}

async function gzipAlone(): Promise<void> {
  const plain = await exportOnce(service, { event_type: ['events'], compression: 'none' });
  const path = join(folder, 'events.ndjson');
  const file = plain.files.find(({ filename }) => filename === 'events.ndjson');
  const response = await fetch(file?.url ?? '');
  await pipeline(Readable.fromWeb(response.body as never), createWriteStream(path));
  const gzip = await gzipSeconds(path);
  const bytes = file?.bytes ?? 0;
  print(
    `\ngzip -6 of events.ndjson (${megabytes(bytes)}): ${gzip.toFixed(1)} s, ${megabytes(bytes / gzip)}/s`,
  );
}

/** The cost of filters should depend only on the size of the result. */
async function filtered(): Promise<void> {
  const day = new Date(Date.now() - 30 * 86_400_000).toISOString().slice(0, 10);
  const cases: Readonly<Record<string, Body>> = {
    'one company of 5 000': { company_id: ['cmp_42'] },
    [`events of one day of ${days}`]: { event_type: ['events'], from: day, to: day },
    ...(await increments()),
  };
  print('\n| filtered export | seconds | rows/s | MB |');
  print('|---|---|---|---|');
  for (const [name, body] of Object.entries(cases)) print(`| ${name} | ${(await run(body)).row} |`);
  for (const [name, body] of Object.entries(cases)) {
    for (const plan of await baseline.explain(body)) print(`\n${name}:\n${plan}`);
  }
}

/**
 * Changes 1 000 users spread over the table, and adds 1 000 events. Returns the requests that
 * export these changes.
 */
async function increments(): Promise<Readonly<Record<string, Body>>> {
  const { rows } = await client.query<{ since: string }>('select sluice.current_cursor() as since');
  const body: Body = { since: rows[0]?.since };
  await client.query(`update sluice.users set metadata = metadata || '{"mark": 1}'
    where user_id in (select user_id from sluice.users order by hashtext(user_id) limit 1000)`);
  await client.query(`insert into sluice.events (inserted_at, environment_id, event_id, event_name, user_id, source, metadata)
    select inserted_at, environment_id, event_id || '+', event_name, user_id, source, metadata
    from sluice.events tablesample system (1) limit 1000`);
  return {
    'increment of 1 000 users and events': body,
    'the same with removals': { ...body, include_removed: true },
  };
}

/** Memory must not grow with the number of events. */
async function scale(): Promise<void> {
  print('\n| events | seconds | rows/s | MB | peak RSS, MiB |');
  print('|---|---|---|---|---|');
  for (const more of [0, events * 4]) {
    if (more > 0) await addEvents(client, events, more);
    const { row } = await run({ event_type: ['events'] });
    print(`| ${events + more} | ${row} | ${memory()} |`);
  }
}

async function run(body: Body): Promise<Finished & { readonly row: string }> {
  await client.query('checkpoint');
  resetPeaks(service.pid);
  const finished = await exportOnce(service, body);
  const { seconds, rows, bytes } = finished;
  return { ...finished, row: `${seconds.toFixed(2)} | ${Math.round(rows / seconds)} | ${megabytes(bytes)}` };
}

function memory(): string {
  return Object.entries(peaks(service.pid))
    .map(([name, mib]) => `${name} ${mib}`)
    .join(', ');
}
