import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { wait } from '../base/retry.ts';
import type { System } from '../context.ts';
import type { ServerState } from '../http/plugins/limits.ts';

/**
 * Number of connections that the server accepts beyond its limit. The server uses these connections
 * to serve monitoring, and to tell other clients why they are refused.
 */
const reserve = 32;

/**
 * Tracks the connections of a server. This is needed because a stopping server waits for
 * connections that have never had a request, and Node does not close such connections. At most
 * `max` connections are served. If one more is opened, it replaces the connection that has been
 * idle longest. If none is idle, a few more connections are accepted (`reserve`), but their
 * requests are refused.
 */
class Connections {
  readonly #max: number;
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  /** Connections without a request, longest idle first. */
  readonly #idle = new Set<Socket>();
  readonly #beyond = new Set<Socket>();
  #isLeaving = false;
  #isStopping = false;

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on('connection', (socket: Socket) => this.#add(socket));
    const connections = this;
    // All responses share this function, because a closure for each response would be most of the
    // overhead of this class.
    function onClosed(this: ServerResponse): void {
      connections.#answered(this);
    }
    // Must run before the app's listener, because the app may respond immediately.
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
    // Node would warn about more than ten listeners. A connection can have more, because each of
    // its waiting requests adds one (`onceClosed`).
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
   * From now on, closes each connection after its current or next response. The response announces
   * this, so that clients reconnect to another server.
   */
  leave(): void {
    this.#isLeaving = true;
    for (const socket of this.#open.keys()) this.endWithAnswers(socket);
  }

  /**
   * Closes idle connections now. Closes each other connection after its response, which announces
   * the closing.
   */
  closeIdle(): void {
    this.#isStopping = true;
    this.leave();
    for (const [socket, pending] of this.#open) if (pending.size === 0) socket.destroy();
  }

  /**
   * Announces in the pending responses of a connection that the connection will be closed after
   * them. Returns false if there are none, or if a request has not fully arrived.
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

/** Limits the number of connections to half of the file descriptors that this process may open. */
function boundConnections(max: number): number {
  try {
    const [, descriptors] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    if (descriptors === undefined) return max;
    return Math.max(1, Math.min(max, Math.floor(Number(descriptors) / 2) - reserve));
  } catch {
    // The file exists only on Linux.
    return max;
  }
}

export interface HttpServer {
  /** Base URL at which this machine can reach the server: `http://host:port`. */
  readonly address: string;
  /** Reports at /health/ready that the server will stop, and continues to serve for `drainMs`. */
  drain(): Promise<void>;
  /**
   * Stops accepting connections and finishes requests in progress. Closes the connections that
   * remain after `shutdownMs`.
   */
  stop(): Promise<void>;
}

export async function startHttpServer(system: System): Promise<HttpServer> {
  const { config, log } = system;
  // Imported here, because loading all routes and schemas takes a while and only commands that
  // serve requests need them.
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
  // Clients cannot connect to `0.0.0.0` or `::`, which mean all interfaces. The URL contains
  // `localhost` instead.
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${binding.port}`;
}
