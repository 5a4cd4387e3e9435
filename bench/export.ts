/**
 * npm run bench:export [-- --users N] [--events N] [--scale]
 *
 * Exports users, companies and events through the real service and, beside it, runs the same queries as one would by
 * hand: `COPY (…) TO STDOUT`, read by a client that throws the rows away. Then exports of a company and of a day, with
 * what Postgres read for them. `--scale` exports five times the events, for the memory.
 */
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { type Body, gzipSeconds, openBaseline } from './export-baseline.ts';
import { addEvents, days } from './export-data.ts';
import { exportOnce, type Finished } from './export-run.ts';
import { peaks, resetPeaks, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '2000000' },
    scale: { type: 'boolean', default: false },
  },
});
const [users, events] = [Number(flags.users), Number(flags.events)];

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(0);
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-files-'));
const service = await startService();
const client = new pg.Client({ connectionString: service.databaseUrl });
const baseline = await openBaseline(service.databaseUrl);
await client.connect();
try {
  await fill();
  await compare();
  await packed();
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

/** Each once without looking, for both to find the tables in memory. */
async function compare(): Promise<void> {
  await baseline.drain({ compression: 'none' });
  print('| export of everything | seconds | rows/s | MB | by hand, s | ratio | peak RSS, MiB |');
  print('|---|---|---|---|---|---|---|');
  for (const format of ['ndjson', 'csv']) {
    const body = { format, compression: 'none' };
    const byHand = await baseline.drain(body);
    const { seconds, row } = await run(body);
    print(
      `| ${format} | ${row} | ${byHand.seconds.toFixed(2)} | ${(seconds / byHand.seconds).toFixed(2)} | ${memory()} |`,
    );
  }
}

async function packed(): Promise<void> {
  const plain = await exportOnce(service, { event_type: ['events'], compression: 'none' });
  const path = join(folder, 'events.ndjson');
  const file = plain.files.find(({ filename }) => filename === 'events.ndjson');
  const response = await fetch(file?.url ?? '');
  await pipeline(Readable.fromWeb(response.body as never), createWriteStream(path));
  const gzip = await gzipSeconds(path);
  const rate = megabytes((file?.bytes ?? 0) / gzip);
  print(
    `\ngzip -6 of events.ndjson (${megabytes(file?.bytes ?? 0)} MB): ${gzip.toFixed(1)} s, ${rate} MB/s\n`,
  );
  print('| packed export of everything | seconds | rows/s | MB | peak RSS, MiB |');
  print('|---|---|---|---|---|');
  for (const body of [{}, { format: 'csv' }, { format: 'parquet' }, { format: 'avro' }] as Body[]) {
    const { row } = await run(body);
    print(
      `| ${body['format'] ?? 'ndjson'}${body['format'] === 'parquet' || body['format'] === 'avro' ? '' : ', gzip'} | ${row} | ${memory()} |`,
    );
  }
}

/** What is filtered costs what it returns. */
async function filtered(): Promise<void> {
  const day = new Date(Date.now() - 30 * 86_400_000).toISOString().slice(0, 10);
  const cases: Readonly<Record<string, Body>> = {
    'one company of 5 000': { company_id: ['cmp_42'] },
    [`events of one day of ${days}`]: { event_type: ['events'], from: day, to: day },
  };
  print('\n| filtered export | seconds | rows/s | MB |');
  print('|---|---|---|---|');
  for (const [name, body] of Object.entries(cases)) print(`| ${name} | ${(await run(body)).row} |`);
  for (const [name, body] of Object.entries(cases)) {
    for (const plan of await baseline.explain(body)) print(`\n${name}:\n${plan}`);
  }
}

/** Memory must not grow with the data. */
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
