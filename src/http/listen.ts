import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { System } from '../context.ts';
import type { ServerState } from './plugins/load-shedding.ts';

interface OpenConnections {
  /** From now on every answer is the last of its connection, and says so: whoever keeps connections goes elsewhere. */
  endWithAnswers(): void;
  /** Closes those without a request, now and as they come; the others close with their answer, which says so. */
  closeIdle(): void;
  /** Of a connection beyond the bound, on which nothing but what is always served is answered. */
  isBeyond(socket: Socket): boolean;
}

/** Connections beyond the bound, so that whoever watches the process is still answered, and the others learn why not. */
const reserve = 32;

/**
 * Node closes connections that wait for their next request, but not those that never had one, which pools and browsers
 * open in advance: a stop would wait for them until their headers are overdue.
 *
 * With `most` of them open, a new one takes the place of the one that has waited longest for a request, or for the rest of
 * one's head. While all have requests under way, new ones are let in to be refused: so many that refusing costs little.
 */
function trackConnections(server: Server, most: number): OpenConnections {
  const open = new Map<Socket, Set<ServerResponse>>();
  /** Those without a request, the longest without first; of those beyond the bound all. */
  const idle = new Set<Socket>();
  const beyond = new Set<Socket>();
  let leaving = false;
  let stopping = false;
  const forget = (socket: Socket): void => {
    for (const known of [open, idle, beyond]) known.delete(socket);
  };
  const makeRoom = (socket: Socket): void => {
    if (open.size - beyond.size < most) return;
    const [longest] = idle;
    if (longest !== undefined) {
      forget(longest);
      longest.destroy();
      return;
    }
    const [first] = beyond;
    if (beyond.size >= reserve && first !== undefined) {
      forget(first);
      first.destroy();
    }
    beyond.add(socket);
  };
  server.on('connection', (socket: Socket) => {
    if (stopping) socket.destroy();
    makeRoom(socket);
    open.set(socket, new Set());
    if (!beyond.has(socket)) idle.add(socket);
    socket.once('close', () => forget(socket));
  });
  // One function for all answers: a closure for each, and its wrapper, would be most of what this costs a request.
  function onClosed(this: ServerResponse): void {
    const { socket } = this.req;
    const owed = open.get(socket);
    if (owed === undefined) return;
    owed.delete(this);
    if (owed.size > 0) return;
    // What of the answer is still on its way out is sent first.
    if (stopping) socket.destroySoon();
    else if (!beyond.has(socket)) idle.add(socket);
  }
  // Before the app, which may answer at once.
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const owed = open.get(socket);
    if (owed === undefined) return;
    owed.add(response);
    idle.delete(socket);
    if (leaving || beyond.has(socket)) response.shouldKeepAlive = false;
    response.on('close', onClosed);
  });
  const endWithAnswers = (): void => {
    leaving = true;
    for (const owed of open.values()) for (const response of owed) response.shouldKeepAlive = false;
  };
  return {
    endWithAnswers,
    closeIdle() {
      stopping = true;
      endWithAnswers();
      for (const [socket, owed] of open) if (owed.size === 0) socket.destroy();
    },
    isBeyond: (socket) => beyond.has(socket),
  };
}

/** As many connections as are wanted, and no more than half of the descriptors that this process may open. */
function boundConnections(wanted: number): number {
  const descriptors = openFilesLimit();
  return descriptors === null ? wanted : Math.max(1, Math.min(wanted, Math.floor(descriptors / 2) - reserve));
}

/** Null where the system does not say, or sets none. */
function openFilesLimit(): number | null {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return limit === null ? null : Number(limit[1]);
  } catch {
    return null;
  }
}

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
  const state: ServerState = { closing: false };
  const app = createApp(system, state);
  const connections = trackConnections(app.server, boundConnections(config.maxConnections));
  state.isBeyond = connections.isBeyond;
  await app.listen({ host: config.host, port: config.port });
  const address = addressOf(app, config.host);
  log.info({ address }, 'listening');
  let stopped: Promise<void> | undefined;
  return {
    address,
    async drain() {
      if (config.drainMs === 0) return;
      state.closing = true;
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
  { config, log, live }: System,
  app: FastifyInstance,
  connections: OpenConnections,
): Promise<void> {
  const deadline = setTimeout(() => {
    log.warn('requests in flight are cut: the time to stop is up');
    app.server.closeAllConnections();
  }, config.shutdownMs);
  try {
    // They would never end by themselves; whoever watches comes back, to another server.
    live.stop();
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
