import { expect, test } from 'vitest';
import { type EventRow, writeEvents } from '../../src/ingest/event-store.ts';
import { type UserRow, writeUsers } from '../../src/ingest/profile-store.ts';
import type { Guard } from '../../src/postgres/guard.ts';
import { newEnvironment } from '../support/load-file.ts';
import { openTestSystem } from '../support/system.ts';

/** PostgreSQL plans a statement anew each time if that looks cheaper by the values of its parameters: it takes longer than to run it. */
test('the statements of single records are planned once for all', async () => {
  const t = await openTestSystem();
  try {
    const environmentId = await newEnvironment(t.system);
    const guard: Guard = { environments: [environmentId], uses: [], compose: (query) => query };
    const user: UserRow = { environmentId, key: 'u1', companyId: null, properties: '{}', removes: false };
    const event: EventRow = {
      ...{ environmentId, eventName: 'seen', isPageView: false, userId: 'u1', companyId: null },
      ...{ eventId: '', once: false, insertedAt: null, metadata: '{}' },
    };
    const client = await t.system.pool.connect();
    try {
      await client.query('select sluice.ensure_events_partition(now())');
      for (let n = 0; n < 10; n++) {
        await writeUsers(client, [user], [], guard);
        await writeEvents(client, [{ ...event, eventId: `a${n}` }], guard);
        await writeEvents(client, [{ ...event, eventId: `b${n}`, once: true }], guard);
      }
      const { rows } = await client.query<{ name: string; once: boolean }>(
        'select name, custom_plans <= 5 and generic_plans > 0 as once from pg_prepared_statements order by name',
      );
      expect(rows).toEqual([
        { name: 'insert-events', once: true },
        { name: 'insert-events-once', once: true },
        { name: 'upsert-users', once: true },
      ]);
    } finally {
      client.release();
    }
  } finally {
    await t.close();
  }
});
