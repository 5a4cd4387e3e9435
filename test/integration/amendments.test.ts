import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
  runManually,
  startManually,
} from '../support/load-file.ts';
import { ndjsonFile, type RandomFile } from '../support/random-files.ts';
import { runs } from '../support/runs.ts';
import {
  type CompanyRecord,
  type OracleRecord,
  SerialOracle,
  type UserRecord,
} from '../support/serial-oracle.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
beforeAll(async () => {
  t = await openTestSystem();
});
afterAll(() => t?.close());

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

/** What ended before now is pruned, files and nothing else. */
async function pruneAll(): Promise<void> {
  const config = { ...t.config, fileRetentionDays: 0 };
  await prune({ ...t.system, config });
}

/** Chunks in an order of their own, and once more if one was given back. */
async function run(load: ManualLoad, ranks: readonly number[]): Promise<void> {
  const order = Array.from({ length: load.chunkCount }, (_, index) => index).sort(
    (a, b) => (ranks[a % ranks.length] ?? 0) - (ranks[b % ranks.length] ?? 0) || a - b,
  );
  const ended = await runManually(load, order);
  expect([ended.status, ended.failure]).toEqual(['completed', null]);
}

interface Other {
  readonly file: RandomFile | null;
  readonly record: OracleRecord;
  readonly isBatched: boolean;
}

const lines = (file: RandomFile): string[] => file.text.trimEnd().split('\n');
const chunkBytes = fc.constantFrom(1, 64, 200, 4_096);

const other: fc.Arbitrary<Other> = fc.record({
  file: fc.option(ndjsonFile, { nil: null, freq: 2 }),
  record: ndjsonFile.map(({ says }) => says.find((each) => each !== 'rejected') ?? 'rejected'),
  isBatched: fc.boolean(),
});

describe('a file some of whose records are mended afterwards', () => {
  // proves: mend-in-place
  test('ends as the mended file would have, whatever came since, in whichever order and grouping they are sent', async () => {
    const property = fc.asyncProperty(
      fc.option(ndjsonFile, { nil: null }),
      ndjsonFile,
      fc.array(fc.nat(5), { minLength: 40, maxLength: 40 }),
      fc.array(fc.record({ other, groups: fc.array(fc.constantFrom(1, 2, 3), { maxLength: 2 }) }), {
        maxLength: 4,
      }),
      chunkBytes,
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
        const broken = lines(file).map((line, row) => (fateOf(row) === 0 ? line : '{"a":1}'));
        const parent = await load(`${broken.join('\n')}\n`);
        oracle.load(file.says);
        const left = new Set([1, 2, 3]);
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
        for (const step of steps) {
          for (const group of step.groups) await amend(group);
          const { file: another, record, isBatched } = step.other;
          if (another !== null) {
            oracle.load(another.says);
            await load(another.text);
          } else if (record !== 'rejected') {
            oracle.identify(record);
            await identify(environmentId, record, isBatched);
          }
        }
        for (const group of [3, 1, 2]) await amend(group);
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
  // proves: mend-in-place
  test('yields to single records since its job began, not to those before, and beats all with wins', async () => {
    const environmentId = await newEnvironment(t.system);
    const single = (a: string) =>
      identify(environmentId, { entity: 'users', id: 'u', properties: { a } }, false);
    const parent = await startManually(t.system, environmentId, csv('u,0,0', ',1,1', ',2,2', 'x,,'), {});
    await single('while it waits');
    await runManually(parent);
    const amend = async (row: string, wins = false) =>
      run(await amendManually(t.system, environmentId, parent.jobId, mended(row), { wins }), [0]);
    await amend('u,1,1,2');
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: '1', b: '1' } });
    await single('since');
    await amend('u,2,2,3');
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: 'since', b: '2' } });

    const other = await startManually(t.system, environmentId, csv(',3,3', 'u,4,4'));
    await runManually(other);
    await single('later');
    await run(
      await amendManually(t.system, environmentId, other.jobId, mended('u,3,3,1'), { wins: true }),
      [0],
    );
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: '3', b: '3' } });
  });

  // proves: mend-in-place
  test('that yields altogether leaves its profile as it is, and its company is made all the same', async () => {
    const environmentId = await newEnvironment(t.system);
    const lines = ['{"company_id":"gone","a":1}', '{"user_id":"u","company_id":"now","a":2}'];
    const parent = await startManually(t.system, environmentId, lines.join('\n').replace('"gone"', '[]'), {});
    await runManually(parent);
    const record = '{"user_id":"u","company_id":"gone","a":1,"sluice_reject":{"row":1}}';
    const amendment = await amendManually(t.system, environmentId, parent.jobId, record);
    expect((await runManually(amendment)).tally).toMatchObject({ read: 1, unchanged: 1, updated: 0 });
    expect(await readProfiles(t.system, environmentId)).toEqual({
      users: { u: { metadata: { a: 2 }, company: 'now' } },
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

  // proves: mended-once
  test('needs the file of its job, which has its place, unless it wins; then single records leave no times either', async () => {
    const environmentId = await newEnvironment(t.system);
    const parent = await startManually(t.system, environmentId, csv(',1,1', 'x,,'));
    await runManually(parent);
    await pruneAll();
    const send = (wins: boolean) =>
      amendManually(t.system, environmentId, parent.jobId, mended('u,1,1,1'), { wins });
    await expect(send(false)).rejects.toThrow('expired');
    await identify(environmentId, { entity: 'users', id: 'single', properties: { a: 1 } }, false);
    const { times } = await t.system.db
      .selectFrom('users')
      .select('times')
      .where('environment_id', '=', environmentId)
      .where('user_id', '=', 'single')
      .executeTakeFirstOrThrow();
    expect(times).toBeNull();
    await run(await send(true), [0]);
    expect(await usersOf(environmentId)).toMatchObject({ u: { a: '1', b: '1' } });
  });

  // proves: mend-in-place
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
});
