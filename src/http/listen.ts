import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { System } from '../context.ts';
import type { Doors } from './app.ts';
import { boundConnections, type OpenConnections, trackConnections } from './open-connections.ts';

export interface HttpServer {
  /** `http://host:port`, as it can be called from this machine. */
  readonly address: string;
  /**
   * Says at /health/ready that it is about to stop, and goes on serving for `drainMs`, so that load balancers notice in
   * time to send no more.
   */
  drain(): Promise<void>;
  /** Takes no more connections, finishes the requests in flight, and after `shutdownMs` cuts those left. */
  stop(): Promise<void>;
}

/** Listens on the host and port of the configuration. */
export async function startHttpServer(system: System): Promise<HttpServer> {
  const { config, log } = system;
  // Routes and their schemas take a while to load: only those who serve wait for it, not every command.
  const { createApp } = await import('./app.ts');
  const doors: Doors = { closing: false };
  const app = createApp(system, doors);
  const connections = trackConnections(app.server, boundConnections(config.maxConnections));
  doors.isBeyond = connections.isBeyond;
  await app.listen({ host: config.host, port: config.port });
  const address = addressOf(app, config.host);
  log.info({ address }, 'listening');
  let stopped: Promise<void> | undefined;
  return {
    address,
    async drain() {
      if (config.drainMs === 0) return;
      doors.closing = true;
      connections.endWithAnswers();
      log.info({ drain_ms: config.drainMs }, 'draining');
      await delay(config.drainMs);
    },
    stop() {
      stopped ??= stopApp(system, app, connections);
      return stopped;
    },
  };
}

async function stopApp(
  { config, log }: System,
  app: FastifyInstance,
  connections: OpenConnections,
): Promise<void> {
  const deadline = setTimeout(() => {
    log.warn('requests in flight are cut: the time to stop is up');
    app.server.closeAllConnections();
  }, config.shutdownMs);
  try {
    const closed = app.close();
    connections.closeIdle();
    await closed;
  } finally {
    clearTimeout(deadline);
  }
}

function addressOf(app: FastifyInstance, host: string): string {
  const bound = app.server.address();
  if (bound === null || typeof bound === 'string') throw new Error('the server has no address');
  // "Every interface" is no address to call.
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${bound.port}`;
}
