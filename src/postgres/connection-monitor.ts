import type { Socket } from 'node:net';
import type pg from 'pg';
import type { Logger } from 'pino';
import { type Poller, startWatch } from '../base/timers.ts';
import {
  askServer,
  endSessions,
  KEEP_ALIVE_IDLE_MS,
  type PostgresSession,
  readActivities,
  readSession,
  type SessionSettings,
} from './session.ts';

// A connection can become silent without being closed, for example if an address moves, a firewall
// forgets the connection, or a pooler hangs. A statement would then wait forever. Once a second,
// this monitor checks whether the byte counters of sockets with a waiting statement have changed.
// If a response is overdue, it reads the activity of the session on a new connection. Unless the
// session works or waits for a lock, the monitor ends it, so that it cannot commit later, and
// destroys the socket. The caller gets the error of a lost connection.
const tickMs = 1_000;
/**
 * Number of checks without a sent or received byte after which a response is overdue. A check right
 * after a pause of this process does not count.
 */
const silentTicksAllowed = 5;
/**
 * Number of sent bytes that allow one more check, because a slow network may still be sending them.
 */
const bytesPerTick = 512 * 1024;
/** Milliseconds of unchanged activity after which a session is ended. */
const confirmMs = 900;

interface Connection {
  readonly client: pg.ClientBase;
  session: PostgresSession | null;
  /**
   * True if the connection only listens (LISTEN) and therefore usually receives nothing. The
   * monitor then sends a query now and then.
   */
  listens: boolean;
  isIdle: boolean;
  /** Number of received bytes at the last check. */
  bytesRead: number;
  bytesSent: number;
  unanswered: number;
  readAt: number;
  movedAt: number;
  silentTicks: number;
  /** Last result of `readActivities`, and when it first appeared. `null` if the session worked. */
  evidence: string | null;
  evidenceAt: number;
}

interface ConnectionMonitorOptions {
  readonly url: string;
  readonly log: Logger | null;
}

interface WatchOptions {
  readonly listens?: boolean;
  readonly settings?: SessionSettings;
}

export class ConnectionMonitor {
  readonly #log: Logger | null;
  readonly #url: string;
  readonly #connections = new Map<pg.ClientBase, Connection>();
  #ticks: Poller | undefined;
  #tickedAt = 0;
  #isJudging = false;
  #judgeError: Error | null = null;

  constructor({ url, log }: ConnectionMonitorOptions) {
    this.#log = log;
    this.#url = url;
  }

  async watch(client: pg.ClientBase, { listens = false, settings }: WatchOptions = {}): Promise<void> {
    const watched = this.#connections.get(client);
    if (watched !== undefined) {
      watched.listens ||= listens;
      return;
    }
    const now = performance.now();
    const connection: Connection = {
      client,
      session: null,
      listens,
      isIdle: false,
      bytesRead: 0,
      bytesSent: 0,
      unanswered: 0,
      readAt: now,
      movedAt: now,
      silentTicks: 0,
      evidence: null,
      evidenceAt: now,
    };
    this.#connections.set(client, connection);
    client.once('end', () => this.#connections.delete(client));
    socketOf(client).setKeepAlive(true, KEEP_ALIVE_IDLE_MS);
    this.#start();
    try {
      connection.session = await readSession(client, settings);
    } catch (error) {
      this.#connections.delete(client);
      throw error;
    }
  }

  /** Records which connections are idle. The pool's `onConnect` calls `watch`. */
  watchPool(pool: pg.Pool): void {
    pool.on('acquire', (client) => this.#setIdle(client, false));
    pool.on('release', (_, client) => this.#setIdle(client, true));
  }

  /**
   * Checks that the database responds.
   * @throws an error if a session is silent without working or waiting for a lock, or cannot be
   * examined
   */
  assertAnswering(): void {
    const silent = [...this.#connections.values()].filter(isSuspect);
    if (silent.length === 0) return;
    const count = `${silent.length} of ${this.#connections.size} connections to the database give no answer`;
    if (this.#judgeError !== null) throw new Error(count, { cause: this.#judgeError });
    if (silent.some(({ evidence }) => evidence !== null)) throw new Error(count);
  }

  close(): void {
    void this.#ticks?.stop();
    this.#ticks = undefined;
    this.#connections.clear();
  }

  #setIdle(client: pg.ClientBase, isIdle: boolean): void {
    const connection = this.#connections.get(client);
    if (connection !== undefined) connection.isIdle = isIdle;
  }

  #start(): void {
    if (this.#ticks !== undefined) return;
    this.#tickedAt = performance.now();
    this.#ticks = startWatch(tickMs, () => this.#tick());
  }

  #tick(): void {
    const now = performance.now();
    // After a pause, received bytes may still be unread.
    const isLate = now - this.#tickedAt > 2 * tickMs;
    this.#tickedAt = now;
    for (const connection of this.#connections.values()) {
      if (socketOf(connection.client).destroyed) this.#connections.delete(connection.client);
      else checkConnection(connection, now, isLate);
    }
    const suspects = [...this.#connections.values()].filter(isSuspect);
    if (suspects.length === 0) this.#judgeError = null;
    else if (!this.#isJudging) void this.#judge(suspects);
    if (this.#connections.size === 0) this.close();
  }

  /** Ends suspect sessions that are silent. Never rejects. */
  async #judge(suspects: readonly Connection[]): Promise<void> {
    this.#isJudging = true;
    try {
      // If the session of a connection is unknown, the connection has not run a statement yet.
      for (const { client, session } of suspects) if (session === null) destroy(client);
      await askServer(this.#url, async (server) => {
        const candidates = suspects.filter(isNamed);
        const activities = await readActivities(
          server,
          candidates.map(({ session }) => session),
        );
        const silent = candidates.filter((connection, at) => isSilent(connection, activities[at] ?? null));
        if (silent.length > 0) await this.#end(server, silent);
      });
      this.#judgeError = null;
    } catch (error) {
      this.#judgeError = error as Error;
    } finally {
      this.#isJudging = false;
    }
  }

  /**
   * Ends and destroys the silent connections. Does the same to idle connections that have received
   * nothing since the silence began, because they may have the same fault.
   */
  async #end(server: pg.Client, silent: readonly Named[]): Promise<void> {
    const since = Math.max(...silent.map(({ movedAt }) => movedAt));
    const idle = [...this.#connections.values()]
      .filter(isNamed)
      .filter((connection) => connection.isIdle && connection.readAt < since);
    for (const { client } of idle) destroy(client);
    const lost = [...silent, ...idle.filter((connection) => !silent.includes(connection))];
    const pids = lost.map(({ session }) => session.pid);
    this.#log?.warn({ pids }, 'connections to the database went silent and are replaced');
    try {
      await endSessions(
        server,
        lost.map(({ session }) => session),
      );
    } finally {
      for (const { client } of silent) destroy(client);
    }
  }
}

type Named = Connection & { readonly session: PostgresSession };

function isNamed(connection: Connection): connection is Named {
  return connection.session !== null;
}

function isSuspect({ silentTicks, unanswered }: Connection): boolean {
  return silentTicks >= silentTicksAllowed + Math.floor(unanswered / bytesPerTick);
}

function checkConnection(connection: Connection, now: number, isLate: boolean): void {
  const { client } = connection;
  const socket = socketOf(client);
  const bytesRead = socket.bytesRead;
  const bytesSent = socket.bytesWritten - socket.writableLength;
  if (bytesRead !== connection.bytesRead) {
    connection.readAt = now;
    connection.unanswered = 0;
  } else {
    connection.unanswered += bytesSent - connection.bytesSent;
  }
  const hasMoved = bytesRead !== connection.bytesRead || bytesSent !== connection.bytesSent;
  connection.bytesRead = bytesRead;
  connection.bytesSent = bytesSent;
  // If there are unread bytes, the server has responded, and this process is slow.
  if (hasMoved || !isAwaited(client) || socket.readableLength > 0) {
    connection.movedAt = now;
    connection.silentTicks = 0;
    connection.evidence = null;
    const mayBeDead = connection.listens && now - connection.readAt >= silentTicksAllowed * tickMs;
    if (mayBeDead && !isAwaited(client)) client.query('select').catch(() => undefined);
  } else if (!isLate) {
    connection.silentTicks++;
  }
}

/** True if the server still has to respond, or to close the connection. */
function isAwaited(client: pg.ClientBase): boolean {
  return (client as unknown as Internals).readyForQuery === false || socketOf(client).writableEnded;
}

/**
 * True if no byte has moved since the last check and the activity has been the same for
 * `confirmMs`. Before that time has passed, a response may still be on its way.
 */
function isSilent(connection: Connection, evidence: string | null): boolean {
  const { client, silentTicks, bytesSent, bytesRead } = connection;
  const socket = socketOf(client);
  if (
    silentTicks === 0 ||
    socket.bytesRead !== bytesRead ||
    socket.bytesWritten - socket.writableLength !== bytesSent
  ) {
    return false;
  }
  const now = performance.now();
  if (evidence !== connection.evidence) connection.evidenceAt = now;
  connection.evidence = evidence;
  // If there is no evidence, the session works. The session is examined again after the same delay.
  if (evidence === null) connection.silentTicks = 0;
  return evidence !== null && now - connection.evidenceAt >= confirmMs;
}

/** Fields that pg does not document. They are unchanged since its first versions. */
interface Internals {
  readonly connection: { readonly stream: Socket };
  readonly readyForQuery?: boolean | null;
}

function socketOf(client: pg.ClientBase): Socket {
  return (client as unknown as Internals).connection.stream;
}

function destroy(client: pg.ClientBase): void {
  const socket = socketOf(client);
  // After `end`, the caller no longer listens for errors, so the socket is destroyed without an
  // error.
  if (socket.writableEnded) {
    socket.destroy();
    return;
  }
  const error = new Error('Connection terminated: the database gave no answer');
  socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
}
