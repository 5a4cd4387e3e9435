import pg from 'pg';
import type { ConnectionMonitor } from '../connection-monitor.ts';

/** Spells INBX: the class half of a two-key advisory lock. */
const inboxLock = 0x494e4258;
const connectionTimeoutMillis = 10_000;

interface LockServer {
  readonly url: string;
  /** Ends a connection that went silent, and the lock with its session. */
  readonly monitor: ConnectionMonitor;
}

/**
 * One process at a time looks after an inbox: a lock of the session, on a connection of its own. What it guards is safe
 * without it (the ledger's fences); it keeps processes from doing the same work twice.
 */
export class InboxLock {
  readonly #server: LockServer;
  readonly #inboxId: string;
  readonly #onLost: () => void;
  #client: pg.Client | null = null;
  #held = false;

  /** `onLost` is told when a lock that was held is gone. */
  constructor(server: LockServer, inboxId: string, onLost: () => void) {
    this.#server = server;
    this.#inboxId = inboxId;
    this.#onLost = onLost;
  }

  /** Whether this process has the lock now; takes it if it is free. Throws if the database is away. */
  async hold(): Promise<boolean> {
    const client = this.#client ?? (await this.#connect());
    try {
      if (this.#held) await client.query('select');
      else this.#held = await this.#take(client);
      return this.#held;
    } catch (error) {
      this.#lose(client);
      throw error;
    }
  }

  /** Lets go of it. */
  async release(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    this.#held = false;
    await client?.end().catch(() => undefined);
  }

  async #take(client: pg.Client): Promise<boolean> {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1, hashtext($2)) as taken',
      [inboxLock, this.#inboxId],
    );
    return rows[0]?.taken === true;
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#server.url,
      application_name: 'sluice inbox',
      connectionTimeoutMillis,
      keepAlive: true,
    });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    try {
      await client.connect();
      await this.#server.monitor.watch(client);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    this.#client = client;
    return client;
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = null;
    const held = this.#held;
    this.#held = false;
    client.end().catch(() => undefined);
    if (held) this.#onLost();
  }
}
