import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openRecord } from '../../src/ingest/fields.ts';
import { readUser } from '../../src/ingest/read-record.ts';
import { sweep } from '../../src/jobs/prune.ts';
import { findCursorProblem, readChangeLog, switchChangeLog } from '../../src/postgres/change-log.ts';
import type { Database } from '../../src/postgres/database.ts';
import { prepareDatabase } from '../../src/queue/provide-database.ts';
import { loadFile, runManually, startManually } from '../support/files/load-file.ts';
import { collectLog } from '../support/servers/collected-log.ts';
import { connectTo } from '../support/servers/connect.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { acceptExport, runExportTask } from '../support/servers/exports.ts';
import { systemOfFile } from '../support/servers/system.ts';
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

/** Returns whether an export with removals may start from a cursor. */
const isValid = async (db: Database, since: string): Promise<boolean> =>
  (await findCursorProblem(db, { since, includeRemoved: true })) === null;

/** Returns the name of the partition for the date `ahead` days after today (UTC). */
const partition = (ahead: number): string =>
  `changes_${new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '_')}`;

describe('the log of changes', () => {
  // proves: log-complete
  test('CHANGES_DAYS turns the log of changes off and on, and the log is complete from a position above every unlogged write', async () => {
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
      // The log is already on. Switching it on again must not lock it.
      await switchChangeLog(client, 14, log);
      expect(await readLog()).toMatchObject({ since });
      expect(await readChangeLog(t.system.pool)).toMatchObject({ isOn: true, days: 0 });
    });
  });

  // proves: log-complete
  test('the log of changes takes every change while the partition of the day is missing or created, and blocks no writer', async () => {
    await identify('busy', { n: 0 });
    let isWriting = true;
    let writes = 0;
    let slowest = 0;
    const write = async (): Promise<void> => {
      while (isWriting) {
        const began = performance.now();
        await identify('busy', { n: writes + 1 });
        slowest = Math.max(slowest, performance.now() - began);
        writes++;
      }
    };
    const there = async (name: string) =>
      (await ask('select to_regclass($1) as name', [name]))[0]?.['name'] !== null;
    // Number of changes logged so far. `take` counts the rows that it deletes from the log.
    let logged = 0;
    const take = async (table: string): Promise<void> => {
      const rows = await ask(`delete from ${table} where key = 'busy' returning 1`);
      logged += rows.length;
    };
    const writers = [write()];
    onTestFinished(() => {
      isWriting = false;
    });
    for (let round = 0; round < 3; round++) {
      await connectTo(t.databaseUrl, async (client) => {
        await client.query(`begin; lock table sluice.changes`);
        logged += (await client.query(`delete from sluice.${partition(0)} where key = 'busy'`)).rowCount ?? 0;
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
      // The partition for today is not created while the default partition contains today's
      // changes.
      expect(await there(partition(0))).toBe(false);
      await connectTo(t.databaseUrl, async (client) => {
        await client.query('begin; lock table sluice.changes');
        logged += (await client.query('delete from sluice.changes_default')).rowCount ?? 0;
        // The writers wait for the lock on the log. After the commit, they write to the partition
        // that this statement creates.
        await client.query('select sluice.ensure_changes_partition(now()); commit');
      });
      expect(await there(partition(0))).toBe(true);
    }
    isWriting = false;
    await Promise.all(writers);
    await take('changes');
    expect(logged).toBe(writes);
    // The limit is high enough for a write that waits for a lock and is retried on a busy machine.
    expect(slowest).toBeLessThan(5_000);
  });

  // proves: log-complete
  test('the log of changes reports its size, its stray rows and a missing partition', async () => {
    await ask(`drop table ${partition(1)}`);
    await ask(`insert into changes (at, position, position_before, environment_id, entity, key, before)
      values (now() + interval '30 days', 1, 0, 0, 'users', 'u', '{}')`);
    await ask(`select ensure_changes_partition(now() - interval '17 days')`);
    const { days, bytes, ...others } = await readChangeLog(t.system.pool);
    expect(others).toEqual({ isOn: true, strayRows: 1, hasTomorrow: false });
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
  test('the log of changes loses only whole days, and has every change from its position on', async () => {
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
    const storedPositions = async () =>
      (await ask(`select position from changes where key = 'old' order by position`)).map(
        ({ position }) => position,
      );
    await connectTo(t.databaseUrl, async (reader) => {
      await reader.query('begin; select count(*) from sluice.changes');
      await sweep(t.system);
      expect(await storedPositions(), 'somebody reads it').toHaveLength(10);
    });
    await sweep(t.system);
    expect(await storedPositions()).toEqual([150, 302, 400, 401]);
    expect(await readLog()).toMatchObject({ since: 311 });
    await stray(350, 40);
    await sweep(t.system);
    expect(await storedPositions()).toEqual([150, 302, 400, 401]);
    expect(await readLog()).toMatchObject({ since: 351 });
  });
});

describe('positions', () => {
  // proves: cursors-of-copies
  test('positions continue above the data if the database was copied to a server with lower transaction ids', async () => {
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
      // Makes the database look like a copy on another server, whose transaction ids are lower.
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

      // The positions in the rows are higher than the recorded position, which the test sets to 0.
      // The server must therefore find the highest position in the rows.
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
  test('erased people and companies are in no byte of database, files and log, except in the record of their deletion', async () => {
    const erased = 'erased-person-7f3a';
    const before = 'erased-before-91c2';
    const alone = 'erased-alone-b00c';
    const company = 'erased-company-55d0';
    const ids = [erased, before, alone, company];
    const text = (...records: readonly object[]) =>
      records.map((record) => `${JSON.stringify(record)}\n`).join('');
    await load(
      { user_id: erased, company_id: company, plan: 'a' },
      { user_id: before, plan: 'a' },
      { user_id: alone, plan: 'a', company_id: company },
      { user_id: 'stays', company_id: company, plan: 'a' },
    );
    await load(...[erased, before, 'stays'].map((user_id) => ({ user_id, plan: 'b' })));
    await load({ company_id: company, name: 'x' });
    await identify(erased, { secret: 'mine' }, { company_id: company, name: 'y' });
    await ask('delete from users where user_id = $1', [alone]);
    await load({ user_id: erased, plan: 'c' });
    await loadFile(t.system, environmentId, text({ user_id: erased, plan: 'planned' }), { plan: true });
    const refused = await load({ user_id: erased, company_id: '', plan: [] }, { plan: erased });
    expect(refused.tally.rejected).toBeGreaterThan(0);
    // This removes the row of the user. The log still contains earlier states of the user.
    await ask('delete from users where user_id = $1', [before]);
    expect(await placesOf(ids)).toEqual(
      expect.arrayContaining([partition(0), 'planned_rows', 'load_rejects', 'users']),
    );

    const people = await acceptDeletion(t.system, environmentId, 'users', [
      erased,
      before,
      alone,
      'never-there',
    ]);
    expect(await people.run()).toMatchObject({ counts: { deleted: 3, not_found: 1 } });
    const companies = await acceptDeletion(t.system, environmentId, 'companies', [company]);
    expect(await companies.run()).toMatchObject({ counts: { deleted: 1 } });

    expect(await placesOf(ids)).toEqual([partition(0), 'deletion_ids']);
    for (const id of ids) expect(await imagesOf(id)).toEqual([{ before: null, removed: true }]);
    const deletions = await ask('select * from changes where key = $1', [erased]);
    const { position, position_before, seq, at, ...rest } = deletions[0] ?? {};
    expect(rest).toEqual({
      ...{ environment_id: environmentId, entity: 'users', key: erased, removed: true, is_operator: false },
      ...{ load_id: null, before: null, company_before: null, load_before: null },
      first_seen_before: null,
    });
    // The log still has earlier states of this user, but none of them contains the deleted company.
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
  test('erased profiles lose the images of a concurrent writer, in slices for any number of images', async () => {
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
    const images = await imagesOf('many');
    expect(images.length).toBeGreaterThan(0);
    for (const row of images) expect(row).toEqual({ before: null, removed: true });
  });
});

test('the examples of sql/README.md for the log of changes return the documented rows', async () => {
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

/**
 * Returns the names of all tables that contain one of the strings in any row, as text or as bytes.
 * Includes the tables of the queue.
 */
async function placesOf(texts: readonly string[]): Promise<string[]> {
  const tables = await ask(`
    select format('%I.%I', nspname, relname) as name, relname
    from pg_class c
    join pg_namespace n on n.oid = relnamespace
    where relkind = 'r' and nspname !~ '^(pg_|information_schema)'
    order by relname`);
  const names: string[] = [];
  for (const { name, relname } of tables) {
    const rows = await ask(
      `select 1 from ${String(name)} r where exists (select 1 from unnest($1::text[]) t
        where strpos(r::text, t) > 0 or strpos(r::text, encode(convert_to(t, 'UTF8'), 'hex')) > 0) limit 1`,
      [texts],
    );
    if (rows.length > 0) names.push(String(relname));
  }
  return names;
}
