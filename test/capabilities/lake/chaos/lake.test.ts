import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { LAKE_APPENDS } from '../../../../src/capabilities/lake/month-store.ts';
import { requestDeletion, requireDeletion } from '../../../../src/deletion/deletions.ts';
import { cleanUpAfter } from '../../../support/cleanups.ts';
import { expireLeases } from '../../../support/files/load-file.ts';
import { insertEvents } from '../../../support/oracles/retention.ts';
import { type SluiceProcess, startSluice } from '../../../support/servers/processes.ts';
import { openTestSystem, type TestSystem } from '../../../support/servers/system.ts';
import { waitFor } from '../../../support/wait-for.ts';
import {
  comparable,
  expectNamedFiles,
  instantIn,
  type LakeRow,
  readEverywhere,
  readLake,
} from '../support/lake.ts';

const isLarge = process.env['SLUICE_LARGE'] === '1';
const old = { EVENT_RETENTION_DAYS: '100' };
const hold = {
  settling: 'select from sluice.lake_months for update',
  naming: 'select from sluice.lake_tables for update',
  forgetting: 'lock table sluice.event_ids in share mode',
};

describe.each(isLarge ? (['folder', 's3'] as const) : (['folder'] as const))(
  'a lake with files in %s',
  (storage) => {
    // proves: lake-appends
    test('kill -9 at an append, compaction or drop leaves exact events, and no lost file', async () => {
      const t = await openTestSystem({ storage, settings: { LAKE_EVERY: '1s' } });
      cleanUpAfter('test', () => t.close());
      let events = await add(t, 0, 40);
      const worker = startSluice(['work'], t.variables);
      await waitFor('the worker to append', async () => (await ofLake(t)).length === events.length);
      await killAt(t, worker, hold.settling, async () => {
        events = [...events, ...(await add(t, events.length, 10))];
      });
      const step = async (statement: string, variables: Readonly<Record<string, string>> = {}) => {
        await killAt(t, null, statement, async () => undefined, variables);
        const lake = await ofLake(t);
        expect(new Set(lake.map(({ event_id: id }) => id)).size).toBe(lake.length);
        expect(await ofBoth(t)).toEqual(events);
      };
      await step(hold.naming);
      await finish(t);
      expect(await ofLake(t)).toEqual(events);
      await t.system.pool.query('update sluice.lake_months set appends = $1', [LAKE_APPENDS]);
      await step(hold.settling);
      await step(hold.naming);
      await finish(t);
      await step(hold.settling, old);
      await step(hold.forgetting, old);
      await finish(t, old);
      const { rows } = await t.system.pool.query(
        "select from sluice.events where inserted_at < now() - interval '100 days'",
      );
      expect(rows).toEqual([]);
      expect([await ofLake(t), await ofBoth(t)]).toEqual([events, events]);
      // Makes the files two days older.
      await t.system.pool.query(`update sluice.lake_files set created_at = created_at - interval '2 days'`);
      await finish(t, old);
      await finish(t, old);
      await expectNamedFiles(t);
    });

    // proves: lake-erasure
    test.each(isLarge ? (['settling', 'naming'] as const) : (['naming'] as const))(
      'kill -9 in a deletion (%s) leaves nothing of the person in the lake, and all else',
      async (place) => {
        const t = await openTestSystem({ storage, settings: { LAKE_EVERY: '1h', ...old } });
        cleanUpAfter('test', () => t.close());
        const events = await add(t, 0, 40);
        await finish(t);
        const worker = startSluice(['work'], t.variables);
        const { environmentId } = t.environment;
        let jobId = '';
        await killAt(t, worker, hold[place], async () => {
          const request = { ids: ['u1'], purgeExports: false, options: {} };
          jobId = await requestDeletion(t.system, environmentId, 'users', request);
        });
        await expireLeases(t.system);
        const nextWorker = startSluice(['work'], t.variables);
        await waitFor(`the deletion to end; the worker said ${nextWorker.output}`, async () => {
          const { status } = await requireDeletion(t.system, environmentId, jobId);
          return status === 'completed';
        });
        await nextWorker.killGroup();
        const remaining = events.filter(({ user_id: id }) => id !== 'u1');
        expect([await ofLake(t), await ofBoth(t)]).toEqual([remaining, remaining]);
        await t.system.pool.query(`update sluice.lake_files set created_at = created_at - interval '2 days'`);
        await finish(t);
        await finish(t);
        await expectNamedFiles(t);
      },
    );
  },
);

/**
 * Executes `statement` to take a lock. Kills the process that waits for this lock. This process is
 * `running`, or a new `sluice prune` if `running` is `null`.
 */
async function killAt(
  t: TestSystem,
  running: SluiceProcess | null,
  statement: string,
  prepare: () => Promise<void>,
  variables: Readonly<Record<string, string>> = {},
): Promise<void> {
  const holder = new pg.Client({ connectionString: t.databaseUrl, application_name: 'test brake' });
  await holder.connect();
  await holder.query('begin');
  await holder.query(statement);
  await prepare();
  const victim = running ?? startSluice(['prune'], { ...t.variables, ...variables });
  const count = async (condition: string): Promise<number> => {
    const { rows } = await t.system.pool.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and application_name like 'sluice %' and application_name not like 'sluice test%'
         and ${condition}`,
    );
    return rows[0]?.n ?? 0;
  };
  await waitFor(`${victim.name} to wait; it said ${victim.output}`, async () => {
    expect(victim.ending).toBeNull();
    return (await count("wait_event_type = 'Lock'")) > 0;
  });
  await victim.killGroup();
  await holder.end();
  await waitFor('its sessions to end', async () => (await count('true')) === 0);
}

async function finish(t: TestSystem, variables: Readonly<Record<string, string>> = {}): Promise<void> {
  const pruning = startSluice(['prune'], { ...t.variables, ...variables });
  await waitFor('the pruning to end', async () => pruning.ending !== null);
  expect(`${pruning.ending} ${pruning.output}`).toMatch(/^exit code 0 /);
}

/** Adds events in two months. Returns them as rows of the lake. */
async function add(t: TestSystem, from: number, count: number): Promise<readonly LakeRow[]> {
  const events = Array.from({ length: count }, (_, at) => {
    const n = from + at;
    const months = n % 2 === 0 ? 0 : 7;
    return {
      environment: t.environment.environmentId,
      id: `e${String(n).padStart(3, '0')}`,
      name: 'seen',
      user: `u${n % 7}`,
      company: null,
      metadata: { n },
      named: true,
      at: instantIn(months, n),
    };
  });
  await insertEvents(t, events);
  return events.map(({ id, name, user, company, metadata, at }) =>
    comparable({
      event_id: id,
      event_type: 'track',
      event_name: name,
      user_id: user,
      company_id: company,
      source: 'backend-http',
      inserted_at: at,
      metadata,
    }),
  );
}

function ofLake(t: TestSystem): Promise<readonly LakeRow[]> {
  return readLake(t.system, 'default').catch(() => []);
}

function ofBoth(t: TestSystem): Promise<readonly LakeRow[]> {
  return readEverywhere(t.system, t.environment.environmentId);
}
