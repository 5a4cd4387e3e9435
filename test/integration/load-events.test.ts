import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { FileStore } from '../../src/files/file-store.ts';
import { cancelLoad } from '../../src/load/end.ts';
import { retryLoad } from '../../src/load/retry.ts';
import {
  expireLeases,
  manualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { readEvents } from '../support/oracles/events.ts';
import { systemOfFile } from '../support/servers/system.ts';

const t = await systemOfFile();

const header = 'event_type,event_id,event_name,user_id,inserted_at,n';
const csv = (...lines: readonly string[]): string => `${[header, ...lines].join('\n')}\n`;
const at = '2026-03-04T05:06:07Z';
const none = { updated: 0, removed: 0, superseded: 0, rejected: 0 };

describe('event rows of a file', () => {
  // proves: counts-balance
  test('event rows of a file are stored as their records, and counted by kind beside the profiles', async () => {
    const environment = await newEnvironment(t.system);
    const file = csv(
      `identify_user,,,u1,,1`,
      `track,e1,Paid,u1,${at},2`,
      `page_view,,,u2,2026-04-01 00:00:00.5,3`,
      `purchase,,Paid,u1,${at},4`,
      `track,,,u1,${at},5`,
    );
    const load = await runManually(await startManually(t.system, environment, file));
    expect(load).toMatchObject({ status: 'completed', failure: null });
    expect(load.tally).toEqual({ ...none, read: 5, inserted: 3, unchanged: 0, rejected: 2 });
    const nothing = { ...none, read: 0, inserted: 0, unchanged: 0 };
    expect(load.tallyByKind).toEqual({
      identify_user: { ...nothing, read: 1, inserted: 1 },
      identify_company: nothing,
      track: { ...nothing, read: 2, inserted: 1, rejected: 1 },
      page_view: { ...nothing, read: 1, inserted: 1 },
      ...{ interaction: nothing, track_feature: nothing, session_start: nothing },
      unknown: { ...nothing, read: 1, rejected: 1 },
    });
    expect((await readProfiles(t.system, environment)).users).toEqual({
      u1: { company: null, metadata: { n: '1' } },
    });
    const events = await readEvents(t.system, environment);
    expect(events).toMatchObject([
      { id: 'e1', type: 'track', name: 'Paid', user: 'u1', source: 'import', metadata: { n: '2' } },
      { type: 'page_view', name: 'page_view', user: 'u2', at: '2026-04-01T00:00:00.500Z' },
    ]);
  });

  // proves: counts-balance
  test.each([
    ['update loads set rows_read = rows_read + 1, rows_inserted = rows_inserted + 1', '2 records received'],
    ['update load_kinds set rows_inserted = rows_inserted + 1', 'the counts by kind do not add up'],
    [
      'update load_chunks set done_at = null, rows_inserted = null, rows_updated = null, rows_unchanged = null, rows_removed = null, rows_superseded = null, rows_rejected = null',
      '2 chunks are not done',
    ],
  ])('the counts of a load add up, or the load does not complete: %s', async (change, reason) => {
    const file = csv(`track,,A,u,${at},1`, `track,,A,u,${at},2`);
    const manual = await startManually(t.system, await newEnvironment(t.system), file, { chunkBytes: 1 });
    for (let chunk = 0; chunk < manual.chunkCount; chunk++) await manual.chunk(chunk);
    await sql`${sql.raw(change)} where load_id = ${manual.loadId}`.execute(t.system.db);
    expect(await manual.finish()).toMatchObject({
      status: 'failed',
      failure: { message: expect.stringContaining(reason) },
    });
  });

  // proves: events-once
  test('event rows are added once, however often their file is loaded, also without a time', async () => {
    const environment = await newEnvironment(t.system);
    const file = csv(
      `track,,A,u,${at},1`,
      `track,,A,u,${at},1`,
      `track,,A,u,,1`,
      `track,,A,u,,1`,
      'track,x,A,u,,1',
    );
    const first = await runManually(await startManually(t.system, environment, file));
    expect(first.tally).toEqual({ ...none, read: 5, inserted: 5, unchanged: 0 });
    const events = await readEvents(t.system, environment);
    expect(events).toHaveLength(5);
    for (const chunkBytes of [1, 100, 100_000]) {
      // The bytes of this file must differ from those of the first file, because a file that is
      // identical to a loaded one is not read again.
      const other = file + '\n'.repeat(chunkBytes % 7);
      const again = await runManually(await startManually(t.system, environment, other, { chunkBytes }));
      expect(again.tally).toEqual({ ...none, read: 5, inserted: 0, unchanged: 5 });
    }
    expect(await readEvents(t.system, environment)).toEqual(events);
  });

  describe('events of a file that was loaded before', () => {
    const file = csv(`track,,A,u,${at},1`, `track,x,A,u,${at},2`, `page_view,,,v,${at},3`);

    async function load(environmentId: number, content = file) {
      const manual = await startManually(t.system, environmentId, content, { chunkBytes: 1 });
      const { tally, tallyByKind } = await runManually(manual);
      const { read } = await sql<{ read: number }>`
        select count(*) filter (where attempts > 0)::int as read
        from load_chunks
        where load_id = ${manual.loadId}`
        .execute(t.system.db)
        .then(({ rows }) => rows[0] ?? { read: -1 });
      return { ...tally, read, views: tallyByKind?.page_view };
    }

    test('a file of events that was loaded before is counted as unchanged without being read, also after a reload', async () => {
      const environment = await newEnvironment(t.system);
      expect(await load(environment)).toMatchObject({ inserted: 3, read: 3 });
      for (let time = 0; time < 2; time++) {
        expect(await load(environment)).toMatchObject({
          ...none,
          inserted: 0,
          unchanged: 3,
          read: 0,
          views: { inserted: 0, unchanged: 1 },
        });
      }
      expect(await load(await newEnvironment(t.system))).toMatchObject({ inserted: 3, read: 3 });
    });

    test('a file that was loaded before is read if it has profiles, rejects or superseded records', async () => {
      for (const line of [`identify_user,,,u,,1`, 'track,,,u,,1', `track,x,A,u,${at},4`]) {
        const environment = await newEnvironment(t.system);
        await load(environment, `${file}${line}\n`);
        expect(await load(environment, `${file}${line}\n`)).toMatchObject({ inserted: 0, read: 4 });
      }
    });

    test.each([
      ['by a statement', 'delete from sluice.events where environment_id = $1', 3],
      ['from a month', `delete from sluice.events_2026_03 where environment_id = $1 and user_id = 'u'`, 2],
      ['by a truncation', 'truncate sluice.events, sluice.event_ids', 3],
      ['by a truncation of a month', `truncate sluice.events_2026_03, sluice.event_ids`, 3],
    ])('events are added again after they were removed %s', async (_how, statement, missing) => {
      const environment = await newEnvironment(t.system);
      const bystander = await newEnvironment(t.system);
      await load(environment);
      await load(bystander);
      await t.system.pool.query(statement.replace('$1', String(environment)));
      await t.system.pool.query('delete from sluice.event_ids where environment_id = $1', [environment]);
      expect(await load(environment)).toMatchObject({ inserted: missing, unchanged: 3 - missing, read: 3 });
      if (statement.startsWith('delete')) expect(await load(bystander)).toMatchObject({ read: 0 });
    });

    test('events are added again after their ids were removed later than the events', async () => {
      const environment = await newEnvironment(t.system);
      await load(environment);
      await t.system.pool.query('delete from sluice.events where environment_id = $1', [environment]);
      expect(await load(environment)).toMatchObject({ inserted: 2, unchanged: 1, read: 3 });
      await t.system.pool.query('delete from sluice.event_ids where environment_id = $1', [environment]);
      expect(await load(environment)).toMatchObject({ inserted: 1, unchanged: 2, read: 3 });
    });

    test('events can be removed after their environment is gone', async () => {
      await t.system.pool.query(`
        insert into sluice.events (inserted_at, environment_id, event_id, event_name, user_id, source)
        values ('${at}', 2147483647, 'e', 'A', 'u', 'import')`);
      const removal = 'delete from sluice.events where environment_id = 2147483647';
      expect(await t.system.pool.query(removal)).toMatchObject({ rowCount: 1 });
    });

    test('events are added again after a removal that began before their load and was committed after it', async () => {
      const environment = await newEnvironment(t.system);
      await load(environment, csv(`track,,A,u,${at},0`));
      const client = await t.system.pool.connect();
      try {
        await client.query('begin');
        await client.query('delete from sluice.events where environment_id = $1', [environment]);
        await load(environment);
        await client.query('commit');
      } finally {
        client.release();
      }
      expect(await load(environment)).toMatchObject({ unchanged: 3, read: 3 });
    });
  });

  test('events that an export wrote with their ids are recognised', async () => {
    const environment = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environment, csv(`track,,A,u,${at},1`)));
    const [event] = await readEvents(t.system, environment);
    const load = await startManually(
      t.system,
      environment,
      csv(`track,${event?.id},A,u,${at},1`, `track,${event?.id},B,u,${at},1`),
      { chunkBytes: 1 },
    );
    expect((await runManually(load, [1, 0])).tally).toEqual({
      ...none,
      read: 2,
      inserted: 0,
      unchanged: 1,
      superseded: 1,
    });
    expect(await readEvents(t.system, environment)).toEqual([event]);
  });

  test('event rows are merged after a chunk with stored events, and copied again after a chunk without', async () => {
    const environment = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environment, csv(`track,,A,u,${at},1`)));
    const load = await startManually(
      t.system,
      environment,
      csv(`track,,A,u,${at},0`, `track,,A,u,${at},1`, `track,,A,u,${at},2`, `track,,A,u,${at},3`),
      { chunkBytes: 1 },
    );
    const memory = t.system.memory.of(load.loadId);
    const states: string[] = [];
    for (let chunkNo = 0; chunkNo < 4; chunkNo++) {
      await load.chunk(chunkNo);
      states.push(memory.events);
    }
    expect(states).toEqual(['unknown', 'known', 'new', 'new']);
    expect((await load.finish()).tally).toEqual({ ...none, read: 4, inserted: 3, unchanged: 1 });
  });

  test('event rows that only the database refuses are refused alone', async () => {
    const environment = await newEnvironment(t.system);
    await sql`
      alter table events add constraint test_refuses check (metadata ->> 'n' <> 'refuse me') not valid`.execute(
      t.system.db,
    );
    const file = csv(
      `track,,A,u,${at},1`,
      `track,,A,u,${at},refuse me`,
      `page_view,,,u,${at},refuse me`,
      `identify_user,,,u,,1`,
      `track,,A,u,${at},2`,
    );
    const load = await startManually(t.system, environment, file);
    const ended = await runManually(load);
    await sql`alter table events drop constraint test_refuses`.execute(t.system.db);
    expect(ended.tally).toEqual({ ...none, read: 5, inserted: 3, unchanged: 0, rejected: 2 });
    expect(ended.tallyByKind).toMatchObject({ track: { rejected: 1 }, page_view: { rejected: 1 } });
    const rejects = await readRejects(t.system, load.jobId);
    expect(rejects.map(({ row, code }) => [row, code])).toEqual([
      [2, 'refused_by_database'],
      [3, 'refused_by_database'],
    ]);
    expect((await readEvents(t.system, environment)).map(({ metadata }) => metadata)).toEqual(
      expect.arrayContaining([{ n: '1' }, { n: '2' }]),
    );
  });

  test('a month of events that was dropped during a load is created again', async () => {
    const environment = await newEnvironment(t.system);
    const old = csv('track,,A,u,2011-05-06T00:00:00Z,1');
    await runManually(await startManually(t.system, environment, old));
    const load = await startManually(t.system, environment, csv('track,,A,u,2011-05-07T00:00:00Z,1'));
    await sql`drop table sluice.events_2011_05`.execute(t.system.db);
    await load.chunk(0);
    expect((await load.look()).tally.read).toBe(0);
    await load.chunk(0);
    expect((await load.finish()).tally).toEqual({ ...none, read: 1, inserted: 1, unchanged: 0 });
    expect(await readEvents(t.system, environment)).toHaveLength(1);
  });
});

describe('events in several chunks', () => {
  // proves: events-once
  test('events in several chunks do not replace a stored event with their id', async () => {
    const environment = await newEnvironment(t.system);
    await runManually(await startManually(t.system, environment, csv(`track,x,A,u,${at},before`)));
    const file = csv(`track,x,B,u,${at},1`, `track,x,C,u,${at},2`);
    const load = await startManually(t.system, environment, file, { chunkBytes: 1 });
    expect((await runManually(load, [1, 0])).tally).toMatchObject({ unchanged: 1, superseded: 1 });
    expect(await readEvents(t.system, environment)).toMatchObject([{ name: 'A', metadata: { n: 'before' } }]);
  });

  // proves: events-once
  test('events in several chunks are stored exactly after a finish that broke off half-way', async () => {
    const environment = await newEnvironment(t.system);
    const same = `track,,A,u,${at},1`;
    const load = await startManually(t.system, environment, csv(same, same, same, same), { chunkBytes: 1 });
    for (const chunkNo of [3, 1, 0, 2]) await load.chunk(chunkNo);
    let reads = 0;
    const files: FileStore = Object.assign(Object.create(t.system.files) as FileStore, {
      readRange: (...range: Parameters<FileStore['readRange']>) => {
        if (++reads === 2) throw new Error('the file is away');
        return t.system.files.readRange(...range);
      },
    });
    await load.finish({ ...withoutQueue(t.system), files });
    expect(await load.look()).toMatchObject({ status: 'processing', tally: { inserted: 2, unchanged: 2 } });
    await expireLeases(t.system, load.loadId);
    const ended = await load.finish();
    expect(ended).toMatchObject({ status: 'completed' });
    expect(ended.tally).toEqual({ ...none, read: 4, inserted: 4, unchanged: 0 });
    expect(await readEvents(t.system, environment)).toHaveLength(4);
  });

  // proves: events-once
  test('events in several chunks are stored exactly by a load that was cancelled, overtaken and retried', async () => {
    const environment = await newEnvironment(t.system);
    const same = `track,,A,u,${at},1`;
    const file = csv(same, 'track,x,First,u,,1', same, 'track,x,Last,u,,1', same);
    const load = await startManually(t.system, environment, file, { chunkBytes: 1 });
    for (const chunkNo of [2, 3]) await load.chunk(chunkNo);
    await cancelLoad(withoutQueue(t.system), environment, load.jobId);
    await runManually(await startManually(t.system, environment, csv(same)));
    await retryLoad(withoutQueue(t.system), environment, load.jobId);
    const retried = await manualLoad(t.system, environment, load.jobId);
    const ended = await runManually(retried, [4, 1, 0]);
    expect(ended.tally).toEqual({ ...none, read: 5, inserted: 4, unchanged: 0, superseded: 1 });
    const names = (await readEvents(t.system, environment)).map(({ name }) => name);
    expect(names.sort()).toEqual(['A', 'A', 'A', 'First']);
  });
});
