import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { System } from '../../context.ts';
import { prepareDatabase } from '../../postgres/prepare.ts';
import { type ProvidedDatabase, provideDatabase } from '../../postgres/provide.ts';
import { openSchedulesFile } from '../../schedules/schedules-file.ts';
import { type Phase, shutDown } from '../../shutdown.ts';
import type { Environment } from '../environment.ts';
import { awaitDatabase } from './await-database.ts';
import { checkAddress } from './check-address.ts';
import { warnOfRedis } from './check-redis.ts';
import { ensureFirstKey } from './first-key.ts';
import { type Fleet, startFleet } from './fleet.ts';
import { openServingSystem, openSurface, type Surface } from './surface.ts';
import { warnOfStorage } from './warn-of-storage.ts';
import { whileAway } from './while-away.ts';
import { workerEnvironment } from './worker-environment.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly environment: Environment;
  readonly entry: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Told the first API key, once, when it is made. */
  readonly onKey: (key: string) => void;
  readonly onWait: (sentence: string) => void;
}

/** Everything in one: database, HTTP server, worker processes. */
export interface Service {
  /** Where the HTTP server is reached. */
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
  surface: Surface | null;
  fleet: Fleet | null;
}

/** Starts it all, or, if any of it fails, none. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log } = options;
  const parts: Parts = { database: null, surface: null, fleet: null };
  const stop = (): Promise<boolean> =>
    shutDown(stopPhases(parts, config.shutdownMs), config.drainMs + config.shutdownMs, log);
  try {
    const surface = await startParts(options, parts);
    return {
      url: surface.url,
      system: surface.system,
      get workerPids() {
        return parts.fleet?.pids ?? [];
      },
      stop,
      kill: () => parts.fleet?.kill(),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startParts(options: ServiceOptions, parts: Parts): Promise<Surface> {
  const { config, log, environment, entry } = options;
  // The workers would refuse it, one start after another; whoever starts them is told instead.
  if (config.schedulesFile !== null) await openSchedulesFile(config.schedulesFile, log);
  await checkAddress(config, true);
  if (config.databaseUrl !== null) await awaitDatabase(config, options);
  void warnOfRedis(config, log);
  const database = await provideDatabase(config, log, { share: false });
  parts.database = database;
  await whileAway(options, () => prepareDatabase(database.url, config.redisUrl === null, log));
  const system = openServingSystem(config, database.url, log);
  void warnOfStorage(config, system.files, log);
  const key = await whileAway(options, () => ensureFirstKey(system.db)).catch(async (error: unknown) => {
    await system.close();
    throw error;
  });
  if (key !== null) options.onKey(key);
  const surface = await openSurface(system);
  parts.surface = surface;
  parts.fleet = startFleet({
    size: config.workers,
    entry,
    environment: workerEnvironment(environment, config, database.url),
    log,
  });
  return surface;
}

/** What lets work in stops first, what everything stands on last. */
function stopPhases({ database, surface, fleet }: Parts, totalMs: number): Phase[] {
  const phases: Phase[] = [];
  if (surface !== null) phases.push(surface.drain, surface.stopListening);
  if (fleet !== null) {
    const [run, force] = [() => fleet.stop(), () => fleet.kill()];
    phases.push({ name: 'workers', deadlineMs: totalMs * 0.4, run, force });
  }
  if (surface !== null) phases.push(surface.closeSystem);
  if (database !== null) {
    // Should it be late: it is told to stop already, and goes on doing so when we are gone.
    phases.push({ name: 'database', deadlineMs: totalMs, run: () => database.stop() });
  }
  return phases;
}
