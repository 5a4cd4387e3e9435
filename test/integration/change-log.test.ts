import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openRecord } from '../../src/ingest/fields.ts';
import { readUser } from '../../src/ingest/read-record.ts';
import { sweep } from '../../src/jobs/prune.ts';
import { findCursorProblem, readChangeLog, switchChangeLog } from '../../src/postgres/change-log.ts';
import type { Database } from '../../src/postgres/database.ts';
import { prepareDatabase } from '../../src/queue/provide-database.ts';
import { collectLog } from '../support/collected-log.ts';
import { connectTo } from '../support/connect.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { acceptExport, runExportTask } from '../support/exports.ts';
import { loadFile, runManually, startManually } from '../support/load-file.ts';
import { systemOfFile } from '../support/system.ts';
import { waitFor } from '../support/wait-for.ts';

const { log, lines } = collectLog();
const t = await systemOfFile({ log });
const { environmentId } = t.environment;

type Rows = readonly Readonly<Record<string, unknown>>[];

const ask = async (text: string, values: readonly unknown[] = []): Promise<Rows> =>
  (await t.system.pool.query(text, [...values])).rows;

const identify = (user_id: string, metadata: object, company?: object) =>
  t.system.ingest.identifyUser(
    readUser(openRecord(Buffer.from(JSON.stringify({ user_id, metadata, company }))), environmentId),
    null,
  );

const load = async (...records: readonly object[]) =>
  runManually(
    await startManually(
      t.system,
      environmentId,
      records.map((record) => `${JSON.stringify(record)}\n`).join(''),
    ),
  );

const imagesOf = (key: string) =>
  ask('select before, removed from changes where key = $1 order by seq', [key]);

const readLog = async (client: Pick<pg.Client, 'query'> = t.system.pool) =>
  (
    await client.query<{ since: number; known: number }>(
      'select complete_since as since, known_position as known from sluice.change_log',
    )
  ).rows.map(({ since, known }) => ({ since: Number(since), known: Number(known) }))[0];

const cursorOf = async (client: Pick<pg.Client, 'query'>): Promise<string> =>
  (await client.query<{ cursor: string }>('select sluice.current_cursor() as cursor')).rows[0]?.cursor ?? '';

/** Tells whether an export may continue at a cursor, removals included. */
const isValid = async (db: Database, since: string): Promise<boolean> =>
  (await findCursorProblem(db, { since, includeRemoved: true })) === null;

/** The day so many days after today (UTC), as partitions are called. */
const partition = (ahead: number): string =>
  `changes_${new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_')}`;

describe('the log of changes', () => {
  // proves: log-complete
  test('is turned off and on by CHANGES_DAYS, and complete from a position above whatever was written without it', async () => {
    await connectTo(t.databaseUrl, async (client) => {
      await identify('switched', { n: 1 });
      await switchChangeLog(client, 0, log);
      expect(lines.at(-1)).toMatchObject({ changes_days: 0, msg: expect.stringContaining('no longer kept') });
      expect(await readChangeLog(t.system.pool)).toMatchObject({ isOn: false });
      await identify('switched', { n: 2 });
      expect(await imagesOf('switched')).toEqual([]);

      const writer = await t.system.pool.connect();
      await writer.query('begin');
      await writer.query(`update users set metadata = '{"n":"3"}' where user_id = 'switched'`);
      const switching = switchChangeLog(client, 14, log);
      await waitFor('the switch to wait for the writer', async () => {
        const { rows } = await writer.query(
          `select from pg_locks join pg_stat_activity using (pid)
           where not granted and relation = 'users'::regclass and datname = current_database()`,
        );
        return rows.length > 0;
      });
      const { rows } = await writer.query<{ position: number }>(
        `select position from users where user_id = 'switched'`,
      );
      await writer.query('commit');
      writer.release();
      await switching;
      const unlogged = rows[0]?.position ?? Number.NaN;
      const since = (await readLog())?.since ?? Number.NaN;
      expect(since).toBeGreaterThan(unlogged);
      await identify('switched', { n: 4 });
      const [image] = await ask(
        `select position, position_before, before from changes where key = 'switched'`,
      );
      expect(image).toMatchObject({ position_before: unlogged, before: { n: '3' } });
      expect(image?.['position']).toBeGreaterThanOrEqual(since);
      // Nothing is locked where nothing is to be done.
      await switchChangeLog(client, 14, log);
      expect(await readLog()).toMatchObject({ since });
      expect(await readChangeLog(t.system.pool)).toMatchObject({ isOn: true, days: 0 });
    });
  });

  // proves: log-complete
  test('takes every change, though the partition of the day is missing or being made, and holds up no writer', async () => {
    await identify('busy', { n: 0 });
    let [writing, written, slowest] = [true, 0, 0];
    const write = async (): Promise<void> => {
      while (writing) {
        const began = performance.now();
        await identify('busy', { n: written + 1 });
        slowest = Math.max(slowest, performance.now() - began);
        written++;
      }
    };
    const there = async (name: string) =>
      (await ask('select to_regclass($1) as name', [name]))[0]?.['name'] !== null;
    // A deleted row is counted here.
    let taken = 0;
    const take = async (table: string): Promise<void> => {
      const rows = await ask(`delete from ${table} where key = 'busy' returning 1`);
      taken += rows.length;
    };
    const writers = [write()];
    onTestFinished(() => {
      writing = false;
    });
    for (let round = 0; round < 3; round++) {
      await connectTo(t.databaseUrl, async (client) => {
        await client.query(`begin; lock table sluice.changes`);
        taken += (await client.query(`delete from sluice.${partition(0)} where key = 'busy'`)).rowCount ?? 0;
        await client.query(`drop table sluice.${partition(0)}, sluice.${partition(1)}; commit`);
      });
      await waitFor(
        'changes without a partition',
        async () => (await ask('select from changes_default')).length > 0,
      );
      await waitFor('the partition of tomorrow', async () => {
        await sweep(t.system);
        return there(partition(1));
      });
      // A day whose first changes came without it keeps them where they are.
      expect(await there(partition(0))).toBe(false);
      await connectTo(t.databaseUrl, async (client) => {
        await client.query('begin; lock table sluice.changes');
        taken += (await client.query('delete from sluice.changes_default')).rowCount ?? 0;
        // Whoever waits now goes on into the new partition.
        await client.query('select sluice.ensure_changes_partition(now()); commit');
      });
      expect(await there(partition(0))).toBe(true);
    }
    writing = false;
    await Promise.all(writers);
    await take('changes');
    expect(taken).toBe(written);
    // The wait for a lock, its tries, and a wide margin for a busy machine.
    expect(slowest).toBeLessThan(5_000);
  });

  // proves: log-complete
  test('says what it takes, and that its days are not looked after', async () => {
    await ask(`drop table ${partition(1)}`);
    await ask(`insert into changes (at, position, position_before, environment_id, entity, key, before)
      values (now() + interval '30 days', 1, 0, 0, 'users', 'u', '{}')`);
    await ask(`select ensure_changes_partition(now() - interval '17 days')`);
    const { days, bytes, ...found } = await readChangeLog(t.system.pool);
    expect(found).toEqual({ isOn: true, strayRows: 1, hasTomorrow: false });
    expect(days).toBe(17);
    expect(bytes).toBeGreaterThan(50_000);
    const { text } = await t.system.metrics.render();
    for (const line of ['on 1', 'days 17', 'stray_rows 1', 'prepared 0', `bytes ${bytes}`])
      expect(text).toContain(`\nsluice_change_log_${line}\n`);
    await ask(`delete from changes_default`);
    await sweep(t.system);
    expect(await readChangeLog(t.system.pool)).toMatchObject({ strayRows: 0, hasTomorrow: true, days: 0 });
  });

  // proves: log-complete
  test('loses only whole days, and every change from where it is complete is there', async () => {
    const days = { 20: [100, 205], 16: [201, 300], 15: [299, 310], 14: [150, 302, 400], 1: [401] };
    for (const [ago, positions] of Object.entries(days)) {
      await ask(`select ensure_changes_partition(now() - $1 * interval '1 day')`, [Number(ago)]);
      for (const position of positions)
        await ask(
          `insert into changes (at, position, position_before, environment_id, entity, key, before)
           values (now() - $1 * interval '1 day', $2, 0, 0, 'users', 'old', '{}')`,
          [Number(ago), position],
        );
    }
    const stray = (position: number, ago: number) =>
      ask(
        `insert into changes (at, position, position_before, environment_id, entity, key, before)
         values (now() - $1 * interval '1 day', $2, 0, 0, 'users', 'old', '{}')`,
        [ago, position],
      );
    await ask('update change_log set complete_since = 0');
    const kept = async () =>
      (await ask(`select position from changes where key = 'old' order by position`)).map(
        ({ position }) => position,
      );
    await connectTo(t.databaseUrl, async (reader) => {
      await reader.query('begin; select count(*) from sluice.changes');
      await sweep(t.system);
      expect(await kept(), 'somebody reads it').toHaveLength(10);
    });
    await sweep(t.system);
    expect(await kept()).toEqual([150, 302, 400, 401]);
    expect(await readLog()).toMatchObject({ since: 311 });
    await stray(350, 40);
    await sweep(t.system);
    expect(await kept()).toEqual([150, 302, 400, 401]);
    expect(await readLog()).toMatchObject({ since: 351 });
  });
});

describe('positions', () => {
  // proves: cursors-of-copies
  test('go on above those of the data if the database was copied to a server whose transaction ids are lower', async () => {
    await connectTo(t.databaseUrl, async (client) => {
      const before = await cursorOf(client);
      await identify('copied', { n: 0 });
      await client.query('begin; select sluice.raise_positions(sluice.next_position()); commit');
      await identify('copied', { n: 1 });
      await sweep(t.system);
      const later = await cursorOf(client);
      expect([await isValid(t.system.db, before), await isValid(t.system.db, later)]).toEqual([true, true]);
      const change = `prepare change as update sluice.users set metadata = metadata || $1 where user_id = 'copied' returning position`;
      await client.query(change);
      // As the functions of a copy find it, on a server that has not counted as far.
      const goBack = () =>
        client.query(
          `create or replace function sluice.position_offset() returns bigint language sql stable parallel safe return 0::bigint`,
        );
      const write = async (n: number): Promise<number> =>
        Number((await client.query<{ position: string }>(`execute change('{"n":${n}}')`)).rows[0]?.position);
      for (let n = 2; n < 10; n++) await write(n);
      const last = await write(10);
      await prepareDatabase(t.databaseUrl, false, log);
      expect(await isValid(t.system.db, later), 'nothing has gone back').toBe(true);

      await goBack();
      expect(await write(11)).toBeLessThan(last);
      await prepareDatabase(t.databaseUrl, false, log);
      expect(lines.at(-1)).toMatchObject({ msg: expect.stringContaining('higher transaction ids') });
      expect(await write(12), 'also in a session that was there').toBeGreaterThan(last + 2 ** 33);
      expect([await isValid(t.system.db, before), await isValid(t.system.db, later)]).toEqual([true, false]);
      const now = await cursorOf(client);
      expect(await isValid(t.system.db, now)).toBe(true);
      await identify('copied', { n: 13 });
      const changed = await client.query(
        'select user_id from sluice.users where sluice.is_since(position, $1::pg_snapshot)',
        [now],
      );
      expect(changed.rows).toEqual([{ user_id: 'copied' }]);

      // Written since positions were last noted: a server finds them in the data.
      await write(14);
      await goBack();
      await ask('update change_log set known_position = 0');
      await prepareDatabase(t.databaseUrl, false, log, 14);
      expect(await write(15)).toBeGreaterThan(2 ** 33);
    });
  });
});

describe('erased people and companies', () => {
  // proves: erased-images
  test('are in no byte of the database, the files and the log but where their deletion is told', async () => {
    const gone = 'erased-person-7f3a';
    const before = 'erased-before-91c2';
    const alone = 'erased-alone-b00c';
    const company = 'erased-company-55d0';
    const ids = [gone, before, alone, company];
    const text = (...records: readonly object[]) =>
      records.map((record) => `${JSON.stringify(record)}\n`).join('');
    await load(
      { user_id: gone, company_id: company, plan: 'a' },
      { user_id: before, plan: 'a' },
      { user_id: alone, plan: 'a', company_id: company },
      { user_id: 'stays', company_id: company, plan: 'a' },
    );
    await load(...[gone, before, 'stays'].map((user_id) => ({ user_id, plan: 'b' })));
    await load({ company_id: company, name: 'x' });
    await identify(gone, { secret: 'mine' }, { company_id: company, name: 'y' });
    await ask('delete from users where user_id = $1', [alone]);
    await load({ user_id: gone, plan: 'c' });
    await loadFile(t.system, environmentId, text({ user_id: gone, plan: 'planned' }), { plan: true });
    const refused = await load({ user_id: gone, company_id: '', plan: [] }, { plan: gone });
    expect(refused.tally.rejected).toBeGreaterThan(0);
    // Its images are there, the row is not.
    await ask('delete from users where user_id = $1', [before]);
    expect(await placesOf(ids)).toEqual(
      expect.arrayContaining([partition(0), 'planned_rows', 'load_rejects', 'users']),
    );

    const people = await acceptDeletion(t.system, environmentId, 'users', [
      gone,
      before,
      alone,
      'never-there',
    ]);
    expect(await people.run()).toMatchObject({ counts: { deleted: 3, not_found: 1 } });
    const companies = await acceptDeletion(t.system, environmentId, 'companies', [company]);
    expect(await companies.run()).toMatchObject({ counts: { deleted: 1 } });

    expect(await placesOf(ids)).toEqual([partition(0), 'deletion_ids']);
    for (const id of ids) expect(await imagesOf(id)).toEqual([{ before: null, removed: true }]);
    const told = await ask('select * from changes where key = $1', [gone]);
    const { position, position_before, seq, at, ...rest } = told[0] ?? {};
    expect(rest).toEqual({
      ...{ environment_id: environmentId, entity: 'users', key: gone, removed: true, is_operator: false },
      ...{ load_id: null, before: null, company_before: null, load_before: null },
      first_seen_before: null,
    });
    // Others keep theirs, without the company.
    expect(await imagesOf('stays')).not.toEqual([]);
    const written = await acceptExport(t.system, environmentId, {
      scope: { kinds: ['users', 'companies', 'events'] },
    } as never);
    await runExportTask(t.system, written.exportId);
    for (const file of await t.storedFiles()) {
      const bytes = await readFile(file);
      for (const id of ids) expect([file, bytes.includes(id)]).toEqual([file, false]);
    }
    const logged = JSON.stringify(lines);
    for (const id of ids) expect(logged).not.toContain(id);
  });

  // proves: erased-images
  test('are erased with the images of whoever was writing them, and in slices however many there are', async () => {
    await identify('racing', { n: 1 });
    await identify('many', { n: 1 });
    await ask(
      `insert into changes (position, position_before, environment_id, entity, key, before)
       select n, 0, $1, 'users', 'many', '{"n": 0}' from generate_series(1, 12000) n`,
      [environmentId],
    );
    await connectTo(t.databaseUrl, async (writer) => {
      await writer.query(`begin; update sluice.users set metadata = '{"n": 2}' where user_id = 'racing'`);
      const deletion = await acceptDeletion(t.system, environmentId, 'users', ['racing', 'many']);
      const running = deletion.run();
      await waitFor('the deletion to wait for the writer', async () => {
        const { rows } = await writer.query(
          `select from pg_locks join pg_stat_activity using (pid)
           where not granted and locktype = 'transactionid' and datname = current_database()`,
        );
        return rows.length > 0;
      });
      await writer.query('commit');
      expect(await running).toMatchObject({ counts: { deleted: 2 } });
    });
    expect(await imagesOf('racing')).toEqual([{ before: null, removed: true }]);
    const left = await imagesOf('many');
    expect(left.length).toBeGreaterThan(0);
    for (const row of left) expect(row).toEqual({ before: null, removed: true });
  });
});

test('the examples of sql/README.md for the log of changes give what they say', async () => {
  await load({ user_id: 'analysed', plan: 'free' });
  const { jobId } = await load({ user_id: 'analysed', plan: 'pro' });
  const readme = await readFile('sql/README.md', 'utf8');
  const [examples = ''] = /(?<=^## sluice\.changes$.*?^```sql\n).*?(?=^```$)/ms.exec(readme) ?? [];
  const [byLoad = [], plans = []] = await Promise.all(
    examples.split(';\n').map((query) => query && ask(query)),
  );
  expect(byLoad).toContainEqual(expect.objectContaining({ job_id: jobId, changed: 1, removed: 0 }));
  expect(plans).toContainEqual(expect.objectContaining({ key: 'analysed', was: 'free', became: 'pro' }));
});

/** The tables of the database, those of the queue included, in a row of which one of the texts stands, as text or as bytes. */
async function placesOf(texts: readonly string[]): Promise<string[]> {
  const tables = await ask(`
    select format('%I.%I', nspname, relname) as name, relname
    from pg_class c
    join pg_namespace n on n.oid = relnamespace
    where relkind = 'r' and nspname !~ '^(pg_|information_schema)'
    order by relname`);
  const found: string[] = [];
  for (const { name, relname } of tables) {
    const rows = await ask(
      `select 1 from ${String(name)} r where exists (select 1 from unnest($1::text[]) t
        where strpos(r::text, t) > 0 or strpos(r::text, encode(convert_to(t, 'UTF8'), 'hex')) > 0) limit 1`,
      [texts],
    );
    if (rows.length > 0) found.push(String(relname));
  }
  return found;
}
