import { expect, test } from 'vitest';
import { createDatabase, firstRow, inTransaction, prepared } from '../../src/postgres/database.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { cleanUpAfter } from '../support/cleanups.ts';
import { createTestDatabase } from '../support/postgres.ts';

test('a prepared statement is planned once per connection, in and out of transactions; others each time', async () => {
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
