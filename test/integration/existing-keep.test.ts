import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  newEnvironment,
  readProfiles,
  readVersions,
  runManually,
  startManually,
} from '../support/files/load-file.ts';
import { readPlannedRows } from '../support/oracles/plans.ts';
import { type Json, type Profiles, SerialOracle } from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();
const keep = { source: { existing: 'keep' } };

interface Company {
  readonly id: string;
  readonly properties: Readonly<Record<string, Json>>;
}

/**
 * A record of a user. `company` is `null` if the user has none, and `undefined` if the record does
 * not mention it.
 */
interface UserRecord {
  readonly id: string;
  readonly properties: Readonly<Record<string, Json>>;
  readonly company: Company | null | undefined;
}

const value = fc.constantFrom<Json>('1', '2', 1, true, null, null, [1, null], { deep: null });
const properties = fc.dictionary(fc.constantFrom('a', 'b', 'c'), value, { maxKeys: 3 });
const company = fc.record({ id: fc.constantFrom('c0', 'c1'), properties });
const userRecord: fc.Arbitrary<UserRecord> = fc.record({
  id: fc.constantFrom('k0', 'k1', 'k2', 'k3'),
  properties,
  company: fc.oneof(fc.constant(undefined), fc.constant(null), company),
});
const file = fc.record({
  records: fc.array(userRecord, { minLength: 1, maxLength: 20 }),
  chunkBytes: fc.constantFrom(1, 80, 300, 10_000),
  keeps: fc.boolean(),
});

function textOf(records: readonly UserRecord[]): string {
  const lines = records.map(({ id, properties: fields, company: employer }) => {
    const named =
      employer == null
        ? { company_id: employer }
        : { company: { company_id: employer.id, ...employer.properties } };
    return `${JSON.stringify({ user_id: id, ...fields, ...named })}\n`;
  });
  return lines.join('');
}

/** Returns a copy of the record with only the values that the stored profiles lack. */
function missing(
  { id, properties: fields, company: employer }: UserRecord,
  { users, companies }: Profiles,
): UserRecord {
  const lacks = (names: UserRecord['properties'], present: UserRecord['properties'] = {}) =>
    Object.fromEntries(
      Object.entries(names).filter(([name, it]) => it !== null && !Object.hasOwn(present, name)),
    );
  const stored = users[id];
  const isFree = employer != null && (stored?.company ?? null) === null;
  return {
    id,
    properties: lacks(fields, stored?.metadata),
    company: isFree
      ? { id: employer.id, properties: lacks(employer.properties, companies[employer.id]?.metadata) }
      : undefined,
  };
}

function add(oracle: SerialOracle, record: UserRecord, keeps: boolean): void {
  const before = oracle.profiles();
  const { id, properties: fields, company: employer } = keeps ? missing(record, before) : record;
  const user = { entity: 'users', id, properties: fields } as const;
  oracle.load([employer === undefined ? user : { ...user, company: employer }]);
  // The record's company gets the properties that it lacks, even if the user stays in another
  // company.
  if (!keeps || employer !== undefined || record.company == null) return;
  const present = before.companies[record.company.id]?.metadata ?? {};
  const named = missing(
    { ...record, properties: record.company.properties, company: undefined },
    {
      users: { [record.id]: { metadata: present } },
      companies: {},
    },
  );
  oracle.load([{ entity: 'companies', id: record.company.id, properties: named.properties }]);
}

// proves: keeps-existing
test('a load with existing=keep stores its records as if they came one by one, each adding only missing values', async () => {
  const property = fc.asyncProperty(fc.array(file, { minLength: 2, maxLength: 4 }), async (files) => {
    const environmentId = await newEnvironment(t.system);
    const oracle = new SerialOracle();
    for (const { records, chunkBytes, keeps } of files) {
      const options = { chunkBytes, ...(keeps && keep) };
      const load = await startManually(t.system, environmentId, textOf(records), options);
      const { status, tally } = await runManually(load);
      expect({ status, read: tally.read, rejected: tally.rejected }).toEqual({
        status: 'completed',
        read: records.length,
        rejected: 0,
      });
      for (const record of records) add(oracle, record, keeps);
      expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
    }
  });
  await fc.assert(property, { numRuns: runs(40), endOnFailure: true });
});

// proves: keeps-existing
test('a plan with existing=keep has the rows that its load writes, and a repeated load writes none', async () => {
  const environmentId = await newEnvironment(t.system);
  const stored = textOf([{ id: 'k0', properties: { a: 'old' }, company: { id: 'c0', properties: {} } }]);
  await runManually(await startManually(t.system, environmentId, stored));
  const text = textOf([
    { id: 'k0', properties: { a: 'new', b: 'first' }, company: { id: 'c1', properties: {} } },
    { id: 'k1', properties: { a: 'first' }, company: undefined },
    { id: 'k1', properties: { a: 'second', b: 'second' }, company: undefined },
    { id: 'k0', properties: { b: 'second' }, company: undefined },
  ]);
  const plan = await startManually(t.system, environmentId, text, { ...keep, chunkBytes: 1, plan: true });
  await runManually(plan);
  const planned = await readPlannedRows(t.system, plan.jobId);
  await runManually(await startManually(t.system, environmentId, text, { ...keep, chunkBytes: 1 }));
  const { users } = await readProfiles(t.system, environmentId);
  expect(users).toEqual({
    k0: { metadata: { a: 'old', b: 'first' }, company: 'c0' },
    k1: { metadata: { a: 'first', b: 'second' }, company: null },
  });
  const plannedUsers = planned
    .filter(({ entity }) => entity === 'users')
    .map(({ key, after }) => [key, after]);
  expect(Object.fromEntries(plannedUsers)).toEqual(users);
  const before = await readVersions(t.system, environmentId);
  const again = await runManually(await startManually(t.system, environmentId, text, keep));
  expect(again.tally).toMatchObject({ read: 4, inserted: 0, updated: 0 });
  expect(await readVersions(t.system, environmentId)).toEqual(before);
});

test('chunks of a load with existing=keep get their tasks one after another', async () => {
  const environmentId = await newEnvironment(t.system);
  const text = textOf(['k0', 'k1', 'k2'].map((id) => ({ id, properties: {}, company: undefined })));
  const load = await startManually(t.system, environmentId, text, { ...keep, chunkBytes: 1 });
  const tasks = () =>
    t.system.db
      .selectFrom('tasks')
      .select(['kind', 'part'])
      .where('subject_id', '=', load.loadId)
      .where('kind', 'in', ['chunk', 'finish'])
      .execute();
  expect(await tasks()).toEqual([{ kind: 'chunk', part: 0 }]);
  await load.chunk(0);
  expect(await tasks()).toEqual([{ kind: 'chunk', part: 1 }]);
  await load.chunk(1);
  await load.chunk(2);
  expect(await tasks()).toEqual([{ kind: 'finish', part: 0 }]);
  expect((await load.finish()).status).toBe('completed');
});
