/**
 * npm run bench:read [-- --users N] [--events N] [--seconds N]
 *
 * Reads users, companies, events and lists back from the real service at 64 connections and, beside it, a user from a bare
 * route with a bare query by primary key.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import pg from 'pg';
import { addEvents, days } from './export-data.ts';
import { apiKey, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '10000000' },
    seconds: { type: 'string', default: '10' },
  },
});
const [users, events, duration] = [Number(flags.users), Number(flags.events), Number(flags.seconds)];
/** Events that one statement adds, and those of the user who has the most. */
const eventsAtATime = 1_000_000;
const heavyEvents = 100_000;
const heavyUser = 'heavy';
const connections = 64;
/** More pages of an environment are not held for callers that may not take them. */
const pageConnections = 8;

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-files-'));
const service = await startService({ WORKERS: '1' });
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  await storeUsers();
  await measureAll();
} finally {
  await client.end();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}

async function storeUsers(): Promise<void> {
  const path = join(folder, 'users.csv');
  await writeUsersFile(path, { rows: users, format: 'csv' });
  await service.load(path, 'text/csv');
  // A thousandth of them have what the others have not.
  await client.query(
    `update sluice.users set metadata = metadata || '{"beta": true}' where hashtext(user_id) % 1000 = 0`,
  );
  await client.query('vacuum (analyze) sluice.users, sluice.companies');
}

async function measureAll(): Promise<void> {
  for (let first = 0; first < events; first += eventsAtATime) {
    await addEvents(client, first, Math.min(eventsAtATime, events - first));
  }
  await client.query(
    `insert into sluice.events (environment_id, event_id, event_name, user_id, source, inserted_at)
    select 1, 'heavy_' || n, case when n % 1000 = 0 then 'rare' else 'page_opened' end, $1, 'backend-http',
      now() - n * interval '${days} days' / $2::int
    from generate_series(1, $2::int) as n`,
    [heavyUser, heavyEvents],
  );
  await client.query('vacuum (analyze) sluice.events');
  await client.query('checkpoint');
  const { rows } = await client.query<{ v: string }>("select current_setting('server_version') as v");
  print(`${users} users, ${events} events over ${days} days; ${process.version}, PostgreSQL ${rows[0]?.v}\n`);
  const ids = await sample('users', 'user_id');
  await measureProfiles(ids);
  await measureLists(ids);
}

async function sample(table: 'users' | 'companies', column: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select ${column} as id from sluice.${table} order by hashtext(${column}) limit 5000`,
  );
  return rows.map(({ id }) => encodeURIComponent(id));
}

async function measureProfiles(ids: readonly string[]): Promise<void> {
  print('| GET | connections | req/s | p50, ms | p99, ms | max, ms | not 200 |');
  print('|---|---|---|---|---|---|---|');
  const baseline = fork(fileURLToPath(new URL('./read-baseline.js', import.meta.url)), [], {
    env: { ...process.env, DATABASE_URL: service.databaseUrl },
  });
  const [address] = (await once(baseline, 'message')) as [string];
  const path = (id: string): string => `/v1/users/${id}`;
  await measure('bare route, bare query', address, connections, ids, path);
  await measure('**a user**', service.address, connections, ids, path);
  await measure('bare route, bare query, again', address, connections, ids, path);
  await measure('**a user**, again', service.address, connections, ids, path);
  baseline.disconnect();
  const companies = await sample('companies', 'company_id');
  await measure('a company', service.address, connections, companies, (id) => `/v1/companies/${id}`);
}

async function measureLists(ids: readonly string[]): Promise<void> {
  const companies = await sample('companies', 'company_id');
  const all: Readonly<Record<string, readonly [readonly string[], (id: string) => string]>> = {
    'events of a user': [ids, (id) => `/v1/users/${id}/events`],
    'events of a user, a month': [ids, (id) => `/v1/users/${id}/events?from=${monthAgo()}`],
    [`events of a user with ${heavyEvents}`]: [[heavyUser], (id) => `/v1/users/${id}/events`],
    '… of a rare name': [[heavyUser], (id) => `/v1/users/${id}/events?event_name=rare`],
    'users of a company': [companies, (id) => `/v1/users?company_id=${id}`],
    'users, a page': [ids, () => '/v1/users'],
    'users by a property that a quarter has': [ids, () => '/v1/users?property=plan:free'],
    'users by a property that a thousandth has': [ids, () => '/v1/users?property=beta:true'],
    'users by a property that nobody has': [ids, () => '/v1/users?property=plan:none'],
  };
  for (const [name, [over, path]] of Object.entries(all)) {
    await measure(name, service.address, pageConnections, over, path);
  }
}

function monthAgo(): string {
  return new Date(Date.now() - 30 * 86_400_000).toISOString().slice(0, 10);
}

async function measure(
  name: string,
  url: string,
  connections: number,
  ids: readonly string[],
  path: (id: string) => string,
): Promise<void> {
  const run = async (seconds: number) =>
    autocannon({
      url,
      connections,
      duration: seconds,
      headers: { authorization: `Token ${apiKey}` },
      requests: [
        {
          method: 'GET',
          setupRequest: (request) => ({
            ...request,
            path: path(ids[Math.floor(Math.random() * ids.length)] ?? ''),
          }),
        },
      ],
    });
  await run(2);
  const { requests, latency, non2xx, errors } = await run(duration);
  print(
    `| ${name} | ${connections} | ${Math.round(requests.average)} | ${latency.p50} | ${latency.p99} | ${latency.max} | ${non2xx + errors} |`,
  );
}
