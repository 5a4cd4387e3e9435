import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { System } from '../../context.ts';
import { type ProvidedDatabase, prepareDatabase, provideDatabase } from '../../provide-database.ts';
import { type Phase, shutDown } from '../../shutdown.ts';
import { openSchedulesFile } from '../../sources/schedules/schedules-file.ts';
import type { Tracing } from '../../telemetry/tracing.ts';
import type { ProcessEnv } from '../settings.ts';
import { awaitDatabase, retryWhileAway } from './await-database.ts';
import { ensureFirstKey, type HttpService, openHttpService, openServingSystem } from './http-service.ts';
import { checkAddress, warnOfRedis, warnOfStorage } from './preflight.ts';
import { type Supervisor, superviseWorkers, workerEnvironment } from './supervisor.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly processEnv: ProcessEnv;
  readonly entry: string;
  readonly log: Logger;
  /** By default none. */
  readonly tracing?: Tracing | null;
  readonly signal: AbortSignal;
  /** Called with the first API key, once, when it is made. */
  readonly onKey: (key: string) => void;
  readonly onWait: (sentence: string) => void;
}

/** Everything in one: database, HTTP server, worker processes. */
export interface Service {
  /** The address of the HTTP server. */
  readonly url: string;
  readonly system: System;
  readonly workerPids: readonly number[];
  /** Ordered, within SHUTDOWN_MS. True if nothing had to be forced. */
  stop(): Promise<boolean>;
  /** For a second Ctrl-C: ends the workers now; the database follows its process. */
  kill(): void;
}

interface Parts {
  database: ProvidedDatabase | null;
  http: HttpService | null;
  workers: Supervisor | null;
}

/** Starts it all, or, if any of it fails, none. */
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
  // A wrong file would end every worker at its start: report it here, once.
  if (config.schedulesFile !== null) await openSchedulesFile(config.schedulesFile, log);
  await checkAddress(config, true);
  if (config.databaseUrl !== null) await awaitDatabase(config, options);
  void warnOfRedis(config, log);
  const database = await provideDatabase(config, log, { share: false });
  parts.database = database;
  await retryWhileAway(options, () => prepareDatabase(database.url, config.redisUrl === null, log));
  const system = openServingSystem(config, database.url, log, options.tracing ?? null);
  void warnOfStorage(config, system.files, log);
  const key = await retryWhileAway(options, () => ensureFirstKey(system.db)).catch(async (error: unknown) => {
    await system.close();
    throw error;
  });
  if (key !== null) options.onKey(key);
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

/** Returns the phases of stopping: entrances first, foundations last. */
function stopPhases({ database, http, workers }: Parts, totalMs: number): Phase[] {
  const phases: Phase[] = [];
  if (http !== null) phases.push(http.drain, http.stopListening);
  if (workers !== null) {
    const [run, force] = [() => workers.stop(), () => workers.kill()];
    phases.push({ name: 'workers', deadlineMs: totalMs * 0.4, run, force });
  }
  if (http !== null) phases.push(http.closeSystem);
  if (database !== null) {
    // If it misses the deadline it still stops: it has its signal.
    phases.push({ name: 'database', deadlineMs: totalMs, run: () => database.stop() });
  }
  return phases;
}
