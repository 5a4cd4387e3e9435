/**
 * npm run bench:ingest [-- --seconds N] [--singles] [--batches] [--memory] [--traces]
 *
 * Posts single records to the real service and, in turn, to bare Fastify, which answers without writing anything or with one
 * INSERT for each record (`ingest-singles.ts`); then batches of events, beside COPY of ready rows and single events.
 * --singles, --batches: only those. --memory instead watches the service's memory under load (default: 300 s), --traces
 * compares services without and with traces. The data is in TMPDIR: choose a tmpfs to leave the disk out of it.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { compareBatches } from './ingest-batches.ts';
import { checkStored, type Run } from './ingest-run.ts';
import { compareSingles } from './ingest-singles.ts';
import { compareTraces } from './ingest-traces.ts';
import { watchMemory } from './memory.ts';
import { postRecords } from './post-records.ts';
import { countStored, storeUsers, users } from './records.ts';
import { hasWrk } from './send-records.ts';
import { apiKey, startService } from './service.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string' },
    singles: { type: 'boolean', default: false },
    batches: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    traces: { type: 'boolean', default: false },
  },
});
const warmUpSeconds = 3;

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const loadBefore = loadavg()[0]?.toFixed(1);
const service = await startService({ WORKERS: '0' });
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  await client.query('select sluice.ensure_events_partition(now())');
  await storeUsers(client);
  print(
    `${users} users stored; ${process.version}, ${await version()}, sender (${hasWrk ? 'wrk -t1' : 'autocannon'}) and servers on ${availableParallelism()} cores that had a load of ${loadBefore} before\n`,
  );
  if (flags.traces) await compareTraces(Number(flags.seconds ?? 3), print);
  else if (flags.memory) await memory(Number(flags.seconds ?? 300));
  else {
    const seconds = Number(flags.seconds ?? 5);
    if (!flags.batches) await compareSingles(client, service, seconds, print);
    if (!flags.singles) print(`\n${(await compareBatches(client, service, seconds)).join('\n')}`);
  }
} finally {
  await client.end();
  await service.stop();
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
