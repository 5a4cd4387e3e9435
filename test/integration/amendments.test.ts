import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { prune } from '../../src/background-jobs/prune.ts';
import { cancelLoad } from '../../src/load/end-load.ts';
import { retryLoad } from '../../src/load/retry-load.ts';
import {
  type DatedUserRow,
  writeCompanies,
  writeDatedProfiles,
  writeUsers,
} from '../../src/postgres/stores/profiles.ts';
import { amendManually } from '../support/amend-file.ts';
import {
  type ManualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  shuffled,
  startManually,
} from '../support/load-file.ts';
import { ndjsonFile, type RandomFile } from '../support/random-files.ts';
import { runs } from '../support/runs.ts';
import { type CompanyRecord, SerialOracle, type UserRecord } from '../support/serial-oracle.ts';
import { systemOfFile } from '../support/system.ts';
import { undo } from '../support/undo.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();

type Record = UserRecord | CompanyRecord;

function rowOf(environmentId: number, record: Record): DatedUserRow {
  const { company } = record.entity === 'users' ? record : { company: undefined };
  const companyId = company === null ? '' : (company?.id ?? null);
  const removes = Object.values(record.properties).includes(null) || companyId === '';
  return {
    environmentId,
    key: record.id,
    at: null,
    companyId,
    removes,
    properties: JSON.stringify(record.properties),
  };
}

/** A record by itself, as /v1/identify takes it, or as the item of a batch in which some record has a time. */
async function identify(environmentId: number, record: Record, isBatched: boolean): Promise<void> {
  const row = rowOf(environmentId, record);
  const company = record.entity === 'users' ? record.company : null;
  const named =
    company == null
      ? []
      : [rowOf(environmentId, { entity: 'companies', id: company.id, properties: company.properties })];
  const { pool } = t.system;
  if (isBatched)
    await writeDatedProfiles(
      pool,
      record.entity === 'users' ? [row] : [],
      record.entity === 'users' ? named : [row],
    );
  else if (record.entity === 'companies') await writeCompanies(pool, [row]);
  else await writeUsers(pool, [row], named);
}

/** Changes a profile that is there, as an operator does it; returns whether it is. */
async function operate(environmentId: number, record: Record, removes: boolean): Promise<boolean> {
  const { entity, id, properties } = record;
  const own = sql`environment_id = ${environmentId} and ${sql.ref(entity === 'users' ? 'user_id' : 'company_id')} = ${id}`;
  const { numAffectedRows } = await (removes
    ? sql`delete from ${sql.table(entity)} where ${own}`
    : sql`update ${sql.table(entity)} set metadata = metadata || ${JSON.stringify(properties)} where ${own}`
  ).execute(t.system.db);
  return (numAffectedRows ?? 0n) > 0n;
}

/** What ended before now is pruned, files and nothing else. */
async function pruneAll(): Promise<void> {
  const config = { ...t.config, fileRetentionDays: 0 };
  await prune({ ...t.system, config });
}

/** Chunks in an order of their own, and once more if one was given back. */
async function run(load: ManualLoad, ranks: readonly number[]): Promise<void> {
  const ended = await runManually(load, shuffled(load, ranks));
  expect([ended.status, ended.failure]).toEqual(['completed', null]);
}

/** A value of its own, so that whatever comes after the file is a change. */
interface Change {
  readonly entity: 'users' | 'companies';
  readonly id: string;
  readonly name: string;
  readonly moves: boolean;
  readonly by: 'file' | 'record' | 'batch' | 'operator' | 'removal';
}

const change: fc.Arbitrary<Change> = fc.record({
  entity: fc.constantFrom('users', 'users', 'companies'),
  id: fc.constantFrom('0', '1', '2'),
  name: fc.constantFrom('a', 'b', 'c'),
  moves: fc.boolean(),
  by: fc.constantFrom('file', 'record', 'batch', 'operator', 'removal'),
});

function recordOf({ entity, id, name, moves }: Change, step: number): Record {
  const properties = { [name]: `step ${step}` };
  if (entity === 'companies') return { entity, id: `c${id}`, properties };
  const company = moves ? { company: { id: `step ${step}`, properties: {} } } : {};
  return { entity, id: `k${id}`, properties, ...company };
}

function lineOf(record: Record): string {
  if (record.entity === 'companies')
    return `${JSON.stringify({ company_id: record.id, metadata: record.properties })}\n`;
  return `${JSON.stringify({ user_id: record.id, company_id: record.company?.id, metadata: record.properties })}\n`;
}

const lines = (file: RandomFile): string[] => file.text.trimEnd().split('\n');

describe('a file some of whose records are mended afterwards', () => {
  // proves: mend-yields
  test('ends as if the mended records stood at its end, whatever changed since, however they are sent', async () => {
    const property = fc.asyncProperty(
      fc.option(ndjsonFile, { nil: null }),
      ndjsonFile,
      fc.array(fc.nat(5), { minLength: 40, maxLength: 40 }),
      fc.array(fc.record({ change, groups: fc.array(fc.constantFrom(1, 2, 3), { maxLength: 2 }) }), {
        maxLength: 6,
      }),
      fc.constantFrom(1, 64, 200, 4_096),
      fc.array(fc.nat(), { minLength: 7, maxLength: 7 }),
      async (stored, file, fates, steps, bytes, ranks) => {
        const environmentId = await newEnvironment(t.system);
        const oracle = new SerialOracle();
        const load = async (text: string): Promise<ManualLoad> => {
          const started = await startManually(t.system, environmentId, text, {
            format: 'ndjson',
            chunkBytes: bytes,
          });
          await runManually(started, undefined);
          return started;
        };
        if (stored !== null) {
          oracle.load(stored.says);
          await load(stored.text);
        }
        // A record's fate: 0 it is right, 1 to 3 it is broken, and mended with that group; beyond: it is right.
        const fateOf = (row: number): number => {
          const fate = fates[row % fates.length] ?? 0;
          return fate > 3 || file.says[row] === 'rejected' ? 0 : fate;
        };
        const ofGroup = (group: number) => file.says.filter((_, row) => fateOf(row) === group);
        const broken = lines(file).map((line, row) => (fateOf(row) === 0 ? line : '{"a":1}'));
        const parent = await load(`${broken.join('\n')}\n`);
        oracle.load(ofGroup(0));
        const order = [...new Set([...steps.flatMap(({ groups }) => groups), 3, 1, 2])];
        for (const group of order) oracle.load(ofGroup(group));
        const left = new Set(order);
        const amend = async (group: number): Promise<void> => {
          if (!left.delete(group)) return;
          const mended = lines(file).flatMap((line, row) =>
            fateOf(row) === group ? [`${line.slice(0, -1)},"sluice_reject":{"row":${row + 1}}}\n`] : [],
          );
          if (mended.length === 0) return;
          await run(
            await amendManually(t.system, environmentId, parent.jobId, mended.join(''), {
              chunkBytes: bytes,
            }),
            ranks,
          );
        };
        for (const [step, { groups, change }] of steps.entries()) {
          for (const group of groups) await amend(group);
          const record = recordOf(change, step);
          if (change.by === 'removal' && record.entity === 'users') {
            if (await operate(environmentId, record, true)) oracle.remove(record.entity, record.id);
          } else if (change.by === 'removal' || change.by === 'operator') {
            const { entity, id, properties } = record;
            if (await operate(environmentId, record, false)) oracle.identify({ entity, id, properties });
          } else if (change.by === 'file') {
            oracle.load([record]);
            await load(lineOf(record));
          } else {
            oracle.identify(record);
            await identify(environmentId, record, change.by === 'batch');
          }
        }
        for (const group of order) await amend(group);
        expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
        const { tally, status } = await parent.look();
        const refused = file.says.filter((each) => each === 'rejected').length;
        expect([tally.rejected, tally.read]).toEqual([refused, file.says.length]);
        expect(status).toBe(refused === file.says.length ? 'failed' : 'completed');
      },
    );
    await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 100_000, numRuns: runs(14) });
  });
});

const csv = (...rows: readonly string[]): string => ['user_id,a,b', ...rows, ''].join('\n');
const mended = (...rows: readonly string[]): string => ['user_id,a,b,sluice_row', ...rows, ''].join('\n');
const usersOf = async (environmentId: number) =>
  Object.fromEntries(
    Object.entries((await readProfiles(t.system, environmentId)).users).map(([id, { metadata }]) => [
      id,
      metadata,
    ]),
  );

describe('a mended record', () => {
  // proves: mend-yields
  test('yields to what was accepted while its job ran, and beats all with wins', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv('u,0,', ',1,1', ',2,2', 'x,,'), {});
    const later = await startManually(t.system, environmentId, 'user_id,a\nu,later\n', {});
    await runManually(parent);
    await runManually(later);
    const amend = async (row: string, wins = false) =>
      run(await amendManually(t.system, environmentId, parent.jobId, mended(row), { wins }), [0]);
    await amend('u,1,1,2');
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: 'later', b: '1' } });
    await amend('u,2,2,3', true);
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: '2', b: '2' } });
  });

  // proves: mend-yields
  test('that yields altogether leaves its profile as it is, and its company is made all the same', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, '{"user_id":"x"}\n{"company_id":[]}', {});
    await runManually(parent);
    const later = '{"user_id":"u","company_id":"now","a":2}';
    await runManually(await startManually(t.system, environmentId, later, {}));
    const record = '{"user_id":"u","company_id":"gone","a":1,"sluice_reject":{"row":2}}';
    const amendment = await amendManually(t.system, environmentId, parent.jobId, record);
    expect((await runManually(amendment)).tally).toMatchObject({ read: 1, unchanged: 1, updated: 0 });
    expect(await readProfiles(t.system, environmentId)).toEqual({
      users: { u: { metadata: { a: 2 }, company: 'now' }, x: { metadata: {}, company: null } },
      companies: { gone: { metadata: {} }, now: { metadata: {} } },
    });
  });

  // proves: mended-once
  test('is free to be mended again if its job is cancelled, and that job is not retried', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv(',1,1', 'x,,'));
    await runManually(parent);
    const first = await amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,1'));
    await expect(amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,1'))).rejects.toThrow(
      'once',
    );
    await cancelLoad(t.system, environmentId, first.jobId);
    await expect(retryLoad(t.system, environmentId, first.jobId)).rejects.toThrow(parent.jobId);
    expect((await parent.look()).tally).toMatchObject({ rejected: 1, amended: 0 });
    await run(await amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,1')), [0]);
    expect((await parent.look()).tally).toMatchObject({ rejected: 0, amended: 1 });
  });

  // proves: mend-yields
  test('yields to a property that was removed since, and whole to a profile that was', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv('u,0,0', 'v,0,0', ',1,1', ',1,1'));
    await runManually(parent);
    await identify(environmentId, { entity: 'users', id: 'u', properties: { a: null } }, false);
    await sql`delete from users where environment_id = ${environmentId} and user_id = 'v'`.execute(
      t.system.db,
    );
    const amendment = await amendManually(
      t.system,
      environmentId,
      parent.jobId,
      mended('u,1,1,3', 'v,1,1,4'),
    );
    expect((await runManually(amendment)).tally).toMatchObject({ updated: 1, unchanged: 1, inserted: 0 });
    expect(await usersOf(environmentId)).toEqual({ u: { b: '1' } });
  });

  // proves: mend-yields
  test.each([
    ['is written', 'u'],
    ['makes the profile', 'v'],
  ])('yields to a single record that %s while the amendment waits for it', async (_, id) => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv('u,0,0', ',1,1'));
    await runManually(parent);
    const amendment = await amendManually(t.system, environmentId, parent.jobId, mended(`${id},1,1,2`));
    const writer = await t.system.pool.connect();
    try {
      await writer.query('begin');
      await writer.query(
        `insert into users (environment_id, user_id, metadata) values ($1, $2, '{"a": "single"}')
        on conflict (environment_id, user_id) do update set metadata = users.metadata || excluded.metadata`,
        [environmentId, id],
      );
      const chunk = amendment.chunk(0);
      await waitFor('the amendment to wait for the single record', async () => {
        const { rows } = await t.system.pool.query(
          'select from pg_stat_activity where $1 = any (pg_blocking_pids(pid))',
          [(writer as unknown as { processID: number }).processID],
        );
        return rows.length > 0;
      });
      await writer.query('commit');
      await chunk;
    } finally {
      writer.release();
    }
    // A profile that the amendment could not see makes it begin anew.
    expect((await runManually(amendment)).tally).toMatchObject({ read: 1, updated: 1 });
    expect(await usersOf(environmentId)).toMatchObject({ [id]: { a: 'single', b: '1' } });
  });

  // proves: mend-yields
  test('yields when it is merged again, because chunks were done out of order', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv('u,0,0', ',1,1', ',2,2'));
    await runManually(parent);
    await identify(environmentId, { entity: 'users', id: 'u', properties: { a: 'single' } }, false);
    const amendment = await amendManually(
      t.system,
      environmentId,
      parent.jobId,
      mended('u,1,1,2', 'u,2,2,3'),
      {
        chunkBytes: 1,
      },
    );
    expect((await runManually(amendment, [1, 0])).tally).toMatchObject({ updated: 1, superseded: 1 });
    expect(await usersOf(environmentId)).toEqual({ u: { a: 'single', b: '2' } });
  });

  // proves: mend-yields
  test('with a time yields to what is newer, and one without a time is as old as its file', async () => {
    const environmentId = await newEnvironment(t.system);
    const line = (record: object) => `${JSON.stringify({ event_type: 'identify_user', ...record })}\n`;
    const of = (year: number, names: string, rest: object = {}) => ({
      user_id: 'u',
      inserted_at: `${year}-01-01T00:00:00Z`,
      ...Object.fromEntries([...names].map((name) => [name, String(year)])),
      ...rest,
    });
    const parent = await startManually(t.system, environmentId, line(of(2020, 'ab')) + line({}).repeat(2));
    await runManually(parent);
    await identify(environmentId, { entity: 'users', id: 'u', properties: { b: 'single' } }, false);
    const amend = async (record: object) =>
      run(await amendManually(t.system, environmentId, parent.jobId, line(record)), [0]);
    await amend(of(2019, 'abc', { sluice_reject: { row: 2 } }));
    expect(await usersOf(environmentId)).toEqual({ u: { a: '2020', b: 'single', c: '2019' } });
    await amend({ user_id: 'u', a: 'mended', b: 'mended', sluice_reject: { row: 3 } });
    await runManually(await startManually(t.system, environmentId, line(of(2021, 'a'))));
    expect(await usersOf(environmentId)).toEqual({ u: { a: 'mended', b: 'single', c: '2019' } });
  });

  // proves: mend-yields
  test('is refused if the log does not hold all changes since, unless it wins', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv('u,0,0', ',1,1', ',2,2'));
    await runManually(parent);
    const waiting = await amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,2'));
    const { complete_since } = await t.system.db
      .selectFrom('change_log')
      .select('complete_since')
      .executeTakeFirstOrThrow();
    try {
      await sql`update change_log set complete_since = sluice.current_position() + 1`.execute(t.system.db);
      const refused = await runManually(waiting);
      expect([refused.status, refused.failure?.code]).toEqual(['failed', 'job_expired']);
      const again = (wins: boolean) =>
        amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,2'), { wins });
      await expect(again(false)).rejects.toMatchObject({ problems: [{ code: 'job_expired' }] });
      await run(await again(true), [0]);
    } finally {
      await t.system.db.updateTable('change_log').set({ complete_since }).execute();
    }
    expect(await usersOf(environmentId)).toEqual({ u: { a: '1', b: '1' } });
  });

  // proves: mended-once
  test('whose amendment is undone is refused again as it was, and may be mended again; so also without the file of its job', async () => {
    const environmentId = await newEnvironment(t.system);
    const line = (record: object) => `${JSON.stringify({ event_type: 'identify_user', ...record })}\n`;
    const file = line({ user_id: 'u', a: 0, b: 0 }) + line({ user_id: '' }) + line({ event_type: 'track' });
    const parent = await startManually(t.system, environmentId, file);
    await runManually(parent);
    await identify(environmentId, { entity: 'users', id: 'u', properties: { b: 'single' } }, false);
    await pruneAll();
    const before = [await readRejects(t.system, parent.jobId), (await parent.look()).tallyByKind];
    const mend = async (a: number) => {
      const record = line({ user_id: 'u', a, b: a, sluice_reject: { row: 2 } });
      const amendment = await amendManually(t.system, environmentId, parent.jobId, record);
      await run(amendment, [0]);
      expect(await usersOf(environmentId)).toEqual({ u: { a, b: 'single' } });
      expect((await parent.look()).tally).toMatchObject({ rejected: 1, amended: 1 });
      return amendment.jobId;
    };
    const first = await mend(1);
    await undo(t.system, environmentId, [first], { properties: ['b'] });
    expect((await parent.look()).tally).toMatchObject({ rejected: 1, amended: 1 });
    await undo(t.system, environmentId, [first]);
    expect(await usersOf(environmentId)).toEqual({ u: { a: 0, b: 'single' } });
    expect([await readRejects(t.system, parent.jobId), (await parent.look()).tallyByKind]).toEqual(before);
    expect((await parent.look()).tally).toMatchObject({ read: 3, rejected: 2, amended: 0 });
    const second = await mend(2);
    await sql`update change_log set complete_since_at = now()`.execute(t.system.db);
    await pruneAll();
    await undo(t.system, environmentId, [second]);
    expect((await parent.look()).tally).toMatchObject({ rejected: 1, amended: 1 });
  });

  // proves: mend-yields
  test('of an event is added with the id that it would have had', async () => {
    const environmentId = await newEnvironment(t.system);
    const event = (row: object) =>
      JSON.stringify({ event_type: 'track', user_id: 'u', inserted_at: '2026-11-01T00:00:00Z', ...row });
    const parent = await startManually(
      t.system,
      environmentId,
      `${event({})}\n${event({ event_name: 'A' })}\n`,
    );
    await runManually(parent);
    const row = { event_name: 'B', sluice_reject: { row: 1 } };
    const amendment = await amendManually(t.system, environmentId, parent.jobId, event(row));
    expect((await runManually(amendment)).tally).toMatchObject({ inserted: 1 });
    const whole = `${event({ event_name: 'B' })}\n${event({ event_name: 'A' })}\n`;
    const again = await runManually(await startManually(t.system, environmentId, whole));
    expect(again.tally).toMatchObject({ read: 2, unchanged: 2 });
  });

  // proves: mend-yields
  test('of an event that equals others of its file is added once more, whoever loads the whole file before or after', async () => {
    const load = async (environmentId: number, content: string) =>
      runManually(await startManually(t.system, environmentId, content, { chunkBytes: 150 }));
    const event = (row: object) =>
      JSON.stringify({ event_type: 'track', user_id: 'u', inserted_at: '2026-11-01T00:00:00Z', ...row });
    const [good, bad] = [event({ event_name: 'A' }), event({})];
    const whole = `${Array(6).fill(good).join('\n')}\n`;
    for (const before of [false, true]) {
      const environmentId = await newEnvironment(t.system);
      const parent = await load(environmentId, [bad, good, bad, bad, good, bad].join('\n'));
      expect(parent.tally).toMatchObject({ inserted: 2, rejected: 4 });
      if (before) expect((await load(environmentId, whole)).tally).toMatchObject({ inserted: 4 });
      const mend = async (rows: readonly number[], chunkBytes?: number) => {
        const mended = rows.map((row) => event({ event_name: 'A', sluice_reject: { row } })).join('\n');
        const options = chunkBytes === undefined ? {} : { chunkBytes };
        return runManually(await amendManually(t.system, environmentId, parent.jobId, mended, options));
      };
      const outcome = (count: number) => ({ [before ? 'unchanged' : 'inserted']: count, read: count });
      expect((await mend([1])).tally).toMatchObject(outcome(1));
      expect((await mend([3, 4, 6], 150)).tally).toMatchObject(outcome(3));
      expect((await load(environmentId, whole)).tally).toMatchObject({ unchanged: 6, inserted: 0 });
    }
  });
});
