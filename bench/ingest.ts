/**
 * npm run bench:ingest [-- --seconds N] [--singles] [--batches]
 *
 * Posts single records alternately to the real service and to bare Fastify, which either writes
 * nothing or runs one INSERT per record (`ingest-singles.ts`). Then compares batches of events with
 * COPY of rows in stored form and with single events. --singles or --batches runs only that part.
 * The data is in TMPDIR. To exclude the cost of the disk, set TMPDIR to a tmpfs.
 */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { compareBatches } from './ingest-batches.ts';
import { compareSingles } from './ingest-singles.ts';
import { storeUsers, users } from './records.ts';
import { hasWrk } from './send-records.ts';
import { startService } from './service.ts';

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    singles: { type: 'boolean', default: false },
    batches: { type: 'boolean', default: false },
  },
});

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
  const seconds = Number(flags.seconds);
  if (!flags.batches) await compareSingles(client, service, seconds, print);
  if (!flags.singles) print(`\n${(await compareBatches(client, service, seconds)).join('\n')}`);
} finally {
  await client.end();
  await service.stop();
}

async function version(): Promise<string> {
  const { rows } = await client.query<{ v: string }>(
    "select 'PostgreSQL ' || current_setting('server_version') as v",
  );
  return rows[0]?.v ?? '';
}
