import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { openSystem, type System } from '../../context.ts';
import { type HttpServer, startHttpServer } from '../../http/listen.ts';
import type { Phase } from '../../shutdown.ts';

const drainSlackMs = 1_000;

/** The HTTP server and the system it serves. */
export interface Surface {
  readonly system: System;
  /** Where it is reached, for example http://127.0.0.1:8080. */
  readonly url: string;
  /** In the order in which they are to be stopped. */
  readonly drain: Phase;
  readonly stopListening: Phase;
  readonly closeSystem: Phase;
}

/** Opens the system on a migrated database. */
export function openServingSystem(config: Config, databaseUrl: string, log: Logger): System {
  return openSystem({ config, databaseUrl, log, role: 'serve', ...sharePool(config.poolSize) });
}

/** Two fifths of the connections are for looking; the others are for what is accepted and committed. */
function sharePool(connections: number): { readonly poolSize: number; readonly readPoolSize: number } {
  const readPoolSize = Math.max(1, Math.floor(connections * 0.4));
  return { poolSize: Math.max(2, connections - readPoolSize), readPoolSize };
}

/** Starts to listen; closes the system if it cannot. */
export async function openSurface(system: System): Promise<Surface> {
  let server: HttpServer;
  try {
    // Its share of the time to stop: after it, requests still in flight are cut.
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
