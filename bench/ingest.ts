/**
 * npm run bench:ingest [-- --seconds N] [--batches] [--memory]
 *
 * Posts single records to the real service and, on the same PostgreSQL, to two baselines: (a) the same server that
 * answers without committing anything, (b) the same server with one INSERT for each record; then batches of events, beside
 * COPY of ready rows and single events. --batches: only those. --memory instead watches the service's memory under load
 * (default: 300 s).
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { compareBatches } from './ingest-batches.ts';
import { checkStored, type Measured, measure, type Run, type Server } from './ingest-run.ts';
import { startBaseline, targetOf } from './ingest-servers.ts';
import { watchMemory } from './memory.ts';
import { postRecords } from './post-records.ts';
import { countStored, type RecordKind, storeUsers, users } from './records.ts';
import { apiKey, startService } from './service.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string' },
    batches: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
  },
});
const warmUpSeconds = 3;

/** Baselines first, for the ratios. */
const cases: readonly { readonly name: string; readonly kind: RecordKind; readonly server: Server }[] = [
  { name: 'track (a) 202 at once', kind: 'track', server: 'at-once' },
  { name: 'track (b) one INSERT each', kind: 'track', server: 'one-by-one' },
  { name: '**track**', kind: 'track', server: 'sluice' },
  { name: 'identify (a) 202 at once', kind: 'identify', server: 'at-once' },
  { name: '**identify**', kind: 'identify', server: 'sluice' },
];

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const loadBefore = loadavg()[0]?.toFixed(1);
const service = await startService({ WORKERS: '0' });
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  await client.query('select sluice.ensure_events_partition(now())');
  await storeUsers(client);
  print(
    `${users} users stored; ${process.version}, ${await version()}, sender and servers on ${availableParallelism()} cores that had a load of ${loadBefore} before\n`,
  );
  if (flags.memory) await memory(Number(flags.seconds ?? 300));
  else {
    const seconds = Number(flags.seconds ?? 10);
    if (!flags.batches) await compare(seconds);
    print(`\n${(await compareBatches(client, service, seconds)).join('\n')}`);
  }
} finally {
  await client.end();
  await service.stop();
}

async function compare(seconds: number): Promise<void> {
  print(
    '| case | connections | req/s | p50, ms | p99, ms | max, ms | ÷ (a) | ÷ (b) | not 202 | rows stored / answered 202 / sent | records per window | server CPU, µs per record | peak RSS, MiB |',
  );
  print('|---|---|---|---|---|---|---|---|---|---|---|---|---|');
  const results = new Map<string, Measured>();
  for (const { name, kind, server } of cases) {
    const target = server === 'sluice' ? targetOf(service) : await startBaseline(server, service);
    try {
      for (const connections of [100, 1]) {
        const measured = await measure(client, target, { kind, server, connections, warmUpSeconds, seconds });
        results.set(`${kind} ${server} ${connections}`, measured);
        print(
          `| ${name} | ${connections} | ${cells(measured, ratios(results, kind, server, connections))} |`,
        );
      }
    } finally {
      await target.stop();
    }
  }
  printTargets(results);
}

function ratios(
  results: ReadonlyMap<string, Measured>,
  kind: RecordKind,
  server: Server,
  connections: number,
): string[] {
  return ['at-once', 'one-by-one'].map((baseline) => {
    const [base, own] = [baseline, server].map((each) => results.get(`${kind} ${each} ${connections}`));
    if (server !== 'sluice' || base === undefined || own === undefined) return '';
    return (own.perSecond / base.perSecond).toFixed(2);
  });
}

function cells(measured: Measured, ratios: readonly string[]): string {
  const { perSecond, p50, p99, max, failed, stored, accepted, sent } = measured;
  return [
    Math.round(perSecond),
    ...[p50, p99, max].map((ms) => ms.toFixed(1)),
    ...ratios,
    failed,
    `${stored} / ${accepted} / ${sent}`,
    measured.perWindow,
    measured.cpuMicrosPerRecord,
    measured.peakMib,
  ].join(' | ');
}

function printTargets(results: ReadonlyMap<string, Measured>): void {
  const of = (name: string): Measured => results.get(name) as Measured;
  const track = of('track sluice 100');
  const target = (what: string, value: number, limit: number, atMost = false): void => {
    const isMet = atMost ? value <= limit : value >= limit;
    print(`${isMet ? 'met   ' : 'MISSED'} ${what} ${atMost ? '≤' : '≥'} ${limit}: ${value.toFixed(2)}`);
  };
  print('');
  target('track ÷ (a)', track.perSecond / of('track at-once 100').perSecond, 0.35);
  target('track ÷ (b)', track.perSecond / of('track one-by-one 100').perSecond, 2.5);
  target('p99 of track at 100 connections, ms', track.p99, 50, true);
  target('p50 of track at 1 connection, ms', of('track sluice 1').p50, 5, true);
  target('identify ÷ (a)', of('identify sluice 100').perSecond / of('identify at-once 100').perSecond, 0.2);
}

async function memory(seconds: number): Promise<void> {
  const run: Run = { kind: 'track', server: 'sluice', connections: 100, warmUpSeconds, seconds };
  const watch = watchMemory(service.pid);
  const posted = await postRecords({ ...run, url: service.address, apiKey, run: 'memory' });
  const { startMib, endMib, peakMib, mibPerMinute } = watch();
  checkStored(run, posted, await countStored(client, 'track', 'memory'));
  print(`${posted.accepted} events in ${seconds} s, ${Math.round(posted.perSecond)} per second`);
  print(
    `RSS after the warm-up ${startMib} MiB, at the end ${endMib}, peak ${peakMib}; slope ${mibPerMinute} MiB per minute`,
  );
}

async function version(): Promise<string> {
  const { rows } = await client.query<{ v: string }>(
    "select 'PostgreSQL ' || current_setting('server_version') as v",
  );
  return rows[0]?.v ?? '';
}
