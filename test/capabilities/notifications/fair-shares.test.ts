import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { defaultOutcomes, jobKinds } from '../../../src/capabilities/notifications/api.ts';
import { openSendContext } from '../../../src/capabilities/notifications/deliver.ts';
import { queueDeliveries } from '../../../src/capabilities/notifications/delivery-store.ts';
import { addSubscription } from '../../../src/capabilities/notifications/subscriptions.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { queues } from '../../support/servers/site.ts';
import { openTestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebhookReceiver } from './support/webhook-receiver.ts';

const queuedCount = 200;
/**
 * Maximum number of tasks of the greedy environment that may run before the task of the other
 * environment. Tasks that already run finish first. Then the environments take turns.
 */
const precedingTasks = 6;

// proves: fair-shares
test.each(queues)(
  'with the queue on %s a notification does not wait for 200 of another environment',
  async (queue) => {
    const t = await openTestSystem({ queue, settings: { NOTIFY_ALLOW_PRIVATE: 'true' } });
    const { system } = t;
    const greedyId = t.environment.environmentId;
    const otherId = (await t.addEnvironment('other')).environment.environmentId;
    const receiver = await startWebhookReceiver();
    cleanUpAfter('test', async () => {
      await receiver.stop();
      await t.close();
    });
    const { deliveryPolicy, mail } = openSendContext(system);
    mail.close();
    const subscribe = (environmentId: number, path: string): Promise<unknown> =>
      addSubscription(
        system,
        environmentId,
        {
          channel: 'webhook',
          target: `${receiver.url}/${path}`,
          outcomes: defaultOutcomes,
          kinds: jobKinds,
        },
        deliveryPolicy,
      );
    for (let count = 0; count < 20; count++) await subscribe(greedyId, 'greedy');
    await subscribe(otherId, 'other');
    await sql`
      with event as (
        insert into notification_events (event_id, environment_id, type, body)
        select gen_random_uuid(), environment_id, 'ping', '{}'
        from notification_subscriptions, generate_series(1, ${queuedCount / 20})
        where environment_id = ${greedyId}
        returning event_id
      )
      insert into notification_deliveries (public_id, event_id, subscription_id, channel, target)
      select event_id, event_id, subscription_id, channel, target
      from (select event_id, row_number() over () % 20 as nth from event) e
      join (
        select *, row_number() over () - 1 as nth
        from notification_subscriptions
        where environment_id = ${greedyId}
      ) s using (nth)`.execute(system.db);
    await sql`
      with event as (
        insert into notification_events (event_id, environment_id, type, body)
        values (gen_random_uuid(), ${otherId}, 'ping', '{}')
        returning event_id, environment_id
      )
      insert into notification_deliveries (public_id, event_id, subscription_id, channel, target)
      select event_id, event_id, subscription_id, channel, target
      from event join notification_subscriptions using (environment_id)`.execute(system.db);
    const { rows } = await sql<{ id: number }>`
      select delivery_id as id from notification_deliveries`.execute(system.db);
    await queueDeliveries(
      system.db,
      rows.map(({ id }) => id),
    );
    t.startWorker();
    await waitFor('the webhook of the other', () =>
      receiver.received.some(({ path }) => path.endsWith('/other')),
    );
    const place = receiver.received.findIndex(({ path }) => path.endsWith('/other'));
    expect(place).toBeLessThan(2 * precedingTasks);
  },
);
