import { expect, test } from 'vitest';
import { type EventRow, writeEvents } from '../../src/ingest/event-store.ts';
import { type UserRow, writeUsers } from '../../src/ingest/profile-store.ts';
import { createDatabase, firstRow, inTransaction, prepared } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import type { Guard } from '../../src/postgres/uses.ts';
import { cleanUpAfter } from '../support/cleanups.ts';
import { newEnvironment } from '../support/files/load-file.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { openTestSystem } from '../support/servers/system.ts';

/**
 * PostgreSQL plans a prepared statement again for each call if the values of the call promise a
 * cheaper plan. The statements of single records must be planned only once, because planning them
 * takes longer than executing them.
 */
test('the statements of single records are planned once', async () => {
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
        `select name, custom_plans <= 5 and generic_plans > 0 as once
        from pg_prepared_statements
        where name ~ '^(insert|upsert)-'
        order by name`,
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

test('a prepared statement is planned once per connection, in and out of transactions, and any other each time', async () => {
  const { url, drop } = await createTestDatabase();
  const pool = createPool({ url, max: 1, applicationName: 'test' });
  cleanUpAfter('test', async () => {
    await pool.end();
    await drop();
  });
  const db = createDatabase(pool);
  for (const n of [1, 2]) {
    expect(await firstRow(prepared(db))`select ${n}::int as once`).toEqual({ once: n });
    await inTransaction(pool, async (transaction) => {
      expect(await firstRow(prepared(transaction.db))`select ${n}::int as once`).toEqual({ once: n });
    });
    expect(await firstRow(db)`select ${n}::int as again`).toEqual({ again: n });
  }
  const { rows } = await pool.query(
    'select statement, (generic_plans + custom_plans)::int as runs from pg_prepared_statements',
  );
  expect(rows).toEqual([{ statement: 'select $1::int as once', runs: 4 }]);
});
