/**
 * PostgreSQL without an installation: the binaries of an npm package, run on a data directory of ours as a child of this
 * process. Everybody else imports `embeddedPostgres` from this file and nothing from the others.
 *
 * Start reading at `start`: it makes the directory (data-directory.ts), waits until no earlier server runs there
 * (claims.ts), finds binaries that run (binaries.ts), creates the cluster on first use (cluster.ts) and
 * launches the server (launch-server.ts).
 *
 * It promises: one server per data directory; the server ends when this process ends, however that happens; what was
 * committed is there at the next start; only this machine reaches it, and only its owner can read its password.
 */
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
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

/** The shutdown checkpoint writes what is dirty in shared_buffers; past this deadline the server is ended in two steps. */
const fastDeadlineMs = 60_000;
const immediateDeadlineMs = 5_000;
const minRestartPauseMs = 200;
const maxRestartPauseMs = 10_000;

/** A running server. It keeps this process alive until it is stopped, and dies with this process. */
export interface EmbeddedPostgres {
  /** postgres://sluice:<password>@127.0.0.1:<port>/sluice */
  readonly url: string;
  /** The answer to `show server_version`, for example "18.4". */
  readonly version: string;
  /** Resolves when the server process has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<void>;
  /** Fast shutdown; waits for the end, and forces it after a deadline. May be called again. */
  stop(): Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** Made on first use; holds the data, the passwords, the log. */
  readonly dataDir: string;
  readonly log: Logger;
  /** Server settings that replace ours. Address and port cannot be replaced. */
  readonly settings?: Record<string, string>;
  /** Any free one by default. */
  readonly port?: number;
}

export const embeddedPostgres = {
  start,
  startAndKeepRunning,
  findRunning,
  /** Tells whether a server was ever started on it, by whatever version. */
  hasData: async (dataDir: string) => (await readMajor(layoutOf(dataDir))) !== undefined,
  /** Tells whether the error says that the server cannot run here; its message says why and what to do. */
  isRefusal: (error: unknown): error is Error => error instanceof EmbeddedPostgresError,
  /** Tells whether the error says that another live server owns the data directory. */
  isInUse: (error: unknown) => error instanceof EmbeddedPostgresError && error.isInUse,
} as const;

/** Starts the server for dataDir, created on first use. Throws EmbeddedPostgresError if one runs on it (`isInUse`) or none can. */
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

/** Fast shutdown, after which the next start needs no recovery. Kills the server past the deadline; the next start then recovers. */
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
 * Starts the server as `start` does; one that ends unasked is started again on the same port, so that every pool reconnects by itself.
 * Work under way comes to no harm: what was committed is there, the rest is done again. `exited` is that of the last.
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
    // A restart that was under way when we were asked to stop.
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

/** Tries until it runs; undefined when asked to stop. */
async function startAgain(
  options: EmbeddedPostgresOptions,
  signal: AbortSignal,
): Promise<EmbeddedPostgres | undefined> {
  const { log } = options;
  // The system's own data directory: the name under which its operator knows the disk.
  const folder = dirname(options.dataDir);
  let pauseMs = minRestartPauseMs;
  while (!signal.aborted) {
    try {
      return await start(options);
    } catch (err) {
      const isDiskFull = await readDisk(folder).then(isFull, () => false);
      if (isDiskFull)
        log.error({ retry_in_ms: pauseMs }, `embedded Postgres has no room left on the disk of ${folder}`);
      else log.error({ err, retry_in_ms: pauseMs }, 'embedded Postgres could not be started again');
    }
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * 2, maxRestartPauseMs);
  }
  return undefined;
}

/** Returns the url of the live server on dataDir, or undefined. Connects to it, so that a stale file never counts. */
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
