import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import { afterEach, expect, test } from 'vitest';
import { writeBackupFile } from '../../src/backup/backup.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { countSizes, createSegment } from '../../src/definitions/segments.ts';
import { exportFormats } from '../../src/domain/export.ts';
import { createLakeRef, type FileRef, writeWhole } from '../../src/files/file-store.ts';
import { explainError } from '../../src/http/plugins/errors.ts';
import { compareFiles, mendLake } from '../../src/lake/lost-files.ts';
import { listSizes } from '../../src/postgres/stores/segments.ts';
import { makeReport } from '../../src/profiles/report.ts';
import { mirrorEvents } from '../../src/retention/mirror-events.ts';
import { pruneEvents } from '../../src/retention/prune-events.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { exportAll, records, texts } from '../support/export-files.ts';
import {
  comparable,
  expectNamedFiles,
  filesWith,
  type LakeRow,
  readLake,
  readTable,
} from '../support/lake.ts';
import { createEmptyDatabase } from '../support/postgres.ts';
import { insertEvents, instantBetween, monthsAgo } from '../support/retention.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
afterEach(() => t.close());

async function add(ids: readonly string[], user: string, months: number): Promise<void> {
  const [from, to] = [monthsAgo(months), Math.min(monthsAgo(months - 1), Date.now())];
  const of = { environment: t.environment.environmentId, name: 'seen', user, company: null };
  await insertEvents(
    t,
    ids.map((id, n) => ({ ...of, id, at: instantBetween(from, to, n / 10), metadata: {}, named: true })),
  );
  await sql`insert into users (environment_id, user_id) values (${of.environment}, ${user}) on conflict do nothing`.execute(
    t.system.db,
  );
}

const idsOf = (rows: readonly LakeRow[]) => rows.map(({ event_id: id }) => id).sort();

// proves: lake-restored
test.each(['folder', 's3'] as const)(
  'a database that was restored beside a newer lake (%s) names what is missing and unknown, and mends it: nothing stays that a deletion would not reach',
  async (storage) => {
    t = await openTestSystem({ storage, settings: { EVENT_RETENTION_DAYS: '100', LAKE: 'mirror' } });
    await add(['cold 1', 'cold 2'], 'ann', 7);
    await add(['cold 3'], 'doomed', 7);
    await add(['older 1'], 'ann', 8);
    await add(['hot 1', 'hot 2'], 'ann', 0);
    await pruneEvents(t.system);
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-restored-'));
    const database = await createEmptyDatabase();
    const path = join(folder, 'backup.tar.gz');
    await writeBackupFile({ databaseUrl: t.databaseUrl, files: null, filesAt: 'elsewhere' }, path);
    const all = await compareFiles(t.system.pool, t.system.files);
    expect(all).toMatchObject({ missing: [], unknown: [] });

    // A deletion and a compaction after the backup.
    const deletion = await acceptDeletion(t.system, t.environment.environmentId, 'users', ['doomed']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    await add(['hot 3'], 'bob', 0);
    await sql`update lake_months set appends = 1000`.execute(t.system.db);
    await pruneEvents(t.system);
    await pruneEvents(t.system);
    expect(await compareFiles(t.system.pool, t.system.files)).toMatchObject({ missing: [], unknown: [] });

    const restored = t.openAnother({ databaseUrl: database.url });
    try {
      const { lake } = await restoreBackup(path, { databaseUrl: database.url, files: restored.files });
      expect(lake).toEqual({ missing: expect.any(Number), unknown: expect.any(Number) });
      const found = await compareFiles(restored.pool, restored.files);
      expect(found).toMatchObject({ missing: { length: lake?.missing }, unknown: { length: lake?.unknown } });

      // Another database has its tables in the same storage.
      const neighbour = createLakeRef(uuidv7(), 'data', 0);
      await writeWhole(await restored.files.createAs(neighbour), [Buffer.from('not ours')]);
      const month = new Date(monthsAgo(7)).toISOString().slice(0, 7);
      const mended = { lost: [{ month, events: 3 }], foreign: [neighbour] };
      expect(await mendLake(restored)).toMatchObject(mended);
      await mirrorEvents(restored);
      await pruneEvents(restored);
      const exported = await exportAll(restored, t.environment.environmentId, { datasets: ['events'] });
      const rows = records((await texts(restored, exported))['events.ndjson']).map(comparable);
      expect(idsOf(rows)).toEqual(['hot 1', 'hot 2', 'older 1']);
      expect(idsOf(await readLake(restored, 'default'))).toEqual(idsOf(rows));
      const users = await readTable(restored, 'default', 'users');
      expect(users.map(({ user_id: id }) => id).sort()).toEqual(['ann', 'doomed']);
      const there = { ...t, system: restored };
      await expectNamedFiles(there, [neighbour]);
      expect(await filesWith(there, 'hot 3')).toEqual([]);
      const left = await compareFiles(restored.pool, restored.files);
      expect(left).toMatchObject({ missing: [], unknown: [], foreign: [neighbour], lost: [] });
    } finally {
      await restored.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);

// proves: lake-restored
test.each(['folder', 's3'] as const)(
  'a file of the lake that was cut short or overwritten (%s) counts as missing, is reported to whoever reads it, and is mended as one',
  async (storage) => {
    t = await openTestSystem({ storage, settings: { EVENT_RETENTION_DAYS: '100', LAKE: 'archive' } });
    await add(['cold 1', 'cold 2'], 'ann', 7);
    await add(['cold 3'], 'ann', 8);
    await pruneEvents(t.system);
    const { rows } = await sql<{ ref: FileRef; bytes: number }>`
      select file_ref as ref, byte_count as bytes from lake_files where kind = 'data' and table_name = 'events' order by month`.execute(
      t.system.db,
    );
    const [cut, other] = rows as [(typeof rows)[0], (typeof rows)[0]];
    const damaged = [cut.ref, other.ref];
    const start = await t.system.files.readRange(cut.ref, 0, cut.bytes - 1);
    for (const [ref, bytes] of [
      [cut.ref, start],
      [other.ref, Buffer.alloc(other.bytes + 1, 0x55)],
    ] as const)
      await writeWhole(await t.system.files.createAs(ref), [bytes]);
    const environmentId = t.environment.environmentId;
    const error = await makeReport(t.system, environmentId, {}).catch((thrown: unknown) => thrown);
    const answer = {
      status: 503,
      problems: [{ code: 'unavailable', message: expect.stringContaining('lake') }],
    };
    expect(explainError(error)).toMatchObject(answer);
    const found = await compareFiles(t.system.pool, t.system.files);
    expect({ ...found, missing: [...found.missing].sort() }).toMatchObject({
      missing: damaged.sort(),
      lost: [{ events: 1 }, { events: 2 }],
    });
    await mendLake(t.system);
    expect((await makeReport(t.system, environmentId, {})).days).toEqual([]);
    expect(await compareFiles(t.system.pool, t.system.files)).toMatchObject({ missing: [], lost: [] });
  },
);

// proves: lake-restored
test('a file of the lake in which bytes were changed is read by nobody, keeps no segment from being counted, and is mended as a missing one', async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE: 'archive' } });
  const { files, db } = t.system;
  const { environmentId } = t.environment;
  await add(['cold 1', 'cold 2'], 'ann', 7);
  await add(['cold 3'], 'joe', 8);
  await pruneEvents(t.system);
  const { rows } = await sql<{ ref: FileRef }>`
    select file_ref as ref from lake_files where kind = 'data' and table_name = 'events' order by month desc limit 1`.execute(
    db,
  );
  const ref = (rows[0] as (typeof rows)[0]).ref;
  const bytes = Buffer.concat(await files.open(ref).toArray());
  bytes.write('bob', bytes.indexOf('ann'));
  await writeWhole(await files.createAs(ref), [bytes]);

  const events = { datasets: ['events'] } as const;
  const readings = [
    ...exportFormats.map((format) => () => exportAll(t.system, environmentId, { ...events, format })),
    () => makeReport(t.system, environmentId, {}),
  ];
  for (const read of readings) {
    const error = await read().catch((thrown: unknown) => thrown);
    expect(explainError(error)).toMatchObject({
      status: 503,
      problems: [{ message: expect.stringContaining('--mend-lake'), details: ref }],
    });
  }
  const make = (key: string) =>
    createSegment(db, environmentId, { key, title: key, definition: { event: key } });
  const [lost, fine] = [await make('seen'), await make('other')];
  await countSizes(t.system, new AbortController().signal);
  const sizes = [await listSizes(db, lost.id), await listSizes(db, fine.id)];
  expect(sizes).toMatchObject([[{ users: null }], [{ users: 0 }]]);

  const month = new Date(monthsAgo(7)).toISOString().slice(0, 7);
  expect(await mendLake(t.system)).toMatchObject({ missing: [ref], lost: [{ month, events: 2 }] });
  const exported = await exportAll(t.system, environmentId, events);
  expect(idsOf(records((await texts(t.system, exported))['events.ndjson']).map(comparable))).toEqual([
    'cold 3',
  ]);
  expect(await mendLake(t.system)).toMatchObject({ missing: [], unknown: [], lost: [] });
});
