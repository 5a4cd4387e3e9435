import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyPlan } from '../../src/load/retry.ts';
import {
  acceptFile,
  countLeftovers,
  endedLoad,
  type FileOptions,
  manualLoad,
  newEnvironment,
  readProfiles,
  readVersions,
  runAtOnce,
  runManually,
  shuffled,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { type RandomFile, randomFile } from '../support/files/random-files.ts';
import { expectedChanges, expectedRows, readPlannedRows } from '../support/oracles/plans.ts';
import { expectTally, SerialOracle } from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';

const chunkBytes = fc.constantFrom(1, 64, 64, 128, 300, 4_096);

/** On a failure, fast-check prints the seed and the smallest failing input. */
const parameters = { endOnFailure: false, interruptAfterTimeLimit: 100_000 } as const;

interface Step {
  readonly file: RandomFile;
  readonly chunkBytes: number;
}

const step: fc.Arbitrary<Step> = fc.record({ file: randomFile, chunkBytes });

describe('chunks merged in any order, some at a time', () => {
  let t: TestSystem;
  beforeAll(async () => {
    t = await openTestSystem();
  });
  afterAll(() => t.close());

  // proves: one-by-one, plan-exact
  test('a load onto any table stores its records as if they came one by one, its dry run counts the same, and its plan has its rows and is applied exactly', async () => {
    const shuffle = fc.array(fc.nat(), { minLength: 60, maxLength: 60 });
    const property = fc.asyncProperty(
      fc.option(randomFile, { nil: null, freq: 3 }),
      step,
      shuffle,
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom('nothing', 'dry run', 'plan', 'plan, applied', 'plan, applied'),
      async (stored, { file, chunkBytes: bytes }, ranks, atOnce, first) => {
        const environmentId = await newEnvironment(t.system);
        const oracle = new SerialOracle();
        if (stored !== null) {
          oracle.load(stored.records);
          const { text, format } = stored;
          await runManually(await startManually(t.system, environmentId, text, { format }));
        }
        const before = oracle.profiles();
        const untouched = await readVersions(t.system, environmentId);
        const dry =
          first === 'nothing'
            ? null
            : await runShuffled(environmentId, { file, chunkBytes: bytes }, ranks, atOnce, {
                dryRun: first === 'dry run',
                plan: first.startsWith('plan'),
              });
        expect(await readProfiles(t.system, environmentId)).toEqual(before);
        expect(await readVersions(t.system, environmentId)).toEqual(untouched);
        const isApplied = first === 'plan, applied' && dry?.status === 'completed';
        const real = isApplied
          ? await applyShuffled(environmentId, dry.jobId, ranks, atOnce)
          : await runShuffled(environmentId, { file, chunkBytes: bytes }, ranks, atOnce, {});
        expectEnd(real);
        if (dry !== null && dry.plan !== null) {
          const rows = expectedRows(before, await readProfiles(t.system, environmentId));
          expect(await readPlannedRows(t.system, dry.jobId)).toEqual(rows);
          expect(dry.plan?.summary).toMatchObject({ ...expectedChanges(rows), counts: dry.tally });
        }
        expectTally(real.tally, oracle.load(file.records));
        expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
        if (dry !== null) expect(dry.tally).toEqual(real.tally);
        expect(await countLeftovers(t.system, real.jobId)).toBe(0);
      },
    );
    await fc.assert(property, { ...parameters, numRuns: runs(15) });
  });

  async function runShuffled(
    environmentId: number,
    { file, chunkBytes: bytes }: Step,
    ranks: readonly number[],
    atOnce: number,
    options: FileOptions,
  ) {
    const load = await startManually(t.system, environmentId, file.text, {
      format: file.format,
      source: file.source ?? {},
      chunkBytes: bytes,
      ...options,
    });
    return runAtOnce(load, shuffled(load, ranks), atOnce);
  }

  async function applyShuffled(
    environmentId: number,
    jobId: string,
    ranks: readonly number[],
    atOnce: number,
  ) {
    const quiet = withoutQueue(t.system);
    await applyPlan(quiet, environmentId, jobId, 'refuse');
    const load = await manualLoad(quiet, environmentId, jobId);
    await load.begin();
    return runAtOnce(load, shuffled(load, ranks), atOnce);
  }
});

const backends = [
  { queue: 'postgres', workers: 4, concurrency: 2 },
  { queue: 'redis', workers: 3, concurrency: 4 },
] as const;

describe.each(backends)('through $queue, $workers workers with $concurrency chunks each', (backend) => {
  const { queue, workers, concurrency } = backend;
  const skip = queue === 'redis' && !redisAvailable;
  let t: TestSystem;
  beforeAll(async () => {
    if (skip) return;
    t = await openTestSystem({ queue, settings: { WORKER_CONCURRENCY: String(concurrency) } });
    for (let count = 0; count < workers; count++) t.startWorker();
  });
  afterAll(() => t?.close());

  // proves: one-by-one
  test.skipIf(skip)(
    'loads accepted one after another store all records as if they came one by one, and a repetition of the last changes nothing',
    async () => {
      const property = fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async (steps, waits) => {
          const environmentId = await newEnvironment(t.system);
          const oracle = new SerialOracle();
          const jobs: string[] = [];
          for (const { file, chunkBytes: bytes } of steps) {
            const jobId = await acceptFile(t.system, environmentId, file.text, {
              format: file.format,
              source: file.source ?? {},
              chunkBytes: bytes,
            });
            jobs.push(jobId);
            if (waits) await ended(environmentId, jobId);
          }
          for (const [index, jobId] of jobs.entries()) {
            const load = await ended(environmentId, jobId);
            expectEnd(load);
            expectTally(load.tally, oracle.load(steps[index]?.file.records ?? []));
          }
          expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());

          const last = steps.at(-1);
          if (last === undefined) return;
          const quiet = oracle.quietKeys(last.file.records);
          const before = await readVersions(t.system, environmentId);
          const again = await acceptFile(t.system, environmentId, last.file.text, {
            format: last.file.format,
            source: last.file.source ?? {},
            chunkBytes: last.chunkBytes,
          });
          const load = await ended(environmentId, again);
          expectEnd(load);
          expectTally(load.tally, oracle.load(last.file.records));
          expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
          const after = await readVersions(t.system, environmentId);
          for (const key of quiet) expect(`${key} ${after[key]}`).toBe(`${key} ${before[key]}`);
          expect(await countLeftovers(t.system, again)).toBe(0);
        },
      );
      await fc.assert(property, { ...parameters, numRuns: runs(4) });
    },
  );

  const ended = (environmentId: number, jobId: string) => endedLoad(t.system, environmentId, jobId);
});

/** A load must fail if and only if all its records are refused. */
function expectEnd({ tally, failure }: Awaited<ReturnType<typeof endedLoad>>): void {
  const isAllRefused = tally.read > 0 && tally.rejected === tally.read;
  expect(failure?.code ?? null).toBe(isAllRefused ? 'all_records_refused' : null);
}
