/** The checks of the servers that hold the data and the queue: PostgreSQL and Redis. */

import pg, { type ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { plural } from '../domain/wording.ts';
import type { FileStore } from '../files/file-store.ts';
import { missingKeys } from '../personal/personal-data.ts';
import { readMigrationState, unreleasedAdvice } from '../postgres/migrate.ts';
import { isPooled, pooling } from '../postgres/session.ts';
import { isDiskFull, isMissingTable } from '../postgres/sqlstate.ts';
import { readChangeLog } from '../postgres/stores/change-log.ts';
import { readServer, type ServerFacts } from '../postgres/stores/health.ts';
import { type EventRetention, readEventRetention } from '../postgres/stores/retention.ts';
import { listKeyedEnvironments } from '../postgres/stores/rules.ts';
import { askRedis } from '../queue/redis.ts';
import { type Finding, failed, ok, roomAdvice, runChecks, warning } from './check.ts';
import { checkLake } from './check-lake.ts';
import { isAtLeast } from './check-machine.ts';

const connectMs = 5_000;
const statementMs = 5_000;
const lookMs = 8_000;
/** The store lists a thousand files at a time. */
const listMs = 60_000;

export async function checkPostgres(url: string, config: Config, files: FileStore): Promise<Finding[]> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice doctor',
    connectionTimeoutMillis: connectMs,
    // Ours, and no setting of the session: what that would be without us is looked at.
    query_timeout: statementMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    if (await isPooled(client, url)) return [failed('postgres sessions', pooling.found, pooling.advice)];
    const looks: Readonly<Record<string, () => Promise<Finding[]>>> = {
      'postgres server': () => checkServer(client, config),
      'postgres disk': () => checkSpace(client),
      'postgres clock': () => checkClock(client),
      migrations: () => checkMigrations(client),
      'event retention': () => checkEventRetention(client),
      'change log': () => checkChangeLog(client, config),
      'personal data': () => checkPersonalKeys(client, config),
      lake: () => checkLake(client, files),
    };
    const findings: Finding[] = [];
    const advice = 'The server did not answer this question; its log may tell why.';
    // In sequence, since they share the connection: the clock's answer must not wait behind another's.
    for (const [name, run] of Object.entries(looks))
      findings.push(
        ...(await runChecks([{ name, run, deadlineMs: name === 'lake' ? listMs : lookMs, advice }])),
      );
    return findings;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const oldest = 150_000;

/** Judges what one question tells: version, rights, connections, settings. */
async function checkServer(client: ClientBase, config: Config): Promise<Finding[]> {
  const schemas = config.redisUrl === null ? ['sluice', 'bullmq'] : ['sluice'];
  const server = await readServer(client, schemas, Object.keys(rules));
  const version = `PostgreSQL ${server.version}`;
  const findings =
    server.number >= oldest
      ? [ok('postgres version', version)]
      : [failed('postgres version', version, 'Use PostgreSQL 15 or newer.')];
  if (server.encoding !== 'UTF8') {
    const advice = "Make the database with: create database … encoding 'UTF8' template template0.";
    findings.push(failed('postgres encoding', `${server.encoding}, which cannot hold every text`, advice));
  }
  if (server.readOnly) {
    const found = 'the server takes no writes: it is a replica or read-only';
    findings.push(failed('postgres writes', found, 'Point DATABASE_URL at the primary server.'));
  }
  return [
    ...findings,
    judgePrivileges(server),
    judgeConnections(server, config),
    ...judgeSettings(server.settings),
  ];
}

/** Migrations create the schemas, and change what is in them: that takes their owner. */
function judgePrivileges({ role, mayCreate, foreign, missing }: ServerFacts): Finding {
  const check = 'postgres privileges';
  if (foreign.length > 0) {
    const advice = 'Connect as their owner, or grant this role membership in it.';
    return failed(check, `role ${role} does not own schema ${foreign.join(' and ')}`, advice);
  }
  if (missing === 0) return ok(check, `role ${role} owns its schemas`);
  if (mayCreate) return ok(check, `role ${role} may create what is missing`);
  const advice = `As its owner: grant create on database … to ${role}.`;
  return failed(check, `role ${role} may not create schemas in this database`, advice);
}

/** The connections of `createWatchPool`, and that of `ConnectionMonitor`. */
const watching = 2 + 1;
/** With the queue in PostgreSQL: a pool of two for each of the queues that a process adds to … */
const queues = 2 * 2;
/** … and for each of the queues that a worker takes from one of two, and one that listens. */
const consumers = 2 * 3;
/** A command of a person, with room for its own queues. */
const command = 4 + queues;

type Sizes = Pick<Config, 'redisUrl' | 'poolSize' | 'workers' | 'workerPoolSize'>;

/** Counts the connections that one `sluice start` and a command beside it may open. */
function connectionsWanted({ redisUrl, poolSize, workers, workerPoolSize }: Sizes): number {
  const ofQueue = (count: number): number => (redisUrl === null ? count : 0);
  const serving = poolSize + watching + ofQueue(queues);
  return serving + workers * (workerPoolSize + 1 + ofQueue(queues + consumers)) + command;
}

function judgeConnections({ most, used }: ServerFacts, config: Config): Finding {
  const wanted = connectionsWanted(config);
  const found = `${most} to be had, ${used} used by others; one \`sluice start\` with ${plural(config.workers, 'worker')} may open ${wanted}`;
  if (wanted + used <= most) return ok('postgres connections', found);
  const advice =
    'Raise max_connections, or lower WORKERS, POOL_SIZE or WORKER_POOL_SIZE; count in what other machines run.';
  return warning('postgres connections', found, advice);
}

const isOff = (value: string): boolean => value === 'off';
const isSet = (value: string): boolean => Number(value) > 0;

/** Settings by name: which values harm, in the unit of `pg_settings`, and what to do. */
const rules: Readonly<Record<string, readonly [isWrong: (value: string) => boolean, advice: string]>> = {
  fsync: [isOff, 'A crash of the machine may destroy the database: set fsync = on.'],
  full_page_writes: [isOff, 'A crash of the machine may destroy the database: set full_page_writes = on.'],
  synchronous_commit: [isOff, 'What was answered may be lost in a crash: set synchronous_commit = on.'],
  max_wal_size: [
    (value) => Number(value) < 1_024,
    'Loads of gigabytes would force checkpoint after checkpoint: set max_wal_size = 4GB.',
  ],
  statement_timeout: [
    isSet,
    'Exports and deletions may take minutes in one statement: `alter role … set statement_timeout = 0`.',
  ],
  transaction_timeout: [
    isSet,
    'An export reads in one transaction for as long as it takes: `alter role … set transaction_timeout = 0`.',
  ],
  autovacuum: [isOff, 'Tables that loads update would only ever grow: set autovacuum = on.'],
};

function judgeSettings(settings: ServerFacts['settings']): Finding[] {
  const wrong = Object.entries(rules).flatMap(([name, [isWrong, advice]]) => {
    const row = settings.find((each) => each.name === name);
    if (row === undefined || !isWrong(row.value)) return [];
    return [warning(`postgres ${name}`, `${row.value}${row.unit === null ? '' : ` ${row.unit}`}`, advice)];
  });
  return wrong.length > 0 ? wrong : [ok('postgres settings', 'nothing that harms')];
}

/** More than a page, so that the server has to ask its disk for room. */
const probe = `
  begin;
  create temporary table sluice_doctor_space on commit drop as
    select repeat(n::text, 100) as filler from generate_series(1000, 1999) as n;
  rollback`;

/** Checks that the server has room for a small temporary table: it does not tell how much is free. */
async function checkSpace(client: ClientBase): Promise<Finding[]> {
  const check = 'postgres disk';
  try {
    await client.query(probe);
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    if (isDiskFull(error)) return [failed(check, 'the disk of the database is full', roomAdvice)];
    // It may not make temporary tables, or takes no writes: told by other checks where it matters.
  }
  return [ok(check, 'there is room for a small table')];
}

const mostSkewMs = 2_000;

/** Leases run by the database's clock, links and idempotency by ours too. */
export async function checkClock(client: ClientBase, now: () => number = Date.now): Promise<Finding[]> {
  const before = now();
  const { rows } = await client.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  );
  const after = now();
  // It was read at some moment of the round trip; half of that is what we cannot know.
  const skewMs = (rows[0]?.ms ?? 0) - (before + after) / 2;
  const check = 'postgres clock';
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1);
  const found = `the database's clock is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(skewMs) - (after - before) / 2 <= mostSkewMs) return [ok(check, found)];
  return [warning(check, found, 'Run NTP on both machines.')];
}

async function checkMigrations(client: ClientBase): Promise<Finding[]> {
  const check = 'migrations';
  const { pending, unknown, edited, unreleased } = await readMigrationState(client);
  if (unreleased)
    return [
      failed(check, `not those of this version: ${[...unknown, ...edited].join(', ')}`, unreleasedAdvice),
    ];
  if (unknown.length > 0) {
    const advice = 'Install that version here too, before this program writes to the database.';
    return [failed(check, `a newer sluice has migrated the database: ${unknown.join(', ')}`, advice)];
  }
  if (pending.length > 0) {
    const found =
      pending.length > 3 ? `${pending.length} to be applied` : `to be applied: ${pending.join(', ')}`;
    return [warning(check, found, 'The next start applies them, or `sluice migrate` now.')];
  }
  return [ok(check, 'the database is up to date')];
}

/** The workers prune once a day. */
const lateMs = 2 * 24 * 60 * 60 * 1000;

/** Checks by the latest pruning that events are removed when their retention is over. */
export async function checkEventRetention(
  client: ClientBase,
  now: () => number = Date.now,
): Promise<Finding[]> {
  const check = 'event retention';
  const found = await readEventRetention(client).catch(nullIfMissing);
  if (found === null) return [];
  return [...aboutPruning(check, found, now), ...aboutMirror(check, found, now)];
}

function aboutMirror(check: string, found: EventRetention, now: () => number): Finding[] {
  const { mirroredAt, mirrorError } = found;
  if (mirroredAt === null || (mirrorError === null && now() - mirroredAt.getTime() <= lateMs)) return [];
  const [since, why] = [mirroredAt.toISOString(), mirrorError === null ? '' : `: ${mirrorError}`];
  return [
    warning(
      check,
      `the lake lacks events since ${since}${why}`,
      'See whether a worker runs; its log says more.',
    ),
  ];
}

function aboutPruning(
  check: string,
  { prunedAt, error, failingSince, eventsRemoved, lakeFiles }: EventRetention,
  now: () => number,
): Finding[] {
  if (prunedAt === null) return [ok(check, 'events have not been pruned yet')];
  if (error !== null) {
    const since = (failingSince ?? prunedAt).toISOString();
    const advice =
      "The next pruning tries again, `sluice prune` now. A lock timeout: an export, a backup or somebody's session reads the events for long.";
    return [warning(check, `pruning fails since ${since}: ${error}`, advice)];
  }
  if (now() - prunedAt.getTime() > lateMs) {
    return [warning(check, `events were last pruned at ${prunedAt.toISOString()}`, 'Is a worker running?')];
  }
  return [
    ok(check, `${plural(eventsRemoved, 'event')} removed so far, ${plural(lakeFiles, 'file')} in the lake`),
  ];
}

/** `migrations` tells that a table is missing. */
function nullIfMissing(error: unknown): null {
  if (!isMissingTable(error)) throw error;
  return null;
}

export async function checkChangeLog(
  client: ClientBase,
  { changesDays }: Pick<Config, 'changesDays'>,
): Promise<Finding[]> {
  const check = 'change log';
  const log = await readChangeLog(client).catch(nullIfMissing);
  if (log === null) return [];
  const size = `${Math.ceil(log.bytes / 2 ** 20)} MiB of ${plural(log.days + 1, 'day')}`;
  if (log.isOn !== changesDays > 0) {
    const found = `changes are ${log.isOn ? '' : 'not '}kept, and CHANGES_DAYS is ${changesDays}`;
    return [warning(check, found, 'Give all processes the same CHANGES_DAYS, and restart the server.')];
  }
  const problems = [
    ...(log.hasTomorrow || !log.isOn ? [] : ['the partition of tomorrow is missing']),
    ...(log.strayRows > 0 ? ['changes came while the partition of their day was missing'] : []),
    ...(log.days > changesDays + 1 ? [`it reaches back longer than ${plural(changesDays, 'day')}`] : []),
  ];
  if (problems.length === 0) return [ok(check, log.isOn ? size : `off; ${size} are left`)];
  const advice =
    "Is a worker running? It looks after the log every half hour, unless an export, a backup or somebody's session reads it for long. Changes are kept all the same, and stray ones go when they are old.";
  return [warning(check, `${size}; ${problems.join('; ')}`, advice)];
}

export async function checkPersonalKeys(
  client: ClientBase,
  { personalKeys }: Pick<Config, 'personalKeys'>,
): Promise<Finding[]> {
  const check = 'personal data';
  const names = await listKeyedEnvironments(client).catch(nullIfMissing);
  if (names === null || names.length === 0) return [];
  if (personalKeys.size > 0) return [ok(check, `${plural(personalKeys.size, 'key')} in PERSONAL_KEYS`)];
  return [
    failed(check, missingKeys(names), 'Set PERSONAL_KEYS to the keys that these rules were applied with.'),
  ];
}

/** BullMQ recommends this version or newer; it refuses what is older than 5. */
const least = '6.2.0';
const refused = '5.0.0';
const nearlyFull = 0.9;

type RedisConfig = Pick<Config, 'redisUrl' | 'redisCa'>;

export async function checkRedis({ redisUrl, redisCa }: RedisConfig): Promise<Finding[]> {
  if (redisUrl === null) return [ok('redis', 'not used: the queue lives in PostgreSQL')];
  return askRedis({ redisUrl, redisCa }, async (redis) => {
    const info = readInfo(await redis.info());
    // Managed servers may not tell their configuration.
    const settings = await redis.config('GET', '*').then(readSettings, () => null);
    return [
      judgeVersion(info),
      judgePolicy(settings?.get('maxmemory-policy') ?? info.get('maxmemory_policy')),
      judgeMemory(info),
      judgePersistence(info, settings?.get('save')),
    ];
  });
}

type Fields = ReadonlyMap<string, string>;

function readInfo(text: string): Fields {
  const lines = text.split(/\r?\n/).filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function readSettings(answer: unknown): Fields {
  const texts = Array.isArray(answer) ? answer.map(String) : [];
  return new Map(texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? '']] : [])));
}

function judgeVersion(info: Fields): Finding {
  const version = info.get('redis_version') ?? '';
  const judged = [`redis version`, `Redis ${version} answers`, `Use Redis ${least} or newer.`] as const;
  if (!isAtLeast(version, refused)) return failed(...judged);
  return isAtLeast(version, least) ? ok(judged[0], judged[1]) : warning(...judged);
}

function judgePolicy(policy: string | undefined): Finding {
  const check = 'redis maxmemory-policy';
  if (policy === 'noeviction') return ok(check, policy);
  if (policy === undefined)
    return warning(check, 'the server does not tell', 'See to it that maxmemory-policy is noeviction.');
  const advice = 'Set it: `redis-cli config set maxmemory-policy noeviction`, and in redis.conf.';
  return failed(check, `${policy}: it may throw away parts of the queue`, advice);
}

function judgeMemory(info: Fields): Finding {
  const check = 'redis memory';
  const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory'))];
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  if (!(most > 0)) return ok(check, `${mib(used)} used, no bound`);
  const found = `${mib(used)} used of ${mib(most)}`;
  return used / most < nearlyFull
    ? ok(check, found)
    : warning(check, found, 'Raise maxmemory: a full Redis takes no more jobs.');
}

function judgePersistence(info: Fields, save: string | undefined): Finding {
  const check = 'redis persistence';
  if (info.get('aof_enabled') === '1') return ok(check, 'append-only file');
  if (save !== undefined && save !== '') return ok(check, `snapshots (save ${save})`);
  const found = 'nothing is kept on disk';
  const advice = 'No work is lost: workers read in PostgreSQL what is due. `appendonly yes` spares the wait.';
  return warning(check, found, advice);
}
