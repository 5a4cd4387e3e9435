import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  acceptFile,
  countLeftovers,
  endedLoad,
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
} from '../support/files/load-file.ts';
import { EventOracle, type EventRecord, eventTexts } from '../support/oracles/event-oracle.ts';
import { readEvents, type StoredEvent } from '../support/oracles/events.ts';
import { expectTally, type OracleRecord, SerialOracle } from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';

/** On a failure, fast-check prints the seed and the smallest failing input. */
const parameters = { endOnFailure: false, interruptAfterTimeLimit: 100_000 } as const;

/** Only a few values of each kind are used, so that they often collide. */
const times = ['2026-03-04T05:06:07.000Z', '2026-04-01T00:00:00.000Z'] as const;
const knownTimes: ReadonlySet<string> = new Set(times);

interface Line {
  readonly text: string;
  readonly event: EventRecord | null;
  /** The profile that the record contains. `null` if the record is an event. */
  readonly profile: OracleRecord | null;
}

const eventLine = fc
  .record({
    kind: fc.constantFrom('track' as const, 'track' as const, 'page_view' as const),
    id: fc.constantFrom(null, null, null, 'x', 'y', 'a "z"'),
    name: fc.constantFrom('Paid', 'Left, at last'),
    user: fc.constantFrom('u0', 'u1'),
    company: fc.constantFrom(null, null, 'c0'),
    at: fc.constantFrom(null, ...times),
    metadata: fc.constantFrom<Readonly<Record<string, string>>>({}, { n: '1' }),
  })
  .map((event): Line => {
    const { kind, id, name, user, company, at, metadata } = event;
    return { text: line([kind, id, name, user, company, at, metadata['n'] ?? null]), event, profile: null };
  });

const profileLine = fc.record({ user: fc.constantFrom('u0', 'u1', 'u2'), n: fc.constantFrom('1', '2') }).map(
  ({ user, n }): Line => ({
    text: line(['identify_user', null, null, user, null, null, n]),
    event: null,
    profile: { entity: 'users', id: user, properties: { n } },
  }),
);

const badLine = fc
  .constantFrom(['purchase', null, 'Paid', 'u0'], ['track', null, null, 'u0'], ['track', null, 'Paid', null])
  .map((cells): Line => ({ text: line([...cells, null, null, null]), event: null, profile: 'rejected' }));

function line(cells: readonly (string | null)[]): string {
  return cells.map((cell) => (cell === null ? '' : `"${cell.replaceAll('"', '""')}"`)).join(',');
}

interface File {
  readonly lines: readonly Line[];
  readonly text: string;
  readonly chunkBytes: number;
}

const file: fc.Arbitrary<File> = fc
  .record({
    lines: fc.array(
      fc.oneof(
        { weight: 12, arbitrary: eventLine },
        { weight: 2, arbitrary: profileLine },
        { weight: 1, arbitrary: badLine },
      ),
      { minLength: 1, maxLength: 40, size: 'max' },
    ),
    chunkBytes: fc.constantFrom(1, 100, 200, 100_000),
  })
  .map(({ lines, chunkBytes }) => ({
    lines,
    text: `event_type,event_id,event_name,user_id,company_id,inserted_at,n\n${lines.map(({ text }) => text).join('\n')}\n`,
    chunkBytes,
  }));

class Oracle {
  readonly profiles = new SerialOracle();
  readonly events = new EventOracle();

  load({ lines }: File) {
    return {
      profiles: this.profiles.load(lines.flatMap(({ profile }) => (profile === null ? [] : [profile]))),
      events: this.events.load(lines.flatMap(({ event }) => (event === null ? [] : [event]))),
    };
  }
}

type Ended = Awaited<ReturnType<typeof endedLoad>>;

function expectCounts({ tally, tallyByKind, failure }: Ended, expected: ReturnType<Oracle['load']>): void {
  const isAllRefused = tally.rejected === tally.read;
  expect(failure?.code ?? null).toBe(isAllRefused ? 'all_records_refused' : null);
  if (tallyByKind === null) {
    expect(isAllRefused).toBe(true);
    return;
  }
  const { identify_user: users, identify_company: companies, track, page_view, unknown } = tallyByKind;
  expect({ track, page_view }).toMatchObject(expected.events);
  expect(companies.read).toBe(0);
  const kinds = [users, track, page_view, unknown];
  for (const count of ['read', 'inserted', 'updated', 'unchanged', 'superseded', 'rejected'] as const) {
    expect(kinds.reduce((sum, kind) => sum + kind[count], 0)).toBe(tally[count]);
  }
  const rejected = tally.rejected;
  expectTally({ ...users, read: users.read - users.rejected + rejected, rejected }, expected.profiles);
}

/**
 * Returns the numbers of new events by name and by date. If no record has the date of an event, the
 * load has set its time. These events are counted under `load`.
 */
function addedCounts(before: readonly StoredEvent[], after: readonly StoredEvent[]) {
  const days = new Set(times.map((at) => at.slice(0, 10)));
  const counts: Record<string, number> = {};
  const add = ({ name, at }: StoredEvent, count: number): void => {
    const day = at.slice(0, 10);
    for (const key of [name, days.has(day) ? day : 'load']) counts[key] = (counts[key] ?? 0) + count;
  };
  for (const event of after) add(event, 1);
  for (const event of before) add(event, -1);
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
}

function plannedCounts({ plan }: Ended) {
  const { names = [], days = [] } = plan?.summary.events ?? {};
  const fileDays = new Set(times.map((at) => at.slice(0, 10)));
  return Object.fromEntries([
    ...names.map(({ name, count }) => [name, count]),
    ...days.map(({ day, count }) => [fileDays.has(day) ? day : 'load', count]),
  ]);
}

describe('chunks in any order, some at a time', () => {
  let t: TestSystem;
  beforeAll(async () => {
    t = await openTestSystem();
  });
  afterAll(() => t.close());

  // proves: counts-balance, events-once, plan-exact
  test('events and profiles of a file are stored as if its records came one by one, and its plan counts the same', async () => {
    const property = fc.asyncProperty(
      fc.array(file, { minLength: 1, maxLength: 2 }),
      fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      async (files, ranks, atOnce) => {
        const environmentId = await newEnvironment(t.system);
        const oracle = new Oracle();
        for (const each of files) {
          const dry = await runShuffled(environmentId, each, ranks, atOnce, true);
          expect(eventTexts(await readEvents(t.system, environmentId), knownTimes)).toEqual(
            oracle.events.texts(),
          );
          const before = await readEvents(t.system, environmentId);
          const real = await runShuffled(environmentId, each, ranks, atOnce, false);
          expectCounts(real, oracle.load(each));
          expect(eventTexts(await readEvents(t.system, environmentId), knownTimes)).toEqual(
            oracle.events.texts(),
          );
          expect((await readProfiles(t.system, environmentId)).users).toEqual(
            oracle.profiles.profiles().users,
          );
          expect(dry.tallyByKind).toEqual(real.tallyByKind);
          const after = await readEvents(t.system, environmentId);
          expect(plannedCounts(dry)).toEqual(addedCounts(before, after));
          expect(await countLeftovers(t.system, real.jobId)).toBe(0);
        }
      },
    );
    await fc.assert(property, { ...parameters, numRuns: runs(12) });
  });

  async function runShuffled(
    environmentId: number,
    { text, chunkBytes }: File,
    ranks: readonly number[],
    atOnce: number,
    plan: boolean,
  ) {
    const load = await startManually(t.system, environmentId, text, { format: 'csv', chunkBytes, plan });
    return runAtOnce(load, shuffled(load, ranks), atOnce);
  }
});

describe.each(['postgres', 'redis'] as const)('through %s, by several workers', (queue) => {
  const skip = queue === 'redis' && !redisAvailable;
  let t: TestSystem;
  beforeAll(async () => {
    if (skip) return;
    t = await openTestSystem({ queue, settings: { WORKER_CONCURRENCY: '3' } });
    for (let count = 0; count < 2; count++) t.startWorker();
  });
  afterAll(() => t?.close());

  // proves: events-once
  test.skipIf(skip)(
    'files loaded one after another, the last twice, are stored as if all their records came one by one',
    async () => {
      const property = fc.asyncProperty(fc.array(file, { minLength: 1, maxLength: 3 }), async (files) => {
        const environmentId = await newEnvironment(t.system);
        const oracle = new Oracle();
        for (const each of [...files, ...files.slice(-1)]) {
          const jobId = await acceptFile(t.system, environmentId, each.text, {
            format: 'csv',
            chunkBytes: each.chunkBytes,
          });
          expectCounts(await endedLoad(t.system, environmentId, jobId), oracle.load(each));
        }
        expect(eventTexts(await readEvents(t.system, environmentId), knownTimes)).toEqual(
          oracle.events.texts(),
        );
      });
      await fc.assert(property, { ...parameters, numRuns: runs(6) });
    },
  );
});
