import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { wait } from '../base/retry.ts';
import type { System } from '../context.ts';
import type { ServerState } from '../http/plugins/limits.ts';

/** The number of connections beyond the bound, so that those who watch the process are still answered, and others learn why not. */
const reserve = 32;

/**
 * Connections that never had a request, which Node does not close: a stop would wait for them.
 *
 * With `most` open, a new connection replaces the one that has waited longest for a request. If all
 * have requests under way, new ones are let in to be refused, few enough to be cheap.
 */
class Connections {
  readonly #most: number;
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  /** Connections without a request, the longest without first. */
  readonly #idle = new Set<Socket>();
  readonly #beyond = new Set<Socket>();
  #isLeaving = false;
  #isStopping = false;

  constructor(server: Server, most: number) {
    this.#most = most;
    server.on('connection', (socket: Socket) => this.#add(socket));
    const connections = this;
    // All answers share one function: a closure for each would be most of what this costs a request.
    function onClosed(this: ServerResponse): void {
      connections.#answered(this);
    }
    // Before the app, which may answer at once.
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      const owed = this.#open.get(socket);
      if (owed === undefined) return;
      owed.add(response);
      this.#idle.delete(socket);
      if (this.#isLeaving || this.#beyond.has(socket)) response.shouldKeepAlive = false;
      response.on('close', onClosed);
    });
  }

  #add(socket: Socket): void {
    if (this.#isStopping) socket.destroy();
    this.#makeRoom(socket);
    this.#open.set(socket, new Set());
    if (!this.#beyond.has(socket)) this.#idle.add(socket);
    socket.once('close', () => this.#forget(socket));
    // Each of the requests that wait on a connection listens for its end (`onceClosed`), and there may be many.
    socket.setMaxListeners(0);
  }

  #makeRoom(socket: Socket): void {
    if (this.#open.size - this.#beyond.size < this.#most) return;
    const [longest] = this.#idle;
    if (longest !== undefined) {
      this.#cut(longest);
      return;
    }
    const [first] = this.#beyond;
    if (this.#beyond.size >= reserve && first !== undefined) this.#cut(first);
    this.#beyond.add(socket);
  }

  #cut(socket: Socket): void {
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    for (const known of [this.#open, this.#idle, this.#beyond]) known.delete(socket);
  }

  #answered(response: ServerResponse): void {
    const { socket } = response.req;
    const owed = this.#open.get(socket);
    if (owed === undefined) return;
    owed.delete(response);
    if (owed.size > 0) return;
    // The rest of the answer is sent first.
    if (this.#isStopping) socket.destroySoon();
    else if (!this.#beyond.has(socket)) this.#idle.add(socket);
  }

  /** Makes every answer the last of its connection, and says so, so that clients that keep connections go elsewhere. */
  leave(): void {
    this.#isLeaving = true;
    for (const socket of this.#open.keys()) this.endWithAnswers(socket);
  }

  /** Closes connections without a request, now and as they come. The others close with their answer, which says so. */
  closeIdle(): void {
    this.#isStopping = true;
    this.leave();
    for (const [socket, owed] of this.#open) if (owed.size === 0) socket.destroy();
  }

  /** Closes a connection with the answers that it waits for; false if it waits for none, or still sends a request. */
  endWithAnswers(socket: Socket): boolean {
    const owed = [...(this.#open.get(socket) ?? [])];
    for (const response of owed) response.shouldKeepAlive = false;
    return owed.length > 0 && owed.every(({ req }) => req.complete);
  }

  isBeyond(socket: Socket): boolean {
    return this.#beyond.has(socket);
  }
}

/** Bounds the wanted number of connections by half of the descriptors that this process may open. */
function boundConnections(wanted: number): number {
  try {
    const [, descriptors] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    if (descriptors === undefined) return wanted;
    return Math.max(1, Math.min(wanted, Math.floor(Number(descriptors) / 2) - reserve));
  } catch {
    // Not Linux.
    return wanted;
  }
}

export interface HttpServer {
  /** The address at which this machine can call the server: `http://host:port`. */
  readonly address: string;
  /** Reports at /health/ready that the server stops, and serves for another `drainMs`. */
  drain(): Promise<void>;
  /** Takes no more connections, finishes the requests in flight, and cuts those that are left after `shutdownMs`. */
  stop(): Promise<void>;
}

export async function startHttpServer(system: System): Promise<HttpServer> {
  const { config, log } = system;
  // Routes and their schemas take a while to load: only commands that serve wait for it.
  const { createApp } = await import('./app.ts');
  const state: ServerState = { closing: false };
  const app = createApp(system, state);
  const connections = new Connections(app.server, boundConnections(config.maxConnections));
  state.isBeyond = (socket) => connections.isBeyond(socket);
  state.endWithAnswers = (socket) => connections.endWithAnswers(socket);
  await app.listen({ host: config.host, port: config.port });
  const address = addressOf(app, config.host);
  log.info({ address }, 'listening');
  let stopped: Promise<void> | undefined;
  return {
    address,
    async drain() {
      if (config.drainMs === 0) return;
      state.closing = true;
      connections.leave();
      log.info({ drain_ms: config.drainMs }, 'draining');
      await wait(config.drainMs);
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
  connections: Connections,
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
  // The address of all interfaces cannot be called.
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${bound.port}`;
}
