import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FileRef } from '../../src/files/file-store.ts';
import { createEnvironment } from '../../src/postgres/stores/environments.ts';
import { mirrorEvents } from '../../src/retention/mirror-events.ts';
import { mirrorProfiles } from '../../src/retention/mirror-profiles.ts';
import { removeReplaced } from '../../src/retention/prune-events.ts';
import { apply } from '../support/definitions.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { exportAll, records, texts } from '../support/export-files.ts';
import { filesWith, readTable } from '../support/lake.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
let environmentId: number;
beforeEach(async () => {
  t = await openTestSystem();
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

const tables = ['users', 'companies'] as const;

/** Small files, so that there are many. */
const mirror = () => mirrorProfiles({ ...t.system, partBytes: 2_000 });

async function addProfiles(environment = environmentId, from = 1, to = 200): Promise<void> {
  await sql`
    insert into companies (environment_id, company_id, metadata)
    select ${environment}, 'company ' || n, jsonb_build_object('size', n) from generate_series(1, 9) n
    on conflict do nothing`.execute(t.system.db);
  await sql`
    insert into users (environment_id, user_id, company_id, metadata)
    select ${environment}, 'user ' || lpad(n::text, 5, '0'), case when n % 20 = 0 then 'company ' || (n / 20) % 9 + 1 end,
      jsonb_build_object('plan', md5(n::text), 'score', n)
    from generate_series(${from}::int, ${to}::int) n`.execute(t.system.db);
}

type Row = Readonly<Record<string, unknown>>;

const comparable = ({ metadata, company_id = null, first_seen_at, last_seen_at, ...row }: Row): Row => ({
  ...row,
  ...{ company_id, metadata: typeof metadata === 'string' ? JSON.parse(metadata) : metadata },
  first_seen_at: new Date(first_seen_at as string).toISOString(),
  last_seen_at: new Date(last_seen_at as string).toISOString(),
});
const byId = (a: Row, b: Row): number =>
  String(a['user_id'] ?? a['company_id']) < String(b['user_id'] ?? b['company_id']) ? -1 : 1;

async function expectMirrored(): Promise<void> {
  const files = await texts(t.system, await exportAll(t.system, environmentId));
  for (const table of tables) {
    const found = (await readTable(t.system, 'default', table)).map(comparable).sort(byId);
    expect(found).toEqual(records(files[`${table}.ndjson`]).map(comparable).sort(byId));
  }
}

async function dataFiles(table = 'users', environment = environmentId) {
  const { rows } = await sql<{ ref: FileRef }>`
    select file_ref as ref
    from lake_files
    where environment_id = ${environment} and table_name = ${table} and kind = 'data' and state = 'stored'
    order by first_key`.execute(t.system.db);
  return rows.map(({ ref }) => ref);
}

// proves: lake-profiles
test('other engines find users and companies as they are exported; a refresh writes only files whose profiles changed', async () => {
  await addProfiles();
  await mirror();
  await expectMirrored();
  const before = await dataFiles();
  expect(before.length).toBeGreaterThan(4);
  await mirror();
  expect(await dataFiles()).toEqual(before);

  await sql`update users set metadata = '{"plan": "other"}', position = default where user_id = 'user 00100'`.execute(
    t.system.db,
  );
  await mirror();
  await expectMirrored();
  expect((await dataFiles()).filter((ref) => !before.includes(ref))).toHaveLength(1);

  // What went is not in the log of changes.
  await sql`delete from users where user_id in ('user 00001', 'user 00200')`.execute(t.system.db);
  await mirror();
  await expectMirrored();
  const kept = (await dataFiles()).filter((ref) => before.includes(ref));
  expect(kept.length).toBe(before.length - 3);

  await sql`delete from users where user_id < 'user 00050'`.execute(t.system.db);
  await addProfiles(environmentId, 201, 400);
  await addProfiles(environmentId, 20, 21);
  await mirror();
  await expectMirrored();
  await sql`delete from users`.execute(t.system.db);
  await mirror();
  expect(await dataFiles()).toEqual([]);
  await addProfiles();
  await mirror();
  await expectMirrored();
});

// proves: lake-profiles
test('with LAKE=mirror, what keeps the lake up to date mirrors profiles', async () => {
  await addProfiles();
  await mirrorEvents({ ...t.system, config: { ...t.system.config, lake: 'mirror' } });
  await expectMirrored();
});

// proves: lake-profiles, lake-columns
test('chosen properties are columns of users and companies, too', async () => {
  await addProfiles();
  await apply(t, t, { lake_columns: [{ key: 'score', type: 'numeric' }] });
  await mirror();
  const users = await readTable(t.system, 'default', 'users');
  expect(users.find((row) => row['user_id'] === 'user 00123')).toMatchObject({ score: 123 });
});

// proves: lake-profiles, lake-erasure
test('a deleted user goes from the lake at once with one file; another environment stays as it is', async () => {
  const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
  await addProfiles();
  await addProfiles(neighbour);
  await mirror();
  const [before, theirs] = [await dataFiles(), await dataFiles('users', neighbour)];
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['user 00123']);
  expect(await deletion.run()).toMatchObject({ status: 'completed' });
  const after = await dataFiles();
  expect(before.filter((ref) => !after.includes(ref))).toHaveLength(1);
  await expectMirrored();
  expect(await dataFiles('users', neighbour)).toEqual(theirs);
  await removeReplaced(t.system);
  expect(
    (await filesWith(t, 'user 00123')).every((ref) => theirs.includes(ref) || ref.endsWith('.avro')),
  ).toBe(true);
  const own = (await t.storedFiles()).filter((name) => name.endsWith('.parquet')).length;
  expect(own).toBe(
    [...after, ...theirs, ...(await dataFiles('companies')), ...(await dataFiles('companies', neighbour))]
      .length,
  );
});

// proves: lake-profiles, lake-erasure
test('a deleted company goes from its table and from those of its users', async () => {
  await addProfiles();
  await mirror();
  const before = await dataFiles();
  const deletion = await acceptDeletion(t.system, environmentId, 'companies', ['company 5']);
  expect(await deletion.run()).toMatchObject({ status: 'completed' });
  await removeReplaced(t.system);
  expect(await filesWith(t, 'company 5')).toEqual([]);
  const after = await dataFiles();
  expect(after.filter((ref) => before.includes(ref)).length).toBeGreaterThan(before.length / 2);
  await expectMirrored();
});

// proves: lake-erasure
test('a refresh that has read a user before the deletion does not bring the user back', async () => {
  await addProfiles();
  let isDue = true;
  const files = {
    ...t.system.files,
    createAs: async (ref: FileRef) => {
      if (isDue) {
        isDue = false;
        const deletion = await acceptDeletion(t.system, environmentId, 'users', ['user 00123']);
        expect(await deletion.run()).toMatchObject({ status: 'completed' });
      }
      return t.system.files.createAs(ref);
    },
  };
  await mirrorProfiles({ ...t.system, files });
  expect(isDue).toBe(false);
  await expectMirrored();
  await removeReplaced(t.system);
  expect(await filesWith(t, 'user 00123')).toEqual([]);
});
