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

// A connection can go silent without being closed: an address moves, a firewall forgets it, a
// pooler hangs. A statement then waits for ever, and with it a chunk, a commit lane or an export.
// The monitor looks at every awaited connection once a second, through the socket's byte counters.
// When an answer is overdue, it asks over a new connection what the session is doing. A session
// that works or waits for a lock is left alone. A silent one is ended first, so that it cannot
// commit later, and then its socket is destroyed. The caller gets the error of any lost connection.
const tickMs = 1_000;
/** Looks without a byte before an answer is overdue. A pause of our process is not silence. */
const silentTicksAllowed = 5;
/** One more look per so many sent bytes, which a slow network may still carry. */
const bytesPerTick = 512 * 1024;
/** Evidence counts if unchanged for this time. */
const confirmMs = 900;

interface Connection {
  readonly client: pg.ClientBase;
  session: PostgresSession | null;
  /** A listening connection must be queried to show that it is alive. */
  readonly listens: boolean;
  idle: boolean;
  /** Bytes read, and bytes sent, at the last look. */
  read: number;
  sent: number;
  unanswered: number;
  readAt: number;
  movedAt: number;
  silentTicks: number;
  /** Suspicion against the session, and when it arose. */
  evidence: string | null;
  evidenceAt: number;
}

export interface ConnectionMonitorOptions {
  readonly url: string;
  readonly log: Logger | null;
}

export interface WatchOptions {
  /** Queries the connection when it is idle, too. */
  readonly listens?: boolean;
  readonly settings?: SessionSettings;
}

export class ConnectionMonitor {
  readonly #log: Logger | null;
  readonly #url: string;
  readonly #connections = new Map<pg.ClientBase, Connection>();
  #ticks: Poller | undefined;
  #tickedAt = 0;
  #asking = false;
  #unasked: Error | null = null;

  constructor({ url, log }: ConnectionMonitorOptions) {
    this.#log = log;
    this.#url = url;
  }

  async watch(client: pg.ClientBase, { listens = false, settings }: WatchOptions = {}): Promise<void> {
    if (this.#connections.has(client)) return;
    const now = performance.now();
    const connection: Connection = {
      client,
      session: null,
      listens,
      idle: false,
      read: 0,
      sent: 0,
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

  /** Tracks idle connections. The pool's `onConnect` calls `watch`. */
  watchPool(pool: pg.Pool): void {
    pool.on('acquire', (client) => this.#setIdle(client, false));
    pool.on('release', (_, client) => this.#setIdle(client, true));
  }

  /** @throws if a silent session does no work for us or cannot be examined. */
  assertAnswering(): void {
    const silent = [...this.#connections.values()].filter(isSuspect);
    if (silent.length === 0) return;
    const count = `${silent.length} of ${this.#connections.size} connections to the database give no answer`;
    if (this.#unasked !== null) throw new Error(count, { cause: this.#unasked });
    if (silent.some(({ evidence }) => evidence !== null)) throw new Error(count);
  }

  close(): void {
    void this.#ticks?.stop();
    this.#ticks = undefined;
    this.#connections.clear();
  }

  #setIdle(client: pg.ClientBase, idle: boolean): void {
    const connection = this.#connections.get(client);
    if (connection !== undefined) connection.idle = idle;
  }

  #start(): void {
    if (this.#ticks !== undefined) return;
    this.#tickedAt = performance.now();
    this.#ticks = startWatch(tickMs, () => this.#tick());
  }

  #tick(): void {
    const now = performance.now();
    // After our own pause, unread answers may exist.
    const late = now - this.#tickedAt > 2 * tickMs;
    this.#tickedAt = now;
    for (const connection of this.#connections.values()) {
      if (socketOf(connection.client).destroyed) this.#connections.delete(connection.client);
      else look(connection, now, late);
    }
    const suspects = [...this.#connections.values()].filter(isSuspect);
    if (suspects.length === 0) this.#unasked = null;
    else if (!this.#asking) void this.#judge(suspects);
    if (this.#connections.size === 0) this.close();
  }

  /** Never rejects. */
  async #judge(suspects: readonly Connection[]): Promise<void> {
    this.#asking = true;
    try {
      // A connection without a known session has no statement.
      for (const { client, session } of suspects) if (session === null) destroy(client);
      await askServer(this.#url, async (server) => {
        const named = suspects.filter(isNamed);
        const found = await readActivities(
          server,
          named.map(({ session }) => session),
        );
        const silent = named.filter((connection, at) => isSilent(connection, found[at] ?? null));
        if (silent.length > 0) await this.#end(server, silent);
      });
      this.#unasked = null;
    } catch (error) {
      this.#unasked = error as Error;
    } finally {
      this.#asking = false;
    }
  }

  /** Idle connections may be silent too, and are replaced. */
  async #end(server: pg.Client, silent: readonly Named[]): Promise<void> {
    const since = Math.max(...silent.map(({ movedAt }) => movedAt));
    const idle = [...this.#connections.values()]
      .filter(isNamed)
      .filter((connection) => connection.idle && connection.readAt < since);
    for (const { client } of idle) destroy(client);
    const ended = [...silent, ...idle.filter((connection) => !silent.includes(connection))];
    const pids = ended.map(({ session }) => session.pid);
    this.#log?.warn({ pids }, 'connections to the database went silent and are replaced');
    try {
      await endSessions(
        server,
        ended.map(({ session }) => session),
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

function look(connection: Connection, now: number, late: boolean): void {
  const { client } = connection;
  const socket = socketOf(client);
  const read = socket.bytesRead;
  const sent = socket.bytesWritten - socket.writableLength;
  if (read !== connection.read) {
    connection.readAt = now;
    connection.unanswered = 0;
  } else {
    connection.unanswered += sent - connection.sent;
  }
  const moved = read !== connection.read || sent !== connection.sent;
  connection.read = read;
  connection.sent = sent;
  // Unread bytes mean that we are late, not the server.
  if (moved || !isAwaited(client) || socket.readableLength > 0) {
    connection.movedAt = now;
    connection.silentTicks = 0;
    connection.evidence = null;
    const mayBeDead = connection.listens && now - connection.readAt >= silentTicksAllowed * tickMs;
    if (mayBeDead && !isAwaited(client)) client.query('select').catch(() => undefined);
  } else if (!late) {
    connection.silentTicks++;
  }
}

/** Returns whether the server owes an answer to a statement or to the connection's end. */
function isAwaited(client: pg.ClientBase): boolean {
  return (client as unknown as Internals).readyForQuery === false || socketOf(client).writableEnded;
}

/** Returns whether the evidence persists without a byte. At first an answer may be on its way. */
function isSilent(connection: Connection, evidence: string | null): boolean {
  const { client, silentTicks, sent, read } = connection;
  const socket = socketOf(client);
  if (
    silentTicks === 0 ||
    socket.bytesRead !== read ||
    socket.bytesWritten - socket.writableLength !== sent
  ) {
    return false;
  }
  const now = performance.now();
  if (evidence !== connection.evidence) connection.evidenceAt = now;
  connection.evidence = evidence;
  // The session works. It is examined again after the same delay.
  if (evidence === null) connection.silentTicks = 0;
  return evidence !== null && now - connection.evidenceAt >= confirmMs;
}

/** Not public in pg, but stable since its first versions. */
interface Internals {
  readonly connection: { readonly stream: Socket };
  readonly readyForQuery?: boolean | null;
}

function socketOf(client: pg.ClientBase): Socket {
  return (client as unknown as Internals).connection.stream;
}

function destroy(client: pg.ClientBase): void {
  const socket = socketOf(client);
  // The caller of `end` no longer listens for errors.
  if (socket.writableEnded) {
    socket.destroy();
    return;
  }
  const error = new Error('Connection terminated: the database gave no answer');
  socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
}
