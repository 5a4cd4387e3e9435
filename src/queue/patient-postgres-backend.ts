import { setTimeout as delay } from 'node:timers/promises';
import {
  assertSchemaCompatibility,
  type BackendFactory,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
} from 'bullmq';
import type pg from 'pg';

/** How long a worker waits after a refusal before it asks for work again. */
const pauseMs = 1_000;

/**
 * BullMQ 6.7 on PostgreSQL, made fit for a database that is away for a while. As shipped, a connection remembers a
 * failed first connect for ever, and a worker whose question for work fails asks again at once: together a loop of
 * microtasks that no timer, signal or end of the parent ever interrupts.
 */
export const createPatientBackend: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (
  name,
  options,
  { withBlockingConnection = false } = {},
) =>
  new PatientBackend(
    new ForgivingConnection(options.connection),
    name,
    options,
    true,
    withBlockingConnection ? name : undefined,
  );

/** Tries again when asked again. */
class ForgivingConnection extends PostgresConnection {
  #ready: Promise<void> | undefined;

  constructor(connection: PostgresConnectionOptions) {
    super(connection);
    // A connection lost while it is lent tells its query, and emits an error that ends the process if nobody listens.
    (this.pool as unknown as pg.Pool).on('connect', (client) => client.on('error', ignore));
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
