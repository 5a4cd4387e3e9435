/**
 * Runs PostgreSQL from an npm package on our data directory, as a child of this process. Other
 * folders import only `embeddedPostgres`. `start` leads through the other files.
 *
 * Guarantees: one server per data directory, which ends with this process. Committed data survives.
 * Only this machine can connect, and only the owner can read the password.
 */
import { dirname, resolve } from 'node:path';
import type { Logger } from 'pino';
import { growing, retry } from '../../base/retry.ts';
import { withDeadline } from '../../base/timers.ts';
import { isFull, readDisk } from '../../files/disk.ts';
import { provideBinaries } from './binaries.ts';
import { awaitPreviousServer, readPostmasterFile } from './claims.ts';
import { createCluster, inspectMachine, serverSettings } from './cluster.ts';
import {
  EmbeddedPostgresError,
  ensureRoot,
  hasUsableData,
  layoutOf,
  readMajor,
  readPassword,
} from './data-directory.ts';
import {
  askVersion,
  type LaunchedServer,
  launchServer,
  type ServerProcess,
  serverUrl,
} from './launch-server.ts';
import { chooseAccount } from './run-program.ts';

/** Time for the shutdown checkpoint, then for an immediate shutdown. */
const fastDeadlineMs = 60_000;
const immediateDeadlineMs = 5_000;
const minRestartPauseMs = 200;
const maxRestartPauseMs = 10_000;

/** A running server. It keeps this process alive until it is stopped, and dies with it. */
export interface EmbeddedPostgres {
  /** postgres://sluice:<password>@127.0.0.1:<port>/sluice */
  readonly url: string;
  /** For example "18.4". */
  readonly version: string;
  /** Resolves when the server process has ended. Never rejects. */
  readonly exited: Promise<void>;
  /** Shuts down fast, by force after a deadline. May be repeated. */
  stop(): Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** Created on first use. Contains data, password and log. */
  readonly dataDir: string;
  readonly log: Logger;
  /** Settings that replace ours, except address and port. */
  readonly settings?: Record<string, string>;
  readonly port?: number;
}

export const embeddedPostgres = {
  start,
  startAndKeepRunning,
  findRunning,
  /** Returns true if a server of any version was ever started on the directory. */
  hasData: async (dataDir: string) => (await readMajor(layoutOf(dataDir))) !== undefined,
  /** Returns true if the server cannot run here. The message has the reason and the cure. */
  isRefusal: (error: unknown): error is Error => error instanceof EmbeddedPostgresError,
  /** Returns true if another live server owns the data directory. */
  isInUse: (error: unknown) => error instanceof EmbeddedPostgresError && error.isInUse,
} as const;

/** Starts the server. @throws EmbeddedPostgresError if one runs (`isInUse`) or none can */
async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const startedAt = performance.now();
  const layout = layoutOf(resolve(options.dataDir));
  await ensureRoot(layout);
  await awaitPreviousServer(layout, log);
  const account = await chooseAccount(layout);
  const binaries = await provideBinaries({ account, layout, log });
  const context = { layout, account, binaries };
  if (!(await hasUsableData(layout, binaries.major))) await createCluster(context);
  const settings = { ...serverSettings(await inspectMachine()), ...options.settings };
  const password = await readPassword(layout);
  if (password === undefined) throw new EmbeddedPostgresError(`${layout.password} is missing: restore it`);
  const server = await launchServer({ ...context, password, settings, port: options.port });
  const ms = Math.round(performance.now() - startedAt);
  log.info({ postgres_pid: server.process.pid, version: server.version, ms }, 'embedded Postgres is ready');
  return watch(server, log);
}

function watch(server: LaunchedServer, log: Logger): EmbeddedPostgres {
  let stopping: Promise<void> | undefined;
  const exited = server.process.exited.then((ending) => {
    if (stopping === undefined) log.error({ ending }, 'embedded Postgres ended unexpectedly');
  });
  const stop = async (): Promise<void> => {
    await stopServer(server.process, log);
    await exited;
  };
  return {
    url: server.url,
    version: server.version,
    exited,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Shuts down fast, so the next start needs no recovery. Kills the server after the deadline. */
async function stopServer(server: ServerProcess, log: Logger): Promise<void> {
  server.kill('SIGINT');
  if (await endsWithin(server, fastDeadlineMs)) return;
  log.warn({ pid: server.pid }, 'embedded Postgres did not stop in time: ending it without a checkpoint');
  server.kill('SIGQUIT');
  if (await endsWithin(server, immediateDeadlineMs)) return;
  server.kill('SIGKILL');
  await server.exited;
}

function endsWithin(server: ServerProcess, deadlineMs: number): Promise<boolean> {
  return withDeadline(
    server.exited.then(() => true),
    deadlineMs,
    () => false,
  );
}

/**
 * Starts the server and restarts it on the same port after an unexpected end, so that pools
 * reconnect. Uncommitted work is repeated. `exited` resolves with the last server.
 */
async function startAndKeepRunning(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const stopping = new AbortController();
  let server = await start(options);
  const { url, version } = server;
  const exited = (async () => {
    while (!stopping.signal.aborted) {
      await server.exited;
      if (stopping.signal.aborted) return;
      server = (await startAgain({ ...options, port: Number(new URL(url).port) }, stopping.signal)) ?? server;
    }
    // A restart may have been in progress.
    await server.stop();
  })();
  return {
    url,
    version,
    exited,
    async stop() {
      stopping.abort();
      await server.stop();
      await exited;
    },
  };
}

/** Retries until the server runs. Returns `undefined` on a stop. */
function startAgain(
  options: EmbeddedPostgresOptions,
  signal: AbortSignal,
): Promise<EmbeddedPostgres | undefined> {
  const { log } = options;
  // The message names the system's data directory, which the operator knows.
  const folder = dirname(options.dataDir);
  const pauseMs = growing(minRestartPauseMs, maxRestartPauseMs);
  const onRetry = async (err: unknown, _: number, retry_in_ms: number): Promise<void> => {
    const isDiskFull = await readDisk(folder).then(isFull, () => false);
    if (isDiskFull) log.error({ retry_in_ms }, `embedded Postgres has no room left on the disk of ${folder}`);
    else log.error({ err, retry_in_ms }, 'embedded Postgres could not be started again');
  };
  return retry({ pauseMs, signal, onRetry }, () => start(options)).catch(() => undefined);
}

/** Returns the URL of the live server, or `undefined`. Connects, so a stale file does not count. */
async function findRunning(dataDir: string): Promise<string | undefined> {
  const layout = layoutOf(dataDir);
  const server = await readPostmasterFile(layout.data);
  const password = await readPassword(layout);
  if (server === undefined || password === undefined) return undefined;
  const url = serverUrl(server.port, password);
  try {
    await askVersion(url);
    return url;
  } catch {
    return undefined;
  }
}
