import { setTimeout as delay } from 'node:timers/promises';
import {
  assertSchemaCompatibility,
  type BackendFactory,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
} from 'bullmq';
import type pg from 'pg';
import type { ConnectionMonitor } from '../postgres/connection-monitor.ts';

/** How long a worker waits after a refusal before it asks for work again. */
const pauseMs = 1_000;

/**
 * BullMQ 6.7 on PostgreSQL, made fit for a database that is away for a while. As shipped, a connection remembers a
 * failed first connect for ever, and a worker whose question for work fails asks again at once: together a loop of
 * microtasks that no timer, signal or end of the parent ever interrupts.
 */
export function patientBackend(
  monitor: ConnectionMonitor | undefined,
): BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> {
  return (name, options, { withBlockingConnection = false } = {}) =>
    new PatientBackend(
      new ForgivingConnection(options.connection, monitor),
      name,
      options,
      true,
      withBlockingConnection ? name : undefined,
    );
}

/** Tries again when asked again. */
class ForgivingConnection extends PostgresConnection {
  readonly #monitor: ConnectionMonitor | undefined;
  #ready: Promise<void> | undefined;

  constructor(connection: PostgresConnectionOptions, monitor: ConnectionMonitor | undefined) {
    super(connection);
    this.#monitor = monitor;
    const pool = this.pool as unknown as pg.Pool;
    // A connection lost while it is lent tells its query, and emits an error that ends the process if nobody listens.
    pool.on('connect', (client) => client.on('error', ignore));
    monitor?.watchPool(pool);
  }

  /** The one that listens is no connection of the pool. */
  override async getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    const client = await super.getListenClient();
    await this.#monitor?.watch(client as unknown as pg.Client, { listens: true });
    return client;
  }

  override waitUntilReady(): Promise<void> {
    this.#ready ??= this.#check().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #check(): Promise<void> {
    const client = await this.pool.connect();
    try {
      await assertSchemaCompatibility(client, this.schema);
    } catch (error) {
      // It may be lost without knowing it yet; the next one who asks must not be lent it.
      client.release(true);
      throw error;
    }
    client.release();
    setImmediate(() => this.emit('ready'));
  }
}

const ignore = (): void => undefined;

/** Takes its time to report a failure to the worker, which does not take its own. */
class PatientBackend extends PostgresQueueBackend {
  override async moveToActive(token: string, name?: string): Promise<unknown[]> {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await delay(pauseMs);
      throw error;
    }
  }
}
