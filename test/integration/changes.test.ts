import fc from 'fast-check';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Entity } from '../../src/domain/entity.ts';
import type { UserRow } from '../../src/ingest/profile-store.ts';
import { cancelLoad } from '../../src/load/end.ts';
import {
  newEnvironment,
  readProfiles,
  runManually,
  shuffled,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { randomFile } from '../support/files/random-files.ts';
import type { Profiles } from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { connectTo } from '../support/servers/connect.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { openTestSystem, systemOfFile } from '../support/servers/system.ts';
import { writeUsers } from '../support/servers/write-users.ts';

const t = await systemOfFile();

const user = fc.constantFrom('k0', 'k1', 'k2', 'k3');
const company = fc.constantFrom('c0', 'c1');
const load = fc.record({
  kind: fc.constant('load' as const),
  file: randomFile,
  chunkBytes: fc.constantFrom(1, 64, 300, 10_000),
  ranks: fc.array(fc.nat(), { minLength: 8, maxLength: 8 }),
  cancelled: fc.constantFrom(false, false, false, true),
});
const identify = fc.record({
  kind: fc.constant('identify' as const),
  key: user,
  companyId: fc.constantFrom(null, '', 'c0', 'c1'),
  properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', null), { maxKeys: 2 }),
});
const batch = fc.record({
  kind: fc.constant('batch' as const),
  records: fc.uniqueArray(identify, { minLength: 1, maxLength: 4, selector: ({ key }) => key }),
});
const deletion = fc.oneof(
  fc.record({ kind: fc.constant('deletion' as const), entity: fc.constant('users' as const), key: user }),
  fc.record({
    kind: fc.constant('deletion' as const),
    entity: fc.constant('companies' as const),
    key: company,
  }),
);
const operator = fc.record({
  kind: fc.constant('operator' as const),
  key: user,
  statement: fc.constantFrom(
    `update sluice.users set metadata = metadata || '{"a":"by hand"}', company_id = 'c9' where environment_id = $1 and user_id <= $2`,
    `update sluice.users set user_id = user_id || 'x' where environment_id = $1 and user_id = $2`,
    'delete from sluice.users where environment_id = $1 and user_id >= $2',
    `insert into sluice.users (environment_id, user_id, metadata) values ($1, $2, '{"a":"new"}')
      on conflict (environment_id, user_id) do update set metadata = sluice.users.metadata || excluded.metadata`,
    `merge into sluice.users u using (values ($2), ('k9')) v (k) on u.environment_id = $1 and u.user_id = v.k
      when matched and u.metadata ? 'a' then delete when matched then update set metadata = '{"a":"merged"}'
      when not matched then insert (environment_id, user_id) values ($1, v.k)`,
  ),
});
const step = fc.oneof({ weight: 4, arbitrary: load }, { weight: 3, arbitrary: identify }, batch, deletion, {
  weight: 2,
  arbitrary: operator,
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function rowOf(
  environmentId: number,
  { key, companyId, properties }: typeof identify extends fc.Arbitrary<infer T> ? T : never,
): UserRow {
  const removes = companyId === '' || Object.values(properties).includes(null);
  return { environmentId, key, companyId, properties: JSON.stringify(properties), removes };
}

/** Returns the id of the step's load, or `null` if the step is not a load. */
async function doStep(environmentId: number, action: Step): Promise<number | null> {
  const { pool } = t.system;
  if (action.kind === 'load') {
    const { file, chunkBytes } = action;
    const started = await startManually(t.system, environmentId, file.text, {
      format: file.format,
      chunkBytes,
    });
    const order = shuffled(started, action.ranks);
    if (action.cancelled && order.length > 1) {
      for (const chunk of order.slice(1)) await started.chunk(chunk);
      await cancelLoad(withoutQueue(t.system), environmentId, started.jobId);
    } else await runManually(started, order);
    return started.loadId;
  }
  if (action.kind === 'deletion')
    await (await acceptDeletion(t.system, environmentId, action.entity, [action.key])).run();
  else if (action.kind === 'operator')
    await connectTo(t.databaseUrl, (client) =>
      // If the statement would give two profiles the same key, PostgreSQL refuses it and nothing
      // changes.
      client
        .query(action.statement, [environmentId, action.key])
        .catch((error: { code?: string }) => expect(error.code).toBe('23505')),
    );
  else if (action.kind === 'batch')
    await writeUsers(
      pool,
      action.records.map((each) => rowOf(environmentId, each)),
      [],
    );
  else await writeUsers(pool, [rowOf(environmentId, action)], []);
  return null;
}

interface Moment {
  readonly cursor: string;
  readonly profiles: Profiles;
  /** Keys of the profiles that were deleted after the cursor was taken. */
  readonly erased: Set<string>;
}

async function look(environmentId: number): Promise<Moment> {
  const profiles = await readProfiles(t.system, environmentId);
  const { rows } = await sql<{ cursor: string }>`select sluice.current_cursor() as cursor`.execute(
    t.system.db,
  );
  return { cursor: rows[0]?.cursor ?? '', profiles, erased: new Set() };
}

interface Change {
  readonly entity: Entity;
  readonly key: string;
  readonly load_id: number | null;
  readonly is_operator: boolean;
  readonly removed: boolean;
  readonly before: Record<string, never> | null;
  readonly company_before: string | null;
  /** True if the state before this change was also written after the cursor. */
  readonly made: boolean;
}

const since = (position: string, cursor: string): RawBuilder<boolean> =>
  sql<boolean>`sluice.is_since(${sql.ref(position)}, ${cursor}::pg_snapshot)`;

async function readChanges(environmentId: number, cursor: string): Promise<Change[]> {
  const { rows } = await sql<Change>`
    select entity, key, load_id, is_operator, removed, before, company_before, ${since('position_before', cursor)} as made
    from sluice.changes
    where environment_id = ${environmentId} and ${since('position', cursor)}
    order by seq`.execute(t.system.db);
  return rows;
}

/**
 * Returns the profiles as they were at the cursor. Each change in the log contains the state that
 * it replaced. For a profile that has changed since the cursor, takes the state that the first of
 * its changes replaced.
 */
async function rebuild(environmentId: number, cursor: string): Promise<Profiles> {
  const unchanged = async (entity: Entity, id: string) =>
    new Map(
      (
        await sql<{ id: string; metadata: Record<string, never>; company: string | null }>`
          select ${sql.ref(id)} as id, metadata, ${entity === 'users' ? sql`company_id` : sql`null`} as company
          from ${sql.table(entity)}
          where environment_id = ${environmentId} and not ${since('position', cursor)}`.execute(t.system.db)
      ).rows.map((row) => [row.id, row]),
    );
  const then = {
    users: await unchanged('users', 'user_id'),
    companies: await unchanged('companies', 'company_id'),
  };
  const seen = new Set<string>();
  for (const { entity, key, before, company_before, made } of await readChanges(environmentId, cursor)) {
    if (seen.has(`${entity} ${key}`)) continue;
    seen.add(`${entity} ${key}`);
    then[entity].delete(key);
    if (!made && before !== null)
      then[entity].set(key, { id: key, metadata: before, company: company_before });
  }
  return {
    users: Object.fromEntries(
      [...then.users].map(([id, { metadata, company: of }]) => [id, { metadata, company: of }]),
    ),
    companies: Object.fromEntries([...then.companies].map(([id, { metadata }]) => [id, { metadata }])),
  };
}

/**
 * Returns the profiles without the erased ones. Users of an erased company have no company in the
 * result.
 */
function without(profiles: Profiles, erased: ReadonlySet<string>): Profiles {
  const remaining = <T extends { company?: string | null }>(entity: Entity, all: Record<string, T>) =>
    Object.fromEntries(
      Object.entries(all)
        .filter(([key]) => !erased.has(`${entity} ${key}`))
        .map(([key, row]) => [key, erased.has(`companies ${row.company}`) ? { ...row, company: null } : row]),
    );
  return {
    users: remaining('users', profiles.users),
    companies: remaining('companies', profiles.companies),
  } as Profiles;
}

describe('the log of changes', () => {
  // proves: history-complete
  test('the log of changes has the profiles of any earlier moment, changed by any writer, and the load of each change', async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      const environmentId = await newEnvironment(t.system);
      const moments = [await look(environmentId)];
      for (const action of steps) {
        const cursor = moments.at(-1)?.cursor ?? '';
        const loadId = await doStep(environmentId, action);
        const changes = await readChanges(environmentId, cursor);
        expect(changes.filter((change) => change.load_id !== loadId)).toEqual([]);
        expect(changes.filter((change) => change.is_operator !== (action.kind === 'operator'))).toEqual([]);
        if (action.kind === 'deletion')
          for (const { erased } of moments) erased.add(`${action.entity} ${action.key}`);
        moments.push(await look(environmentId));
        for (const { cursor: at, profiles, erased } of moments)
          expect(without(await rebuild(environmentId, at), erased)).toEqual(without(profiles, erased));
      }
    });
    await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 60_000, numRuns: runs(24) });
  });

  test('the log of changes has no row for a profile that was only seen again, and the profile keeps its position', async () => {
    const environmentId = await newEnvironment(t.system);
    const common = { environmentId, removes: false };
    const acme: UserRow = { ...common, key: 'acme', companyId: null, properties: '{"tier":"1"}' };
    const u: UserRow = { ...common, key: 'u', companyId: 'acme', properties: '{"plan":"a"}' };
    const file = '{"user_id":"u","plan":"a","company_id":"acme"}\n';
    await writeUsers(t.system.pool, [u], [acme]);
    const state = async () =>
      (
        await sql<{ id: string; position: string; seen: string }>`
          select user_id as id, position::text, last_seen_at::text as seen
          from users where environment_id = ${environmentId}
          union all
          select company_id, position::text, last_seen_at::text
          from companies where environment_id = ${environmentId}
          order by id`.execute(t.system.db)
      ).rows;
    const first = await state();
    await writeUsers(t.system.pool, [u], [acme]);
    await runManually(await startManually(t.system, environmentId, file));
    await sql`update users set last_seen_at = now() where environment_id = ${environmentId}`.execute(
      t.system.db,
    );
    const last = await state();
    expect(last.map(({ id, position }) => [id, position])).toEqual(
      first.map(({ id, position }) => [id, position]),
    );
    expect(last[1]?.seen).not.toBe(first[1]?.seen);
    expect(await readChanges(environmentId, '1:1:')).toEqual([]);
  });

  test('a statement of an operator moves the position and updated_at of the rows that it changes', async () => {
    const environmentId = await newEnvironment(t.system);
    await sql`
      insert into users (environment_id, user_id, updated_at)
      values (${environmentId}, 'a', '2020-01-01Z'), (${environmentId}, 'b', '2020-01-01Z')`.execute(
      t.system.db,
    );
    const cursor = (await look(environmentId)).cursor;
    await sql`
      update users set metadata = case user_id when 'a' then '{"x":1}' else metadata end
      where environment_id = ${environmentId}`.execute(t.system.db);
    const { rows } = await sql`
      select user_id, ${since('position', cursor)} as moved, updated_at > '2020-01-01Z' as updated
      from users where environment_id = ${environmentId} order by 1`.execute(t.system.db);
    expect(rows).toEqual([
      { user_id: 'a', moved: true, updated: true },
      { user_id: 'b', moved: false, updated: false },
    ]);
  });

  test('the log of changes is not complete before a TRUNCATE', async () => {
    const instance = await openTestSystem();
    const since = async () => {
      const { rows } = await sql<{ since: number; next: number }>`
        select complete_since as since, next_position() as next from change_log`.execute(instance.system.db);
      return rows[0] ?? { since: 0, next: 0 };
    };
    try {
      const before = await since();
      expect(before.since).toBeLessThan(before.next);
      await sql`truncate companies`.execute(instance.system.db);
      // The test can expect only a minimum, because other databases of the server advance the
      // position at the same time.
      expect((await since()).since).toBeGreaterThan(before.next);
    } finally {
      await instance.close();
    }
  });

  test('the log of changes takes a chunk of 40 000 changes from a session that logged single ones', async () => {
    const environmentId = await newEnvironment(t.system);
    await connectTo(t.databaseUrl, async (client) => {
      await client.query(
        `insert into sluice.users (environment_id, user_id) select $1, i from generate_series(1, 40000) i`,
        [environmentId],
      );
      // The log must match changes by key. A nested loop over all changes would take minutes.
      await client.query('set enable_hashjoin = off; set enable_mergejoin = off');
      await client.query("set statement_timeout = '30s'");
      const change = (where: string) =>
        client.query(`update sluice.users set metadata = '{"a":1}' where environment_id = $1 and ${where}`, [
          environmentId,
        ]);
      for (let n = 1; n <= 6; n++) await change(`user_id = '${n}'`);
      expect((await change("metadata = '{}'")).rowCount).toBe(39_994);
    });
    expect(await readChanges(environmentId, '1:1:')).toHaveLength(40_000);
  });
});
