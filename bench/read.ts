/**
 * npm run bench:read [-- --users N] [--events N] [--seconds N]
 * npm run bench:read -- --lists [--users 200000]
 *
 * Reads users, companies, events and lists from the real service over 64 connections. Alternates
 * these reads with reading a user from a bare route that runs one query by primary key. With
 * `--lists`, reads each list of the console to its last page, with 10 000 jobs and 1 000 segments.
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
import { median } from './figures.ts';
import { apiKey, startService } from './service.ts';
import { writeUsersFile } from './users-file.ts';

const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '1000000' },
    events: { type: 'string', default: '10000000' },
    seconds: { type: 'string', default: '10' },
    lists: { type: 'boolean', default: false },
  },
});
const users = Number(flags.users);
const events = Number(flags.events);
const duration = Number(flags.seconds);
/** Number of events that one statement adds. */
const eventsAtATime = 1_000_000;
const heavyEvents = 100_000;
const heavyUser = 'heavy';
const connections = 64;
/** The service keeps at most this number of pages per environment in memory for slow callers. */
const pageConnections = 8;
const segmentsPath = '/api/v1/analytics/exports/lookups/segments?limit=200';

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-files-'));
const service = await startService({ WORKERS: '1' });
const client = new pg.Client({ connectionString: service.databaseUrl });
await client.connect();
try {
  await storeUsers();
  await (flags.lists ? walkLists() : measureAll());
} finally {
  await client.end();
  await service.stop();
  await rm(folder, { recursive: true, force: true });
}

async function storeUsers(): Promise<void> {
  const path = join(folder, 'users.csv');
  await writeUsersFile(path, { rows: users, format: 'csv' });
  await service.load(path, 'text/csv');
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

async function walkLists(): Promise<void> {
  const jobs = 10_000;
  const segments = 1_000;
  await client.query(
    `insert into sluice.loads (job_id, environment_id, type, entity, status, filename, file_size, sha256, file_ref,
      total_rows, chunk_count, ended_at, failure_code)
    select gen_random_uuid(), 1, 'import', 'users', 'failed', 'users.ndjson', 1, sha256(''), 'gone', 1, 1, now(), 'x'
    from generate_series(2, $1)`,
    [jobs],
  );
  for (let n = 0; n < segments; n++) {
    const body = { key: `s${n}`, title: `Segment ${n}`, definition: { property: 'plan', equals: 'free' } };
    await service.fetch('/v1/segments', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }
  await client.query('vacuum (analyze) sluice.loads');
  const { rows } = await client.query<{ id: string; email: string }>(
    `select user_id as id, metadata ->> 'email' as email from sluice.users order by user_id desc offset 100 limit 1`,
  );
  const { id = '', email = '' } = rows[0] ?? {};
  const searchPath = (text: string): string => `/v1/users?search=${encodeURIComponent(text)}`;
  const lists: Readonly<Record<string, string>> = {
    'jobs, as the console lists them': '/v1/background_jobs',
    'jobs by a part of the name': '/v1/background_jobs?filename=users',
    segments: segmentsPath,
    users: '/v1/users',
    'users: a part of an id that one has': searchPath(id.slice(4)),
    'users: a part of an e-mail address that one has': searchPath(email.toUpperCase()),
    'users: a name that a tenth has': searchPath('lovelace'),
    'users: what all have': searchPath('example.com'),
    'users: what nobody has': searchPath('zzzz'),
  };
  print(`${users} users, ${jobs} jobs, ${segments} segments; ${process.version}\n`);
  print('| list | reached | pages | first page, ms, median of 11 | the slowest of all pages |');
  print('|---|---|---|---|---|');
  for (const [name, path] of Object.entries(lists)) {
    const first: number[] = [];
    for (let turn = 0; turn < 11; turn++) first.push((await readPage(path)).ms);
    let reached = 0;
    let pages = 0;
    let slowest = 0;
    let next: string | null = path;
    while (next !== null) {
      const page = await readPage(next);
      reached += page.items;
      pages++;
      next = page.next;
      slowest = Math.max(slowest, page.ms);
    }
    print(`| ${name} | ${reached} | ${pages} | ${Math.round(median(first))} | ${Math.round(slowest)} |`);
  }
}

async function readPage(path: string) {
  const startedAt = performance.now();
  const answer = await service.fetch(path);
  const body = (await answer.json()) as
    | { data: unknown[]; metadata: { cursor: { after: string } } }
    | unknown[];
  const ms = performance.now() - startedAt;
  const link = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
  if (Array.isArray(body)) return { items: body.length, next: link ?? null, ms };
  const { after } = body.metadata.cursor;
  const rest = path.includes('/lookups/') && after !== '' ? `${segmentsPath}&after_cursor=${after}` : null;
  return { items: body.data.length, next: link ?? rest, ms };
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
