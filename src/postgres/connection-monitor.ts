import type { Socket } from 'node:net';
import type pg from 'pg';
import type { Logger } from 'pino';
import {
  askServer,
  endSessions,
  KEEP_ALIVE_IDLE_MS,
  type PostgresSession,
  readActivities,
  readSession,
  type SessionSettings,
} from './session.ts';

/*
 * A connection can go silent without being closed: an address moves to another machine, a firewall forgets it, a pooler
 * hangs. Neither end is told. A statement then waits for ever, and with it a chunk, a lane of the commit window or an
 * export, although new connections work.
 *
 * So every connection that we wait for is looked at once a second. Looking costs the statement nothing: the socket counts
 * its bytes. When an answer is overdue we ask, over a new connection, what the session is doing. One that works, or waits
 * for a lock, is left alone, however long it takes. One that is gone, or waits for us, is silent: the session is ended
 * first, so that nothing of it can be committed later, then the socket is destroyed. Whoever waits learns what he would
 * learn of any lost connection.
 */
const tickMs = 1_000;
/** An answer is overdue after so many looks without a byte, so that a pause of our own process is not taken for silence; … */
const silentTicksAllowed = 5;
/** … and after one more for every so many bytes that we sent, which a slow network may still carry. */
const bytesPerTick = 512 * 1024;
/** Evidence counts if it is still the same after so long. */
const confirmMs = 900;

interface Connection {
  readonly client: pg.ClientBase;
  /** `null` until the session's identity is known. */
  session: PostgresSession | null;
  /** The connection only listens; a question of ours tells whether it is alive. */
  readonly listens: boolean;
  idle: boolean;
  /** Bytes read, and bytes that left us: what the last look found. */
  read: number;
  sent: number;
  /** Bytes sent since something was read. */
  unanswered: number;
  readAt: number;
  movedAt: number;
  silentTicks: number;
  /** The suspicion against the session, and when it arose. */
  evidence: string | null;
  evidenceAt: number;
}

export interface ConnectionMonitorOptions {
  readonly url: string;
  readonly log: Logger | null;
}

export interface WatchOptions {
  /** Asks it for a sign of life while nobody uses it, too. */
  readonly listens?: boolean;
  readonly settings?: SessionSettings;
}

export class ConnectionMonitor {
  readonly #log: Logger | null;
  readonly #url: string;
  readonly #connections = new Map<pg.ClientBase, Connection>();
  #timer: NodeJS.Timeout | undefined;
  #tickedAt = 0;
  #asking = false;
  #unasked: Error | null = null;

  constructor({ url, log }: ConnectionMonitorOptions) {
    this.#log = log;
    this.#url = url;
  }

  /** Sets up the session of a connected client, and watches it until it ends. */
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

  /** Has the pool's `onConnect` call `watch`; this tells which of its connections lie idle. */
  watchPool(pool: pg.Pool): void {
    pool.on('acquire', (client) => this.#setIdle(client, false));
    pool.on('release', (_, client) => this.#setIdle(client, true));
  }

  /** @throws if a connection gives no answer and its session does nothing for us, or cannot be asked after. */
  assertAnswering(): void {
    const silent = [...this.#connections.values()].filter(isSuspect);
    if (silent.length === 0) return;
    const count = `${silent.length} of ${this.#connections.size} connections to the database give no answer`;
    if (this.#unasked !== null) throw new Error(count, { cause: this.#unasked });
    if (silent.some(({ evidence }) => evidence !== null)) throw new Error(count);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#connections.clear();
  }

  #setIdle(client: pg.ClientBase, idle: boolean): void {
    const connection = this.#connections.get(client);
    if (connection !== undefined) connection.idle = idle;
  }

  #start(): void {
    if (this.#timer !== undefined) return;
    this.#tickedAt = performance.now();
    this.#timer = setInterval(() => this.#tick(), tickMs);
    this.#timer.unref();
  }

  #tick(): void {
    const now = performance.now();
    // After a pause of ours there may be answers that nobody has read yet.
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
      // Whoever has not been able to say who he is has no statement of anybody.
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
  // If it is we who do not read, the server is not at fault.
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

/** Tells whether the server owes an answer to a statement, or to the end of the connection. */
function isAwaited(client: pg.ClientBase): boolean {
  return (client as unknown as Internals).readyForQuery === false || socketOf(client).writableEnded;
}

/** Tells whether the same evidence stands after a while without a byte; at first, an answer may be on its way. */
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
  // It works: to be asked again when it has been as long once more.
  if (evidence === null) connection.silentTicks = 0;
  return evidence !== null && now - connection.evidenceAt >= confirmMs;
}

/** pg does not publish these; both have been there since its first versions. */
interface Internals {
  readonly connection: { readonly stream: Socket };
  readonly readyForQuery?: boolean | null;
}

function socketOf(client: pg.ClientBase): Socket {
  return (client as unknown as Internals).connection.stream;
}

function destroy(client: pg.ClientBase): void {
  const socket = socketOf(client);
  // Whoever ends it listens to errors no more.
  if (socket.writableEnded) {
    socket.destroy();
    return;
  }
  const error = new Error('Connection terminated: the database gave no answer');
  socket.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
}
