import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cancelLoad } from '../../src/load/end-load.ts';
import { retryLoad } from '../../src/load/retry-load.ts';
import { type UserRow, writeCompanies, writeUsers } from '../../src/postgres/stores/profiles.ts';
import {
  countLeftovers,
  type FileOptions,
  type ManualLoad,
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
  withoutQueue,
} from '../support/load-file.ts';
import { expectedChanges, expectedRows, readPlannedRows } from '../support/plans.ts';
import { EventOracle, type MixedFile, mixedFile, singleRecords } from '../support/random-mixed.ts';
import { runs } from '../support/runs.ts';
import { type CompanyRecord, expectTally, SerialOracle, type UserRecord } from '../support/serial-oracle.ts';
import { systemOfFile } from '../support/system.ts';

const t = await systemOfFile();

interface LoadStep {
  readonly file: MixedFile;
  readonly chunkBytes: number;
  readonly ranks: readonly number[];
  readonly atOnce: number;
  readonly first: 'nothing' | 'dry run' | 'plan';
  readonly cancelAfter: number | null;
}

const loadStep: fc.Arbitrary<LoadStep> = fc.record({
  file: mixedFile,
  chunkBytes: fc.constantFrom(1, 1, 150, 400, 10_000),
  ranks: fc.array(fc.nat(), { minLength: 30, maxLength: 30 }),
  atOnce: fc.integer({ min: 1, max: 3 }),
  first: fc.constantFrom('nothing', 'dry run', 'plan'),
  cancelAfter: fc.option(fc.nat(8), { nil: null, freq: 2 }),
});

type Records = readonly (UserRecord | CompanyRecord)[];
type Step = { readonly load: LoadStep } | { readonly singles: Records };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: loadStep.map((load) => ({ load })) },
  singleRecords.map((singles) => ({ singles })),
);

describe('records with and without times, and events, in files and one by one', () => {
  // proves: plan-exact
  test('end as one by one, whatever the chunks, their order, and however often they are tried; the dry run, and the plan row by row, say so before', async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), async (steps) => {
      const environmentId = await newEnvironment(t.system);
      const oracle = new SerialOracle();
      const events = new EventOracle();
      for (const each of steps) {
        if ('load' in each) await loadAndExpect(environmentId, oracle, events, each.load);
        else for (const record of each.singles) await identify(environmentId, oracle, record);
        expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
        expect(await readEvents(environmentId)).toEqual(events.events());
      }
    });
    await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 90_000, numRuns: runs(25) });
  });
});

async function readEvents(environmentId: number): Promise<string[]> {
  const rows = await t.system.db
    .selectFrom('events')
    .select(['user_id', 'inserted_at', 'metadata'])
    .where('environment_id', '=', environmentId)
    .execute();
  return rows
    .map(({ user_id, inserted_at, metadata }) => {
      const { n } = metadata as { n: number };
      return `${user_id} ${inserted_at.toISOString().slice(0, 4)} ${n}`;
    })
    .sort();
}

async function loadAndExpect(
  environmentId: number,
  oracle: SerialOracle,
  events: EventOracle,
  load: LoadStep,
): Promise<void> {
  const { file, chunkBytes } = load;
  const start = (options: FileOptions) =>
    startManually(t.system, environmentId, file.text, {
      format: file.format,
      source: file.source ?? {},
      chunkBytes,
      ...options,
    });
  const asked = { dryRun: load.first === 'dry run', plan: load.first === 'plan' };
  const dry =
    load.first === 'nothing' ? null : await runShuffled(await start(asked), environmentId, load, null);
  const before = oracle.profiles();
  expect(await readProfiles(t.system, environmentId)).toEqual(before);
  const real = await runShuffled(await start({}), environmentId, load, load.cancelAfter);
  const added = events.load(file.events);
  const profiles = oracle.load(file.says);
  const expected = {
    ...profiles,
    read: profiles.read + file.events.length,
    inserted: profiles.inserted + added.inserted,
    superseded: profiles.superseded + added.superseded,
  };
  expectTally(real.tally, expected);
  if (dry !== null) expectTally(dry.tally, expected);
  if (dry?.pass === 'plan') {
    const rows = expectedRows(before, oracle.profiles());
    expect(await readPlannedRows(t.system, dry.jobId)).toEqual(rows);
    expect(dry.plan?.summary).toMatchObject(expectedChanges(rows));
  }
  expect(await countLeftovers(t.system, real.jobId)).toBe(0);
}

/** Chunks in some order, some at a time; cancelled after some of them and retried, if so wished. */
async function runShuffled(
  load: ManualLoad,
  environmentId: number,
  { ranks, atOnce }: LoadStep,
  cancelAfter: number | null,
) {
  const order = shuffled(load, ranks);
  if (cancelAfter !== null && cancelAfter < order.length) {
    for (const chunkNo of order.slice(0, cancelAfter)) await load.chunk(chunkNo);
    await cancelLoad(withoutQueue(t.system), environmentId, load.jobId);
    await retryLoad(withoutQueue(t.system), environmentId, load.jobId);
  }
  return runAtOnce(load, order, atOnce);
}

function rowOf(environmentId: number, record: UserRecord | CompanyRecord): UserRow {
  const company = record.entity === 'users' ? record.company : undefined;
  return {
    environmentId,
    key: record.id,
    companyId: company === undefined ? null : (company?.id ?? ''),
    properties: JSON.stringify(record.properties),
    removes: company === null || Object.values(record.properties).includes(null),
  };
}

/** The company that a user's record names. */
function namedBy(environmentId: number, record: UserRecord | CompanyRecord): UserRow[] {
  if (record.entity === 'companies' || record.company == null) return [];
  const { id, properties } = record.company;
  return [rowOf(environmentId, { entity: 'companies', id, properties })];
}

async function identify(
  environmentId: number,
  oracle: SerialOracle,
  record: UserRecord | CompanyRecord,
): Promise<void> {
  oracle.identify(record);
  const row = rowOf(environmentId, record);
  if (record.entity === 'companies') return writeCompanies(t.system.pool, [row]);
  await writeUsers(t.system.pool, [row], namedBy(environmentId, record));
}
