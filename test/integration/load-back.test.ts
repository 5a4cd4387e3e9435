import { appendFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Terminal } from '../../src/cli/terminal.ts';
import { defaultLoadOptions } from '../../src/domain/load.ts';
import { importFolder, loadSetup, writeSetup } from '../../src/export/import-folder.ts';
import { readManifest, verifyExport } from '../../src/export/manifest.ts';
import type { ImportOptions } from '../../src/load/import-file.ts';
import { applyDefinitions } from '../../src/lookups/apply-definitions.ts';
import { readDefinitionsFile } from '../../src/lookups/definitions.ts';
import { readDefinitions, withoutIds } from '../../src/lookups/store.ts';
import { exportAll, inDirectory, storedBytes } from '../support/files/export-files.ts';
import { acceptFile, endedLoad, newEnvironment } from '../support/files/load-file.ts';
import { runs } from '../support/runs.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile({ worker: true, queue: 'postgres', storage: 'folder' });

const silent = {
  print: () => undefined,
  inform: () => undefined,
  style: (_: unknown, text: string) => text,
  live: false,
} as unknown as Terminal;

const options: ImportOptions = {
  ...defaultLoadOptions,
  preset: undefined,
  format: null,
  rejectsDir: tmpdir(),
  wait: true,
  quiet: true,
  json: true,
  workers: { whose: 'running' },
  signal: new AbortController().signal,
};

const importInto = (environmentId: number, folder: string) =>
  importFolder(silent, { system: t.system, environmentId, baseUrl: '' }, folder, options);

const pieces = [...'aZ0 "\\\n\t,ü😀\u2028', '\\N', 'null'];
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 6 }).map((parts) => parts.join(''));
const value = fc.oneof(
  text,
  fc.boolean(),
  fc.constantFrom(0, -1.5, 1e-7, 12345678901234, [], {}, [null], { deep: { null: null, list: [1, 'x'] } }),
);
const metadata = fc.dictionary(
  text.map((name) => `p${name}`),
  value,
  { maxKeys: 3, noNullPrototype: true },
);
const instant = fc
  .tuple(fc.integer({ min: 946_684_800, max: 1_790_000_000 }), fc.integer({ min: 0, max: 999_999 }))
  .map(
    ([seconds, micros]) =>
      `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`,
  );
const times = fc.tuple(instant, instant).map(([one, other]) => [one, other].sort());
const id = text.map((part) => `i${part}`);
const content = fc.record({
  companies: fc.uniqueArray(fc.record({ id, metadata, times }), {
    selector: (each) => each.id,
    maxLength: 4,
  }),
  users: fc.uniqueArray(fc.record({ id, metadata, times, company: fc.nat(9) }), {
    selector: (each) => each.id,
    maxLength: 6,
  }),
  events: fc.uniqueArray(
    fc.record({ id, metadata, at: instant, name: id, user: id, company: fc.nat(9), isView: fc.boolean() }),
    { selector: (each) => each.id, maxLength: 6 },
  ),
});
type Content = typeof content extends fc.Arbitrary<infer T> ? T : never;

async function store(environmentId: number, { companies, users, events }: Content): Promise<void> {
  const { db } = t.system;
  const companyOf = (at: number): string | null => companies[at]?.id ?? null;
  for (const { id, metadata, times } of companies) {
    await sql`insert into companies (environment_id, company_id, metadata, first_seen_at, last_seen_at)
      values (${environmentId}, ${id}, ${JSON.stringify(metadata)}, ${times[0]}, ${times[1]})`.execute(db);
  }
  for (const { id, metadata, times, company } of users) {
    await sql`insert into users (environment_id, user_id, company_id, metadata, first_seen_at, last_seen_at)
      values (${environmentId}, ${id}, ${companyOf(company)}, ${JSON.stringify(metadata)}, ${times[0]}, ${times[1]})`.execute(
      db,
    );
  }
  for (const { id, metadata, at, name, user, company, isView } of events) {
    await sql`select ensure_events_partition(${at})`.execute(db);
    await sql`insert into events (environment_id, event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata)
      values (${environmentId}, ${id}, ${isView ? 'page_view' : 'track'}, ${name}, ${user}, ${companyOf(company)}, 'src', ${at}, ${JSON.stringify(metadata)})`.execute(
      db,
    );
  }
}

/** Returns all rows that an export would contain, with their times. */
async function readRows(environmentId: number): Promise<unknown> {
  const rows = async (what: string): Promise<unknown[]> =>
    (await sql.raw<{ row: string }>(what.replace('$env', String(environmentId))).execute(t.system.db)).rows;
  return {
    users: await rows(
      'select user_id, company_id, metadata::text, first_seen_at::text, last_seen_at::text from users where environment_id = $env order by user_id',
    ),
    companies: await rows(
      'select company_id, metadata::text, first_seen_at::text, last_seen_at::text from companies where environment_id = $env order by company_id',
    ),
    events: await rows(
      'select event_id, event_type, event_name, user_id, company_id, source, inserted_at::text, metadata::text from events where environment_id = $env order by event_id',
    ),
  };
}

// proves: loads-back
test('a stream loads back unchanged into its environment, and whole into an empty one', async () => {
  await fc.assert(
    fc.asyncProperty(content, fc.constantFrom('ndjson', 'csv'), async (data, format) => {
      const from = await newEnvironment(t.system);
      const to = await newEnvironment(t.system);
      await store(from, data);
      const written = await exportAll(t.system, from, { layout: 'stream', format });
      const { [`stream.${format}`]: file } = await storedBytes(t.system, written);
      const rows = data.companies.length + data.users.length + data.events.length;
      if (file === undefined || rows === 0) return;
      const load = async (into: number) => {
        const jobId = await acceptFile(t.system, into, file, { filename: `stream.${format}`, format });
        return endedLoad(t.system, into, jobId);
      };
      // `last_seen_at` is not compared, because a load sets it to the time of the change.
      const values = async () => JSON.stringify(await readRows(from)).replace(/"last_seen_at":"[^"]*"/g, '');
      const before = await values();
      expect(await load(from)).toMatchObject({ tally: { inserted: 0, unchanged: rows } });
      expect(await values()).toBe(before);
      expect(await load(to)).toMatchObject({ status: 'completed', tally: { rejected: 0 } });
      expect(await load(to)).toMatchObject({ tally: { inserted: 0, updated: 0, rejected: 0 } });
    }),
    { numRuns: runs(40) },
  );
});

// proves: environment-back
test('a folder of a stream comes back whole with a report of each row, and again changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(content, fc.constantFrom('ndjson', 'parquet'), async (data, format) => {
      const from = await newEnvironment(t.system);
      const to = await newEnvironment(t.system);
      await store(from, data);
      const written = await exportAll(t.system, from, { layout: 'stream', format });
      const rows = data.companies.length + data.users.length + data.events.length;
      await inDirectory(t.system, written, async (folder) => {
        const values = async () => JSON.stringify(await readRows(to)).replace(/"last_seen_at":"[^"]*"/g, '');
        const report = await importInto(to, folder);
        expect(report).toMatchObject({
          exitCode: 0,
          json: { files: rows === 0 ? [] : [{ rows, same: rows }] },
        });
        const stored = await values();
        expect((await importInto(to, folder)).exitCode).toBe(0);
        expect(await values()).toEqual(stored);
        const [user] = data.users;
        if (user === undefined) return;
        await sql`update users set metadata = '{"later": 1}' where environment_id = ${to} and user_id = ${user.id}`.execute(
          t.system.db,
        );
        expect(await importInto(to, folder)).toMatchObject({
          exitCode: 1,
          json: { files: [{ same: rows - 1 }] },
        });
      });
    }),
    { numRuns: runs(5) },
  );
});

// proves: environment-back
test('an environment comes back from its files into an empty one with times, ids and companies, and again changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(content, async (data) => {
      const from = await newEnvironment(t.system);
      const to = await newEnvironment(t.system);
      await store(from, data);
      const written = await exportAll(t.system, from);
      await inDirectory(t.system, written, async (folder) => {
        expect((await importInto(to, folder)).exitCode).toBe(0);
        const stored = await readRows(to);
        expect(stored).toEqual(await readRows(from));
        expect((await importInto(to, folder)).exitCode).toBe(0);
        expect(await readRows(to)).toEqual(stored);
      });
    }),
    { numRuns: runs(5) },
  );
});

// proves: environment-back
test('stored profiles keep their times, later values stay, and deleted profiles come back', async () => {
  const from = await newEnvironment(t.system);
  const to = await newEnvironment(t.system);
  const times = ['2020-01-01T00:00:00.000000Z', '2021-01-01T00:00:00.000000Z'];
  const user = (id: string, seen = times) => ({ id, metadata: { id }, times: seen, company: 9 });
  const users = ['old', 'new', 'gone'].map((id) => user(id));
  await store(from, { companies: [], users, events: [] });
  await store(to, {
    companies: [],
    users: [user('old', ['2022-01-01T00:00:00Z', '2023-01-01T00:00:00Z'])],
    events: [],
  });
  await inDirectory(t.system, await exportAll(t.system, from), async (folder) => {
    expect((await importInto(to, folder)).json).toMatchObject({ files: [{ rows: 3, same: 3, dated: 2 }] });
    await sql`delete from users where environment_id = ${to} and user_id = 'gone'`.execute(t.system.db);
    await sql`update users set metadata = '{"later": 1}', last_seen_at = now() where environment_id = ${to} and user_id = 'new'`.execute(
      t.system.db,
    );
    const again = await importInto(to, folder);
    expect(again.json).toMatchObject({ files: [{ rows: 3, same: 2, dated: 1 }] });
    const { rows } = await sql<{ id: string; first: string }>`
      select user_id as id, extract(year from first_seen_at)::text as first from users where environment_id = ${to} order by 1`.execute(
      t.system.db,
    );
    expect(rows).toEqual([
      { id: 'gone', first: '2020' },
      { id: 'new', first: '2020' },
      { id: 'old', first: '2022' },
    ]);
  });
});

// proves: environment-back
test('a folder that was changed, and files that store less than the environment, are refused and load nothing', async () => {
  const from = await newEnvironment(t.system);
  const to = await newEnvironment(t.system);
  await store(from, {
    companies: [],
    users: [{ id: 'u', metadata: {}, times: ['2020-01-01', '2020-01-02'], company: 9 }],
    events: [],
  });
  await inDirectory(t.system, await exportAll(t.system, from), async (folder) => {
    await appendFile(join(folder, 'users.ndjson'), '{"user_id":"added"}\n');
    await expect(importInto(to, folder)).rejects.toThrow('not as it was written');
  });
  await inDirectory(t.system, await exportAll(t.system, from, { format: 'csv' }), (folder) =>
    expect(importInto(to, folder)).rejects.toThrow('A CSV has no types'),
  );
  expect(await readRows(to)).toEqual({ users: [], companies: [], events: [] });
});

// proves: environment-back
test('definitions come back with their keys, and never replace others', async () => {
  const from = await newEnvironment(t.system);
  const to = await newEnvironment(t.system);
  const { db } = t.system;
  const wanted = readDefinitionsFile(
    Buffer.from('features: [{ key: f1, display_name: One, data_type: string }]'),
    [],
  ).value;
  if (wanted === null) throw new Error('the definitions are wrong');
  await applyDefinitions(db, from, wanted, { dryRun: false, force: false, lists: [] });
  await inDirectory(t.system, await exportAll(t.system, from), async (directory) => {
    await writeSetup(t.system, from, directory);
    expect((await verifyExport(directory)).differences).toEqual([]);
    const { setup = [] } = await readManifest(directory);
    expect(await loadSetup(t.system, to, directory, setup)).toEqual({
      definitions: 'applied',
    });
    expect(withoutIds(await readDefinitions(db, to, []))).toEqual(
      withoutIds(await readDefinitions(db, from, [])),
    );
    expect(await loadSetup(t.system, to, directory, setup)).toEqual({
      definitions: 'unchanged',
    });
    await applyDefinitions(db, to, { ...wanted, features: [] }, { dryRun: false, force: false, lists: [] });
    await applyDefinitions(
      db,
      to,
      { ...wanted, features: wanted.features.map((each) => ({ ...each, key: 'f2' })) },
      { dryRun: false, force: false, lists: [] },
    );
    expect(await loadSetup(t.system, to, directory, setup)).toMatchObject({ definitions: 'left' });
    await appendFile(join(directory, 'definitions.yaml'), ' ');
    expect((await verifyExport(directory)).differences).toEqual([
      { filename: 'definitions.yaml', problem: expect.stringMatching(/bytes, not/) },
    ]);
  });
});
