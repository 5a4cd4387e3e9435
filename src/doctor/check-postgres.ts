import pg, { type ClientBase } from 'pg';
import type { Config } from '../config.ts';
import { plural } from '../domain/wording.ts';
import { readMigrationState, unreleasedAdvice } from '../postgres/migrate.ts';
import { isPooled, pooling } from '../postgres/session.ts';
import { isDiskFull, isMissingTable } from '../postgres/sqlstate.ts';
import { readEventRetention } from '../postgres/stores/retention.ts';
import { type Check, type Finding, failed, ok, roomAdvice, runChecks, warning } from './check.ts';

const connectMs = 5_000;
const statementMs = 5_000;
const lookMs = 8_000;

/** All that is to be known of a server that should answer at `url`. Throws if it does not. */
export async function checkPostgres(url: string, config: Config): Promise<Finding[]> {
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
      'postgres version': () => checkVersion(client),
      'postgres privileges': () => checkPrivileges(client, config.redisUrl === null),
      'postgres connections': () => checkConnections(client, config),
      'postgres settings': () => checkSettings(client),
      'postgres disk': () => checkSpace(client),
      'postgres clock': () => checkClock(client),
      migrations: () => checkMigrations(client),
      'event retention': () => checkEventRetention(client),
    };
    const findings: Finding[] = [];
    // In sequence, since they share the connection: the clock's answer must not wait behind another's.
    for (const [name, run] of Object.entries(looks)) findings.push(...(await runChecks([lookOf(name, run)])));
    return findings;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function lookOf(name: string, run: Check['run']): Check {
  return {
    name,
    run,
    deadlineMs: lookMs,
    advice: 'The server did not answer this question; its log may tell why.',
  };
}

const oldest = 150_000;

interface Version {
  readonly version: string;
  readonly number: number;
  readonly encoding: string;
  readonly readOnly: boolean;
}

async function checkVersion(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<Version>(`
    select
      current_setting('server_version') as version,
      current_setting('server_version_num')::int as number,
      current_setting('server_encoding') as encoding,
      pg_is_in_recovery() or current_setting('transaction_read_only')::bool as "readOnly"`);
  const { version = '', number = 0, encoding = '', readOnly = false } = rows[0] ?? {};
  const check = 'postgres version';
  const found = `PostgreSQL ${version}`;
  const findings = [
    number >= oldest ? ok(check, found) : failed(check, found, 'Use PostgreSQL 15 or newer.'),
  ];
  if (encoding !== 'UTF8') {
    const advice = "Make the database with: create database … encoding 'UTF8' template template0.";
    findings.push(failed('postgres encoding', `${encoding}, which cannot hold every text`, advice));
  }
  if (readOnly) {
    const advice = 'Point DATABASE_URL at the primary server.';
    const what = 'the server takes no writes: it is a replica or read-only';
    findings.push(failed('postgres writes', what, advice));
  }
  return findings;
}

interface Row {
  readonly role: string;
  readonly mayCreate: boolean;
  /** Lists our schemas that belong to a role whose rights we do not have. */
  readonly foreign: string[];
  readonly missing: number;
}

/** Migrations create the schemas, and change what is in them: that takes their owner. */
async function checkPrivileges(client: ClientBase, queueInPostgres: boolean): Promise<Finding[]> {
  const schemas = queueInPostgres ? ['sluice', 'bullmq'] : ['sluice'];
  const { rows } = await client.query<Row>(
    `
    select
      current_user as role,
      has_database_privilege(current_database(), 'create') as "mayCreate",
      array(
        select nspname::text
        from pg_namespace
        where nspname = any ($1) and not pg_has_role(nspowner, 'usage')
      ) as foreign,
      (
        select cardinality($1::text[]) - count(*)
        from pg_namespace
        where nspname = any ($1)
      )::int as missing`,
    [schemas],
  );
  const { role = '', mayCreate = false, foreign = [], missing = 0 } = rows[0] ?? {};
  const check = 'postgres privileges';
  if (foreign.length > 0) {
    const advice = 'Connect as their owner, or grant this role membership in it.';
    return [failed(check, `role ${role} does not own schema ${foreign.join(' and ')}`, advice)];
  }
  if (missing > 0 && !mayCreate) {
    const advice = `As its owner: grant create on database … to ${role}.`;
    return [failed(check, `role ${role} may not create schemas in this database`, advice)];
  }
  return [ok(check, `role ${role} ${missing > 0 ? 'may create what is missing' : 'owns its schemas'}`)];
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
  let found: Awaited<ReturnType<typeof readEventRetention>>;
  try {
    found = await readEventRetention(client);
  } catch (error) {
    // `migrations` tells of it.
    if (isMissingTable(error)) return [];
    throw error;
  }
  const { prunedAt, error, failingSince, eventsRemoved, archiveFiles } = found;
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
  return [ok(check, `${plural(eventsRemoved, 'event')} removed so far, ${plural(archiveFiles, 'archive')}`)];
}

const leastWalMib = 1_024;

interface Rule {
  /** A setting of `pg_settings`; numbers are in its own unit. */
  readonly name: string;
  readonly isWrong: (value: string) => boolean;
  readonly advice: string;
}

const isOff = (value: string): boolean => value === 'off';
const isSet = (value: string): boolean => Number(value) > 0;

const rules: readonly Rule[] = [
  {
    name: 'fsync',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set fsync = on.',
  },
  {
    name: 'full_page_writes',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set full_page_writes = on.',
  },
  {
    name: 'synchronous_commit',
    isWrong: isOff,
    advice: 'What was answered may be lost in a crash: set synchronous_commit = on.',
  },
  {
    name: 'max_wal_size',
    isWrong: (value) => Number(value) < leastWalMib,
    advice: 'Loads of gigabytes would force checkpoint after checkpoint: set max_wal_size = 4GB.',
  },
  {
    name: 'statement_timeout',
    isWrong: isSet,
    advice:
      'Exports and deletions may take minutes in one statement: `alter role … set statement_timeout = 0`.',
  },
  {
    name: 'transaction_timeout',
    isWrong: isSet,
    advice:
      'An export reads in one transaction for as long as it takes: `alter role … set transaction_timeout = 0`.',
  },
  {
    name: 'autovacuum',
    isWrong: isOff,
    advice: 'Tables that loads update would only ever grow: set autovacuum = on.',
  },
];

/** Returns a finding for each setting that harms, or one that says that none does. */
export async function checkSettings(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ name: string; value: string; unit: string | null }>(
    'select name, setting as value, unit from pg_settings where name = any ($1)',
    [rules.map(({ name }) => name)],
  );
  const wrong = rules.flatMap(({ name, isWrong, advice }) => {
    const row = rows.find((each) => each.name === name);
    if (row === undefined || !isWrong(row.value)) return [];
    return [warning(`postgres ${name}`, `${row.value}${row.unit === null ? '' : ` ${row.unit}`}`, advice)];
  });
  return wrong.length > 0 ? wrong : [ok('postgres settings', 'nothing that harms')];
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

export async function checkConnections(client: ClientBase, config: Sizes): Promise<Finding[]> {
  const { rows } = await client.query<{ most: number; used: number }>(`
    select
      least(
        current_setting('max_connections')::int
          - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int,
        nullif(d.datconnlimit, -1),
        nullif(r.rolconnlimit, -1)
      ) as most,
      (
        select count(*)
        from pg_stat_activity
        where backend_type = 'client backend' and application_name not like 'sluice%'
      )::int as used
    from pg_database d, pg_roles r
    where d.datname = current_database() and r.rolname = current_user`);
  const { most = 0, used = 0 } = rows[0] ?? {};
  const check = 'postgres connections';
  const wanted = connectionsWanted(config);
  const found = `${most} to be had, ${used} used by others; one \`sluice start\` with ${plural(config.workers, 'worker')} may open ${wanted}`;
  if (wanted + used <= most) return [ok(check, found)];
  const advice =
    'Raise max_connections, or lower WORKERS, POOL_SIZE or WORKER_POOL_SIZE; count in what other machines run.';
  return [warning(check, found, advice)];
}
