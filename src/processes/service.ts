/**
 * `sluice start` and `sluice serve`: the HTTP server, its system and the first API key. `sluice
 * start` also opens the database and the workers.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { ensureFirstKey, requireEnvironment } from '../access/acts.ts';
import { createSignInLink } from '../access/console-session.ts';
import type { Config } from '../base/config.ts';
import { messageOf } from '../base/errors.ts';
import { type Phase, shutDown } from '../base/timers.ts';
import { plural } from '../base/wording.ts';
import { defineCommand, listenOptions } from '../cli/define-command.ts';
import { listenForStop, type Supervisor, superviseWorkers, workerEnvironment } from '../cli/processes.ts';
import { announceNewData } from '../cli/session.ts';
import { type ProcessEnv, readSettings } from '../cli/settings.ts';
import type { Terminal } from '../cli/terminal.ts';
import type { System } from '../context.ts';
import { defaultEnvironmentName } from '../domain/caller.ts';
import { consolePath } from '../http/paths.ts';
import { type ProvidedDatabase, prepareDatabase, provideDatabase } from '../queue/provide-database.ts';
import { type HttpServer, startHttpServer } from './listen.ts';
import { openSandboxes, openSystem } from './open-system.ts';
import {
  awaitDatabase,
  checkAddress,
  requireReady,
  retryWhileAway,
  warnOfRedis,
  warnOfStorage,
} from './preflight.ts';

const drainSlackMs = 1_000;

type ServiceName = 'start' | 'serve';

export interface HttpService {
  readonly system: System;
  readonly url: string;
  /** The phases are in the order of a shutdown. */
  readonly drain: Phase;
  readonly stopListening: Phase;
  readonly closeSystem: Phase;
}

/** The database must already be migrated. */
export function openServingSystem(config: Config, databaseUrl: string, log: Logger): System {
  // Two fifths of the connections are for reads. The other connections accept and commit work.
  const readPoolSize = Math.max(1, Math.floor(config.poolSize * 0.4));
  return openSystem({
    config,
    databaseUrl,
    log,
    sandboxes: openSandboxes(log),
    role: 'serve',
    poolSize: Math.max(2, config.poolSize - readPoolSize),
    readPoolSize,
    mergesSmallLoads: true,
  });
}

export async function openHttpService(system: System): Promise<HttpService> {
  let server: HttpServer;
  try {
    // After this share of SHUTDOWN_MS, the connections of requests in progress are closed.
    const config = { ...system.config, shutdownMs: Math.round(system.config.shutdownMs * 0.3) };
    server = await startHttpServer({ ...system, config });
  } catch (error) {
    await system.close();
    throw error;
  }
  const { shutdownMs, drainMs } = system.config;
  return {
    system,
    url: server.address,
    drain: { name: 'drain', deadlineMs: drainMs + drainSlackMs, run: () => server.drain() },
    stopListening: { name: 'http', deadlineMs: shutdownMs * 0.35, run: () => server.stop() },
    closeSystem: { name: 'system', deadlineMs: shutdownMs * 0.15, run: () => system.close() },
  };
}

/**
 * Prints a sentence at any LOG_LEVEL. If the output is not a terminal, prints the sentence as a
 * JSON line like those of the log.
 */
function announce(terminal: Terminal, name: ServiceName, sentence: string): void {
  const line = { level: 30, time: new Date().toISOString(), name, pid: process.pid, msg: sentence };
  terminal.print(process.stdout.isTTY ? sentence : JSON.stringify(line));
}

async function writeKey(path: string, key: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await rm(path, { force: true });
  await writeFile(path, `${key}\n`, { mode: 0o600 });
}

/**
 * Output that is not a terminal may be stored where more people can read it, so the key goes to a
 * file in DATA_DIR.
 */
export async function handOverKey(
  terminal: Terminal,
  name: ServiceName,
  dataDir: string,
  key: string,
): Promise<void> {
  if (!process.stdout.isTTY) {
    const path = join(dataDir, 'first-key');
    const place = await writeKey(path, key).then(
      () => `It is in ${path}`,
      (error) =>
        `It is lost, since ${path} cannot be written: ${messageOf(error)}. Run \`sluice keys create\``,
    );
    return announce(terminal, name, `An API key for the environment \`default\` was made. ${place}`);
  }
  terminal.print('');
  terminal.print('An API key for the environment `default` was made. It is shown only this once:');
  terminal.print('');
  terminal.print(`    ${terminal.style('bold', key)}`);
  terminal.print('');
  terminal.print(`Send it with every request:  Authorization: Token ${key.slice(0, 8)}…`);
  terminal.print('');
}

/** Show this URL, which signs in, only on a terminal and never in a log. */
export async function consoleLink(system: Pick<System, 'db' | 'acts'>, url: string): Promise<string> {
  const { environmentId } = await requireEnvironment(system, defaultEnvironmentName);
  return `${url}${consolePath}#link=${await createSignInLink(system, environmentId)}`;
}

/**
 * On a terminal, the URL signs in its user: a person who starts the service may see all its data.
 */
export async function announceConsole(
  terminal: Terminal,
  { system, url }: Pick<Service, 'system' | 'url'>,
): Promise<void> {
  const base = system.config.publicUrl ?? url;
  if (process.stdout.isTTY !== true) {
    return announce(terminal, 'start', `Console: ${base}${consolePath}`);
  }
  terminal.print(`Console, signed in by this link once, within 15 minutes:`);
  terminal.print('');
  terminal.print(`    ${terminal.style('bold', await consoleLink(system, base))}`);
  terminal.print('');
}

export interface ServiceOptions {
  readonly config: Config;
  readonly processEnv: ProcessEnv;
  readonly entry: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Called only when the service creates its first API key. */
  readonly onKey: (key: string) => Promise<void> | void;
}

export interface Service {
  readonly url: string;
  readonly system: System;
  readonly workerPids: readonly number[];
  /** Stops within DRAIN_MS and SHUTDOWN_MS. Returns true if no part was stopped by force. */
  stop(): Promise<boolean>;
  /** Ends the workers immediately. The database server ends with this process. */
  kill(): void;
}

interface Parts {
  database: ProvidedDatabase | null;
  http: HttpService | null;
  workers: Supervisor | null;
}

export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const parts: Parts = { database: null, http: null, workers: null };
  const stop = (): Promise<boolean> =>
    shutDown(stopPhases(parts, config.shutdownMs), config.drainMs + config.shutdownMs, log);
  try {
    const http = await startParts(options, parts);
    return {
      url: http.url,
      system: http.system,
      get workerPids() {
        return parts.workers?.pids ?? [];
      },
      stop,
      kill: () => parts.workers?.kill(),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(options: ServiceOptions, parts: Parts): Promise<HttpService> {
  const { config, log, processEnv, entry } = options;
  await checkAddress(config, true);
  if (config.databaseUrl !== null) await awaitDatabase(config, options);
  void warnOfRedis(config, log);
  const database = await provideDatabase(config, log, { share: false });
  parts.database = database;
  await retryWhileAway(options, () =>
    prepareDatabase(database.url, config.redisUrl === null, log, config.changesDays),
  );
  const system = openServingSystem(config, database.url, log);
  void warnOfStorage(config, system.files, log);
  const prepare = async () => {
    await requireReady(system);
    return ensureFirstKey(system);
  };
  const key = await retryWhileAway(options, prepare).catch(async (error: unknown) => {
    await system.close();
    throw error;
  });
  if (key !== null) await options.onKey(key);
  const http = await openHttpService(system);
  parts.http = http;
  parts.workers = superviseWorkers({
    size: config.workers,
    entry,
    processEnv: workerEnvironment(processEnv, config, database.url),
    log,
  });
  return http;
}

/** The parts that accept work stop first. The parts that other parts need stop last. */
function stopPhases({ database, http, workers }: Parts, totalMs: number): Phase[] {
  const phases: Phase[] = [];
  if (http !== null) phases.push(http.drain, http.stopListening);
  if (workers !== null) {
    const run = () => workers.stop();
    const force = () => workers.kill();
    phases.push({ name: 'workers', deadlineMs: totalMs * 0.4, run, force });
  }
  if (http !== null) phases.push(http.closeSystem);
  if (database !== null) {
    // The database server gets its signal at the start of this phase, so it stops even if the time
    // runs out.
    phases.push({ name: 'database', deadlineMs: totalMs, run: () => database.stop() });
  }
  return phases;
}

export const start = defineCommand({
  name: 'start',
  summary: 'everything in one: database, HTTP server, worker processes',
  description:
    'Starts the service: the embedded database (unless DATABASE_URL is set), the HTTP server and one worker\n' +
    'process per core. The first start shows an API key, or where standard output is no terminal, writes it to\n' +
    'DATA_DIR/first-key. Ctrl-C or SIGTERM stops it in order.',
  options: listenOptions,
  details: 'All settings: sluice config',
  examples: [
    'sluice start                             # port 8080, data in .sluice',
    'sluice start --port 0 --data-dir /tmp/x  # any free port, data elsewhere',
    'WORKERS=4 sluice start --host 0.0.0.0    # for the whole network',
    'DATABASE_URL=postgres://… sluice start   # on a PostgreSQL of your own',
  ],
  run: async ({ cli, command, terminal }) => {
    const { config, processEnv, serviceLog } = readSettings(cli, command);
    const log = serviceLog('start');
    const stop = listenForStop();
    const startedAt = performance.now();
    await announceNewData((text) => log.info(text), config);
    const service = await startService({
      config,
      processEnv,
      entry: cli.entry,
      log,
      signal: stop.signal,
      onKey: (key) => handOverKey(terminal, 'start', config.dataDir, key),
    });
    stop.onSecond = service.kill;
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    if (!stop.signal.aborted) {
      const workers = plural(config.workers, 'worker');
      const state = `sluice listens on ${service.url} (${workers}, ready in ${seconds} s). Ctrl-C stops it.`;
      announce(terminal, 'start', state);
      await announceConsole(terminal, service);
    }
    const reason = await stop.requested;
    log.info({ reason }, 'stopping');
    const isClean = await service.stop();
    log.info(isClean ? 'stopped' : 'stopped; what was late is done again at the next start');
  },
});

export const serve = defineCommand({
  name: 'serve',
  summary: 'the HTTP server alone',
  description:
    'Starts the HTTP server only; `sluice work` does what it accepts, except small loads. The database is DATABASE_URL,\n' +
    'or the embedded one that runs on DATA_DIR. Waits for it up to a minute, and migrates it.',
  options: listenOptions,
  examples: [
    'DATABASE_URL=postgres://… REDIS_URL=redis://… HOST=0.0.0.0 sluice serve',
    'sluice serve --port 8081     # a second server beside `sluice start`',
  ],
  run: async ({ cli, command, terminal }) => {
    const { config, serviceLog } = readSettings(cli, command);
    const log = serviceLog('serve');
    const stop = listenForStop();
    const waiting = { signal: stop.signal, log };
    await checkAddress(config, false);
    const databaseUrl = await awaitDatabase(config, waiting);
    await retryWhileAway(waiting, () =>
      prepareDatabase(databaseUrl, config.redisUrl === null, log, config.changesDays),
    );
    const system = openServingSystem(config, databaseUrl, log);
    void warnOfRedis(config, log);
    void warnOfStorage(config, system.files, log);
    await retryWhileAway(waiting, () => requireReady(system));
    const key = await retryWhileAway(waiting, () => ensureFirstKey(system));
    if (key !== null) await handOverKey(terminal, 'serve', config.dataDir, key);
    const http = await openHttpService(system);
    if (!stop.signal.aborted) announce(terminal, 'serve', `sluice listens on ${http.url}. Ctrl-C stops it.`);
    const reason = await stop.requested;
    log.info({ reason }, 'stopping');
    const phases = [http.drain, http.stopListening, http.closeSystem];
    await shutDown(phases, config.drainMs + config.shutdownMs, log);
    log.info('stopped');
  },
});
