import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { wait } from '../base/retry.ts';
import type { System } from '../context.ts';
import type { ServerState } from '../http/plugins/limits.ts';

/**
 * Maximum number of connections that are accepted beyond the limit. They serve monitoring, and tell
 * other clients why their requests are refused.
 */
const reserve = 32;

/**
 * Tracks connections, because Node does not close those that never had a request. Beyond `max`, a
 * new connection replaces the connection that has been idle for the longest time. If no connection
 * is idle, the new one is accepted as a reserve, but its requests are refused.
 */
class Connections {
  readonly #max: number;
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  /** Longest idle first. */
  readonly #idle = new Set<Socket>();
  readonly #beyond = new Set<Socket>();
  #isLeaving = false;
  #isStopping = false;

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on('connection', (socket: Socket) => this.#add(socket));
    const connections = this;
    // A closure for each response would be most of the overhead of this class.
    function onClosed(this: ServerResponse): void {
      connections.#answered(this);
    }
    // This listener must run before the app's listener, which may respond immediately.
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      const pending = this.#open.get(socket);
      if (pending === undefined) return;
      pending.add(response);
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
    // Each waiting request of a connection adds a listener. Node would warn of more than ten.
    socket.setMaxListeners(0);
  }

  #makeRoom(socket: Socket): void {
    if (this.#open.size - this.#beyond.size < this.#max) return;
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
    for (const sockets of [this.#open, this.#idle, this.#beyond]) sockets.delete(socket);
  }

  #answered(response: ServerResponse): void {
    const { socket } = response.req;
    const pending = this.#open.get(socket);
    if (pending === undefined) return;
    pending.delete(response);
    if (pending.size > 0) return;
    // The rest of the response is sent before the connection is closed.
    if (this.#isStopping) socket.destroySoon();
    else if (!this.#beyond.has(socket)) this.#idle.add(socket);
  }

  /**
   * Closes each connection after its current or next response. The response announces the end of
   * the connection, so that clients reconnect to another server.
   */
  leave(): void {
    this.#isLeaving = true;
    for (const socket of this.#open.keys()) this.endWithAnswers(socket);
  }

  /** Closes idle connections now, and every other connection after its response. */
  closeIdle(): void {
    this.#isStopping = true;
    this.leave();
    for (const [socket, pending] of this.#open) if (pending.size === 0) socket.destroy();
  }

  /**
   * Closes a connection after its pending responses. Returns false if no response is pending, or if
   * a request has not fully arrived.
   */
  endWithAnswers(socket: Socket): boolean {
    const pending = [...(this.#open.get(socket) ?? [])];
    for (const response of pending) response.shouldKeepAlive = false;
    return pending.length > 0 && pending.every(({ req }) => req.complete);
  }

  isBeyond(socket: Socket): boolean {
    return this.#beyond.has(socket);
  }
}

/** Limits the connections, so that half of the file descriptors remain for other uses. */
function boundConnections(max: number): number {
  try {
    const [, descriptors] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    if (descriptors === undefined) return max;
    return Math.max(1, Math.min(max, Math.floor(Number(descriptors) / 2) - reserve));
  } catch {
    // `/proc` exists only on Linux.
    return max;
  }
}

export interface HttpServer {
  /** URL for clients on this machine: `http://host:port`. */
  readonly address: string;
  /** Reports at /health/ready that the server will stop, and serves for another `drainMs`. */
  drain(): Promise<void>;
  /** Finishes requests in progress. Cuts the connections that remain after `shutdownMs`. */
  stop(): Promise<void>;
}

export async function startHttpServer(system: System): Promise<HttpServer> {
  const { config, log } = system;
  // Loading all routes and schemas takes a while. Only commands that serve requests need them.
  const { createApp } = await import('./app.ts');
  const state: ServerState = { closing: false };
  const app = createApp(system, state);
  const connections = new Connections(app.server, boundConnections(config.maxConnections));
  state.isBeyond = (socket) => connections.isBeyond(socket);
  state.endWithAnswers = (socket) => connections.endWithAnswers(socket);
  await app.listen({ host: config.host, port: config.port });
  const address = addressOf(app, config.host);
  log.info({ address }, 'listening');
  let stopping: Promise<void> | undefined;
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
      stopping ??= stopApp(system, app, connections);
      return stopping;
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
    const closing = app.close();
    connections.closeIdle();
    await closing;
  } finally {
    clearTimeout(deadline);
  }
}

function addressOf(app: FastifyInstance, host: string): string {
  const binding = app.server.address();
  if (binding === null || typeof binding === 'string') throw new Error('the server has no address');
  // Clients cannot connect to `0.0.0.0` or `::`, which mean all interfaces.
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${binding.port}`;
}
