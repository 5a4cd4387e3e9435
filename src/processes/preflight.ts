/** Checks before a service starts: its address, the database, Redis and the storage. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import { Interrupted, messageOf } from '../base/errors.ts';
import { retry } from '../base/retry.ts';
import { CommandFailed } from '../cli/errors.ts';
import type { System } from '../context.ts';
import { codeOf } from '../files/disk.ts';
import type { FileStore } from '../files/file-store.ts';
import { explainConnection, isTransient } from '../postgres/sqlstate.ts';
import { findDatabaseUrl } from '../queue/provide-database.ts';
import { findRedisFault } from '../telemetry/health/checks.ts';

type Address = Pick<Config, 'host' | 'port'>;

/**
 * Checks that the service can use its address. Skips the check if another sluice process uses the
 * same data, because opening the data then fails with a better message. @throws CommandFailed if
 * the address cannot be used
 */
export async function checkAddress(
  address: Address & Pick<Config, 'databaseUrl' | 'dataDir'>,
  ownsData: boolean,
): Promise<void> {
  if (ownsData && address.databaseUrl === null && (await findDatabaseUrl(address)) !== undefined) return;
  const probe = createServer();
  try {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, 'listening');
  } catch (error) {
    throw new CommandFailed(explainAddress(address, error));
  }
  probe.close();
  await once(probe, 'close');
}

function explainAddress({ host, port }: Address, error: unknown): string {
  const hosts =
    'Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.';
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `Port ${port} is taken by another program. Choose another with --port (PORT); 0 takes any free one.`;
    case 'EACCES':
    case 'EPERM':
      return `This user may not listen on port ${port}: those below 1024 take special rights. Choose another with --port (PORT), such as 8080, and let a proxy pass port ${port} on.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine. ${hosts}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address, and no name that is known here. ${hosts}`;
    default:
      return `Nobody can listen on ${host}, port ${port}: ${messageOf(error)}`;
  }
}

/** The service can start without Redis: the ledger keeps the due work until the queue is back. */
export async function warnOfRedis(config: Pick<Config, 'redisUrl' | 'redisCa'>, log: Logger): Promise<void> {
  const fault = await findRedisFault(config);
  if (fault !== null) log.warn(fault.sentence);
}

/**
 * Warns of a wrong bucket before the first upload. The service starts, but is not ready until the
 * bucket is corrected.
 */
export async function warnOfStorage({ storage }: Config, files: FileStore, log: Logger): Promise<void> {
  if (storage.kind !== 's3') return;
  try {
    await files.check();
  } catch (error) {
    log.warn(messageOf(error));
  }
}

const timeoutMs = 60_000;
const pollMs = 250;
const connectTimeoutMs = 5_000;

interface Waiting {
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** Returns DATABASE_URL or, if it is not set, the URL of another process's embedded server. */
export function awaitDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { signal, log }: Waiting,
): Promise<string> {
  const { databaseUrl } = config;
  const find = databaseUrl === null ? () => findEmbedded(config) : () => connect(databaseUrl);
  const isAway = (error: unknown) => error instanceof CommandFailed;
  const whenAway = (error: unknown) => log.warn(`${(error as Error).message} Waiting for it.`);
  return untilBack(signal, find, isAway, whenAway).catch((error: unknown) => {
    if (!(error instanceof CommandFailed)) throw error;
    throw new CommandFailed(`${error.message} Gave up after ${timeoutMs / 1000} s.`);
  });
}

/**
 * Calls `work` again while the database is unavailable, for as long as `awaitDatabase` would wait.
 * @throws the last error after that time, any other error immediately, Interrupted on a stop
 */
export function retryWhileAway<T>({ signal, log }: Waiting, work: () => Promise<T>): Promise<T> {
  const sentence = 'the database went away during the start; trying again';
  return untilBack(signal, work, isTransient, (err) => log.warn({ err }, sentence));
}

function untilBack<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
  isTransient: (error: unknown) => boolean,
  onWait: (error: unknown) => void,
): Promise<T> {
  const onRetry = (error: unknown, failures: number) => (failures === 1 ? onWait(error) : undefined);
  const policy = { forMs: timeoutMs, pauseMs: pollMs, isTransient, signal, onRetry };
  return retry(policy, work).catch((error: unknown) => {
    throw error === signal.reason ? new Interrupted('stopped while waiting for the database') : error;
  });
}

/** @throws CommandFailed if no embedded server is running */
async function findEmbedded(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string> {
  const url = await findDatabaseUrl(config);
  if (url !== undefined) return url;
  throw new CommandFailed(
    `No database runs on ${config.dataDir}. Run \`sluice start\` there, or set DATABASE_URL.`,
  );
}

/** @throws CommandFailed if the server does not respond */
async function connect(url: string): Promise<string> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return url;
  } catch (error) {
    // Waiting does not cure a wrong password, user or database name, or an untrusted certificate.
    if (explainConnection(error)?.passes === false) throw error;
    const { hostname, port } = new URL(url);
    const reason = error instanceof pg.DatabaseError ? ` (${error.message})` : '';
    throw new CommandFailed(
      `The database at ${hostname}:${port || '5432'} does not answer${reason}. Is it running?`,
    );
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** @throws CommandFailed if a capability cannot work with these settings */
export async function requireReady({ pool, config, preflights }: System): Promise<void> {
  for (const preflight of preflights) {
    const problem = await preflight(pool, config);
    if (problem !== null) throw new CommandFailed(problem);
  }
}
