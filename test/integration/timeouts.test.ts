import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environment-store.ts';
import { MAX_TIMEOUTS } from '../../src/base/limits.ts';
import type { System } from '../../src/context.ts';
import { retryLoad } from '../../src/load/retry.ts';
import { nextEnvironmentName, runManually, startManually, withoutQueue } from '../support/files/load-file.ts';
import { connectTo } from '../support/servers/connect.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

let t: TestSystem;
/** A system on a database for which an operator has set `statement_timeout`. */
let limited: System;
let environmentId: number;

beforeAll(async () => {
  t = await openTestSystem();
  ({ environmentId } = await createEnvironment(t.system.db, nextEnvironmentName()));
  // Writing a user whose id begins with "slow" takes longer than the timeout.
  await sql`
    create function public.be_slow() returns trigger language plpgsql as $$
    begin
      perform pg_sleep(5);
      return coalesce(new, old);
    end $$;
    create trigger slow_write before insert or update on users
      for each row when (new.user_id like 'slow%') execute function public.be_slow();
    create trigger slow_delete before delete on users
      for each row when (old.user_id like 'sticky%') execute function public.be_slow();
    create trigger slow_finish before update on loads
      for each row when (new.filename = 'slow-finish.csv' and new.status = 'completed')
      execute function public.be_slow();`.execute(t.system.db);
  await setForAll('statement_timeout', '500ms');
  limited = t.openAnother();
});
afterAll(async () => {
  await limited.close();
  await t.close();
});

/** Sets an option for all later sessions of the database. */
const setForAll = (name: string, value: string) =>
  connectTo(t.databaseUrl, (client) =>
    client.query(
      `do $$ begin execute format('alter database %I set ${name} = ''${value}''', current_database()); end $$`,
    ),
  );

const timeout = 'canceling statement due to statement timeout';

// proves: timeouts-named
test('a load whose chunk always exceeds statement_timeout fails with that reason, and reports it meanwhile', async () => {
  const load = await startManually(t.system, environmentId, 'user_id,plan\nslow-1,free\n');
  await load.chunk(0, limited);
  expect(await load.look()).toMatchObject({
    status: 'processing',
    failure: null,
    lastError: `chunk 0: ${timeout}`,
  });
  await allButOne();
  await load.chunk(0, limited);
  const failed = await load.look();
  expect(failed).toMatchObject({ status: 'failed', failure: { code: 'database_timeout' }, lastError: null });
  expect(failed.failure?.message).toMatch(/^Chunk 0: .*statement timeout; raise statement_timeout/);

  // The operator removes the cause of the timeouts and retries the load.
  await sql`drop trigger slow_write on users`.execute(t.system.db);
  await retryLoad(withoutQueue(t.system), environmentId, load.jobId, null);
  expect(await runManually(load)).toMatchObject({ status: 'completed', lastError: null });
});

test('a deletion that always exceeds statement_timeout fails with that reason, and attempts with progress do not count', async () => {
  await runManually(await startManually(t.system, environmentId, 'user_id,plan\nsticky,free\n'));
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['sticky']);
  expect(await deletion.run(limited)).toMatchObject({ status: 'processing', lastError: timeout });
  await allButOne();
  expect(await deletion.run(limited)).toMatchObject({
    status: 'failed',
    failure: { code: 'database_timeout' },
    lastError: null,
  });

  const ids = Array.from({ length: 300 }, (_, n) => `${n}`);
  const long = await acceptDeletion(t.system, environmentId, 'users', [...ids, 'sticky']);
  await sql`update tasks set failures = ${MAX_TIMEOUTS - 1} where kind = 'deletion'`.execute(t.system.db);
  expect(await long.run(limited), 'its first batch is committed').toMatchObject({
    status: 'processing',
    counts: { not_found: 200 },
  });
  await sql`drop trigger slow_delete on users`.execute(t.system.db);
  expect(await long.run()).toMatchObject({ status: 'completed', lastError: null });
});

test('a cancelled statement and a lock timeout are reported, and do not count', async () => {
  const users = 'user_id,plan\nlocked,free\n';
  await runManually(await startManually(t.system, environmentId, users));
  const load = await startManually(t.system, environmentId, users.replace('free', 'paid'));
  const before = await failures(load.loadId);
  await connectTo(t.databaseUrl, async (holder) => {
    await holder.query("begin; update sluice.users set last_seen_at = now() where user_id = 'locked'");
    const working = load.chunk(0);
    await waitFor('it to wait, and to be cancelled', async () => {
      const { rows } = await sql<{ cancelled: boolean }>`
        select pg_cancel_backend(pid) as cancelled from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(t.system.db);
      return rows.length > 0;
    });
    await working;
    expect((await load.look()).lastError).toContain('due to user request');

    await setForAll('lock_timeout', '100ms');
    await setForAll('statement_timeout', '0');
    const hasty = t.openAnother();
    await load.chunk(0, hasty);
    await hasty.close();
    expect((await load.look()).lastError).toContain('due to lock timeout');
  });
  expect(await failures(load.loadId)).toBe(before);
  expect(await runManually(load)).toMatchObject({ status: 'completed', lastError: null });
});

/** Sets the failure count so high that the next failure of the task is its last. */
async function allButOne(): Promise<void> {
  await sql`update tasks set failures = ${MAX_TIMEOUTS - 1} where failures = 1`.execute(t.system.db);
}

async function failures(loadId: number): Promise<number> {
  const row = await t.system.db
    .selectFrom('tasks')
    .select('failures')
    .where('subject_id', '=', loadId)
    .executeTakeFirstOrThrow();
  return row.failures;
}
