import { afterEach, expect, test } from 'vitest';
import { createQueueBackend } from '../../src/queue/backend.ts';
import { openTestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

test('a queue in Postgres that loses its connection during its first look ends nothing, and works when asked again', async () => {
  const { system, databaseUrl, close } = await openTestSystem({ queue: 'postgres' });
  cleanups.push(close);
  const { pool } = system;
  const holder = await pool.connect();
  cleanups.push(async () => holder.release(true));
  await holder.query('begin; lock table bullmq.migration in access exclusive mode');
  const queue = createQueueBackend({ databaseUrl, redisUrl: null }).createQueue('lost', {});
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  cleanups.push(() => queue.close());
  let outcome: string | null = null;
  const settle = (as: string) => () => {
    outcome = as;
  };
  queue.waitUntilReady().then(settle('ready'), settle('lost'));
  // The queue of the system may wait for the same lock as the queue of this test. The test
  // therefore ends waiting sessions until its own queue reports the loss.
  await waitFor('its look to wait, and its session to be ended', async () => {
    await pool.query(
      `select pg_terminate_backend(pid)
       from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return outcome !== null;
  });
  expect(outcome).toBe('lost');
  await holder.query('rollback');
  expect(await queue.getWaitingCount()).toBe(0);
});
