/** Checks PostgreSQL: version, permissions, connections, settings, clock, sessions, migrations. */

import pg, { type ClientBase } from 'pg';
import type { Config } from '../../base/config.ts';
import { plural } from '../../base/wording.ts';
import { readMigrationState, unreleasedAdvice } from '../../postgres/migrate.ts';
import { isPooled, pooling } from '../../postgres/session.ts';
import { type Finding, failed, ok, warning } from './findings.ts';
import { readServer, type ServerFacts } from './store.ts';

const timeoutMs = 5_000;

export async function checkPostgres(url: string, config: Config): Promise<Finding[]> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice status',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    if (await isPooled(client, url)) return [failed('postgres sessions', pooling.fault, pooling.advice)];
    const schemas = config.redisUrl === null ? ['sluice', 'bullmq'] : ['sluice'];
    const server = await readServer(client, schemas, Object.keys(harmfulSettings));
    return [
      ...judgeServer(server),
      judgeRights(server),
      judgeConnections(server, config),
      ...judgeSettings(server.settings),
      await checkClock(client),
      await checkMigrations(client),
    ];
  } finally {
    await client.end().catch(() => undefined);
  }
}

const oldest = 150_000;

function judgeServer({ version, number, encoding, readOnly }: ServerFacts): Finding[] {
  const findings = [
    number >= oldest
      ? ok('postgres version', `PostgreSQL ${version}`)
      : failed('postgres version', `PostgreSQL ${version}`, 'Use PostgreSQL 15 or newer.'),
  ];
  if (encoding !== 'UTF8') {
    const advice = "Create the database with: create database … encoding 'UTF8' template template0.";
    findings.push(failed('postgres encoding', `${encoding}, which cannot hold every text`, advice));
  }
  if (readOnly)
    findings.push(
      failed('postgres writes', 'The server is read-only', 'Point DATABASE_URL at the primary server.'),
    );
  return findings;
}

/** For migrations, the role must own the schemas of sluice, or be able to create them. */
function judgeRights({ role, mayCreate, foreign, missing }: ServerFacts): Finding {
  const check = 'postgres rights';
  if (foreign.length > 0) {
    const advice = 'Connect as the owner, or grant this role membership in it.';
    return failed(check, `Role ${role} does not own schema ${foreign.join(' and ')}`, advice);
  }
  if (missing === 0 || mayCreate) return ok(check, `Role ${role} owns its schemas, or may create them`);
  const advice = `Run as the owner: grant create on database … to ${role}.`;
  return failed(check, `Role ${role} may not create schemas in this database`, advice);
}

/** Connections that each kind of process opens besides its pools. */
const extraConnections = { server: 3, worker: 1, command: 4 } as const;
/** Additional connections if the queue is in PostgreSQL. */
const queueConnections = { server: 4, worker: 10, command: 4 } as const;

function judgeConnections({ most, used }: ServerFacts, config: Config): Finding {
  const { redisUrl, poolSize, workers, workerPoolSize } = config;
  const extra = (part: keyof typeof extraConnections): number =>
    extraConnections[part] + (redisUrl === null ? queueConnections[part] : 0);
  const total = poolSize + extra('server') + workers * (workerPoolSize + extra('worker')) + extra('command');
  const state = `${most} available, ${used} used by others; one \`sluice start\` with ${plural(workers, 'worker')} may open ${total}`;
  if (total + used <= most) return ok('postgres connections', state);
  const advice = 'Raise max_connections, or lower WORKERS, WORKER_CONCURRENCY or POOL_SIZE.';
  return warning('postgres connections', state, advice);
}

const isOff = (value: string): boolean => value === 'off';
const isSet = (value: string): boolean => Number(value) > 0;

/**
 * Harmful settings by name. Each has a test of its value (in the unit of `pg_settings`) and advice.
 */
const harmfulSettings: Readonly<
  Record<string, readonly [isHarmful: (value: string) => boolean, advice: string]>
> = {
  fsync: [isOff, 'Set fsync = on: a crash of the machine may destroy the database.'],
  full_page_writes: [isOff, 'Set full_page_writes = on: a crash of the machine may destroy the database.'],
  synchronous_commit: [isOff, 'Set synchronous_commit = on: a crash may lose what was answered.'],
  max_wal_size: [(value) => Number(value) < 1_024, 'Set max_wal_size = 4GB: large loads force checkpoints.'],
  statement_timeout: [isSet, 'Run `alter role … set statement_timeout = 0`: exports take minutes.'],
  transaction_timeout: [isSet, 'Run `alter role … set transaction_timeout = 0`: exports take minutes.'],
  autovacuum: [isOff, 'Set autovacuum = on: tables that loads update would only grow.'],
};

function judgeSettings(settings: ServerFacts['settings']): Finding[] {
  return settings.flatMap(({ name, value, unit }) => {
    const [isHarmful, advice] = harmfulSettings[name] ?? [];
    if (isHarmful === undefined || advice === undefined || !isHarmful(value)) return [];
    return [warning(`postgres ${name}`, unit === null ? value : `${value} ${unit}`, advice)];
  });
}

const mostSkewMs = 2_000;

/**
 * Leases depend only on the clock of the database, but links and idempotency also depend on the
 * clock of this machine.
 */
export async function checkClock(client: ClientBase, now: () => number = Date.now): Promise<Finding> {
  const before = now();
  const { rows } = await client.query<{ readonly ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  );
  const after = now();
  const skewMs = (rows[0]?.ms ?? 0) - (before + after) / 2;
  const seconds = (Math.abs(skewMs) / 1000).toFixed(1);
  const state = `The database's clock is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  // The server may have read its clock at any moment of the round trip, so the difference may be
  // wrong by half of the time of the round trip.
  if (Math.abs(skewMs) - (after - before) / 2 <= mostSkewMs) return ok('postgres clock', state);
  return warning('postgres clock', state, 'Run NTP on both machines.');
}

async function checkMigrations(client: ClientBase): Promise<Finding> {
  const check = 'migrations';
  const { pending, unknown, edited, unreleased } = await readMigrationState(client);
  if (unreleased)
    return failed(check, `Not of this version: ${[...unknown, ...edited].join(', ')}`, unreleasedAdvice);
  if (unknown.length > 0) {
    const state = `A newer sluice has migrated the database: ${unknown.join(', ')}`;
    return failed(check, state, 'Install that version here too.');
  }
  if (pending.length === 0) return ok(check, 'The database is up to date');
  const state =
    pending.length > 3 ? `${pending.length} to be applied` : `To be applied: ${pending.join(', ')}`;
  return warning(check, state, 'Run `sluice migrate`, or start sluice.');
}
