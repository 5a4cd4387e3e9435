import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Tally } from '../../src/domain/load.ts';
import { cancelLoad } from '../../src/load/end.ts';
import { retryLoad } from '../../src/load/retry.ts';
import {
  type ManualLoad,
  newEnvironment,
  readProfiles,
  readVersions,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { type RandomFile, randomFile } from '../support/files/random-files.ts';
import {
  type CompanyRecord,
  expectTally,
  type OracleRecord,
  SerialOracle,
  type UserRecord,
} from '../support/oracles/serial-oracle.ts';
import { runs } from '../support/runs.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { writeCompanies, writeUsers } from '../support/servers/write-users.ts';

const t = await systemOfFile();

/** An environment. If `usesDigests` is false, its loads also merge records whose digest matches. */
interface Site {
  readonly environmentId: number;
  readonly usesDigests: boolean;
}

async function startAt(
  { environmentId, usesDigests }: Site,
  text: string,
  options = {},
): Promise<ManualLoad> {
  const load = await startManually(t.system, environmentId, text, options);
  const memory = t.system.memory.of(load.loadId);
  memory.unsearchedChunks = usesDigests ? 0 : Number.MAX_SAFE_INTEGER;
  return load;
}

/**
 * Runs the chunks in the order of `ranks`. The chunks compare digests only if the site uses
 * digests.
 */
async function runAt(site: Site, load: ManualLoad, ranks: readonly number[]) {
  const order = Array.from({ length: load.chunkCount }, (_, index) => index).sort(
    (a, b) => (ranks[a % ranks.length] ?? 0) - (ranks[b % ranks.length] ?? 0) || a - b,
  );
  for (const chunk of order) {
    t.system.memory.of(load.loadId).unsearchedChunks = site.usesDigests ? 0 : Number.MAX_SAFE_INTEGER;
    await load.chunk(chunk);
  }
  return load.finish();
}

const load = fc.record({
  kind: fc.constant('load' as const),
  file: fc.nat({ max: 2 }),
  chunkBytes: fc.constantFrom(1, 64, 300, 4_096),
  ranks: fc.array(fc.nat(), { minLength: 8, maxLength: 8 }),
  how: fc.constantFrom('real', 'real', 'real', 'dry run', 'cancelled', 'retried'),
});
const properties = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', 1, null), {
  maxKeys: 2,
});
const identify = fc.record({
  kind: fc.constant('identify' as const),
  id: fc.constantFrom('k0', 'k1', 'k2', 'k3'),
  company: fc.constantFrom(undefined, undefined, null, 'c0', 'c1'),
  properties,
});
const identifyCompany = fc.record({
  kind: fc.constant('identify company' as const),
  id: fc.constantFrom('c0', 'c1', 'c2'),
  properties,
});
const deletion = fc.record({
  kind: fc.constant('deletion' as const),
  entity: fc.constantFrom('users' as const, 'companies' as const),
  id: fc.constantFrom('k0', 'k1', 'c0', 'c1'),
});
const operator = fc.record({ kind: fc.constant('operator' as const), id: fc.constantFrom('k0', 'k1', 'k2') });
const step = fc.oneof(
  { weight: 6, arbitrary: load },
  { weight: 2, arbitrary: identify },
  identifyCompany,
  deletion,
  operator,
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Runs a step. Returns the tally of a completed load, and `null` for any other step. */
async function doStep(site: Site, files: readonly RandomFile[], action: Step): Promise<Tally | null> {
  const { environmentId } = site;
  const { pool, db } = t.system;
  if (action.kind === 'load') return runStep(site, files[action.file % files.length], action);
  if (action.kind === 'deletion') {
    await (await acceptDeletion(t.system, environmentId, action.entity, [action.id])).run();
  } else if (action.kind === 'operator') {
    await sql`
      update users set metadata = metadata || '{"a": "by hand"}'
      where environment_id = ${environmentId} and user_id = ${action.id}`.execute(db);
  } else {
    const { kind, id } = action;
    const company = kind === 'identify' ? action.company : undefined;
    const row = {
      environmentId,
      key: id,
      properties: JSON.stringify(action.properties),
      removes: Object.values(action.properties).includes(null) || company === null,
    };
    const named =
      typeof company === 'string' ? [{ environmentId, key: company, properties: '{}', removes: false }] : [];
    const user = { ...row, companyId: company === null ? '' : (company ?? null) };
    if (kind === 'identify') await writeUsers(pool, [user], named);
    else await writeCompanies(pool, [row]);
  }
  return null;
}

async function runStep(
  site: Site,
  file: RandomFile | undefined,
  action: Step & { kind: 'load' },
): Promise<Tally | null> {
  if (file === undefined) return null;
  const { format } = file;
  const started = await startAt(site, file.text, {
    format,
    chunkBytes: action.chunkBytes,
    dryRun: action.how === 'dry run',
  });
  if (action.how === 'cancelled' || action.how === 'retried') {
    // If the load has only one chunk, running that chunk would complete the load.
    if (started.chunkCount > 1)
      await started.chunk(action.ranks[0] === undefined ? 0 : action.ranks[0] % started.chunkCount);
    await cancelLoad(withoutQueue(t.system), site.environmentId, started.jobId);
    if (action.how === 'cancelled') return null;
    await retryLoad(withoutQueue(t.system), site.environmentId, started.jobId);
  }
  return (await runAt(site, started, action.ranks)).tally;
}

/** Returns the fields that loads set in the rows, except for the load id. */
async function readMarks(environmentId: number): Promise<unknown> {
  const { rows } = await sql`
    select 'u ' || user_id as id, load_id is null as unmarked, load_chunk, load_touches
    from users where environment_id = ${environmentId}
    union all
    select 'c ' || company_id, load_id is null, load_chunk, load_touches
    from companies where environment_id = ${environmentId}
    order by id`.execute(t.system.db);
  return rows;
}

function rewritten(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys({ ...before, ...after })
    .filter((key) => before[key] !== after[key])
    .sort();
}

// proves: unchanged-exact
test('loads count, write and mark as if every record was merged, with any steps between them', async () => {
  const property = fc.asyncProperty(
    fc.array(randomFile, { minLength: 1, maxLength: 3 }),
    fc.array(step, { minLength: 3, maxLength: 10 }),
    async (files, steps) => {
      const sites = [
        { environmentId: await newEnvironment(t.system), usesDigests: true },
        { environmentId: await newEnvironment(t.system), usesDigests: false },
      ];
      // Loads the first file twice, so that the second load finds matching digests.
      const again: Step = { kind: 'load', file: 0, chunkBytes: 4_096, ranks: [0], how: 'real' };
      for (const action of [again, again, ...steps]) {
        const outcomes: unknown[] = [];
        for (const site of sites) {
          const before = await readVersions(t.system, site.environmentId);
          const tally = await doStep(site, files, action);
          const after = await readVersions(t.system, site.environmentId);
          outcomes.push({
            tally,
            rewritten: rewritten(before, after),
            profiles: await readProfiles(t.system, site.environmentId),
            marks: await readMarks(site.environmentId),
          });
        }
        expect(outcomes[0]).toEqual(outcomes[1]);
      }
    },
  );
  await fc.assert(property, { numRuns: runs(8), endOnFailure: false, interruptAfterTimeLimit: 100_000 });
});

// proves: unchanged-exact
test('loads of a few files, with single records between them, store all records as if they came one by one', async () => {
  const recordsOf = (
    action: Step & { kind: 'identify' | 'identify company' },
  ): UserRecord | CompanyRecord => {
    if (action.kind === 'identify company')
      return { entity: 'companies', id: action.id, properties: action.properties };
    const record: UserRecord = { entity: 'users', id: action.id, properties: action.properties };
    if (action.company === undefined) return record;
    return { ...record, company: action.company === null ? null : { id: action.company, properties: {} } };
  };
  const merging = fc
    .oneof({ weight: 4, arbitrary: load }, { weight: 2, arbitrary: identify }, identifyCompany)
    .map((action): Step => (action.kind === 'load' ? { ...action, how: 'real' } : action));
  const property = fc.asyncProperty(
    fc.array(randomFile, { minLength: 1, maxLength: 2 }),
    fc.array(merging, { minLength: 3, maxLength: 10 }),
    async (files, steps) => {
      const site = { environmentId: await newEnvironment(t.system), usesDigests: true };
      const oracle = new SerialOracle();
      for (const action of steps) {
        const tally = await doStep(site, files, action);
        if (action.kind === 'load') {
          const records: readonly OracleRecord[] = files[action.file % files.length]?.records ?? [];
          if (tally !== null) expectTally(tally, oracle.load(records));
        } else if (action.kind === 'identify' || action.kind === 'identify company')
          oracle.identify(recordsOf(action));
        expect(await readProfiles(t.system, site.environmentId)).toEqual(oracle.profiles());
      }
    },
  );
  await fc.assert(property, { numRuns: runs(6), endOnFailure: false, interruptAfterTimeLimit: 100_000 });
});

describe('a record whose profile has its digest', () => {
  const csv = (...lines: readonly string[]): string =>
    `${['user_id,company_id,plan', ...lines].join('\n')}\n`;
  const site = async (): Promise<Site> => ({
    environmentId: await newEnvironment(t.system),
    usesDigests: true,
  });
  const loadAt = async (where: Site, text: string, chunkBytes = 4_096): Promise<Tally> =>
    (await runManually(await startAt(where, text, { chunkBytes }))).tally;

  /**
   * Changes rows, and then restores the digests that this change removed. Each digest then matches
   * a record, but the row has other values.
   */
  async function tamper({ environmentId }: Site): Promise<void> {
    const { db } = t.system;
    const users = await db
      .selectFrom('users')
      .select(['user_id', 'digest'])
      .where('environment_id', '=', environmentId)
      .execute();
    for (const { user_id, digest } of users) {
      const update = db
        .updateTable('users')
        .where('environment_id', '=', environmentId)
        .where('user_id', '=', user_id);
      await update.set({ metadata: sql`'{"plan": "tampered"}'` }).execute();
      await update.set({ digest }).execute();
    }
  }
  const plans = async ({ environmentId }: Site): Promise<unknown[]> =>
    Object.values((await readProfiles(t.system, environmentId)).users).map(
      ({ metadata }) => metadata['plan'],
    );

  test.each([
    ['csv', csv('a,acme,free', '"b",,"p, ro"')],
    ['ndjson', '{"user_id":"a","plan":"free"}\n{"user_id":"b","metadata":{"plan":"p, ro"}}\n'],
  ])(
    'a record with a stored digest is counted as unchanged without a look at its profile: %s',
    async (_, text) => {
      const where = await site();
      await loadAt(where, text);
      await tamper(where);
      expect(await loadAt(where, text)).toMatchObject({ read: 2, unchanged: 2, updated: 0 });
      expect(await plans(where)).toEqual(['tampered', 'tampered']);
    },
  );

  // proves: unchanged-exact
  test('a record is merged under another header, though its bytes are the same', async () => {
    const where = await site();
    await loadAt(where, 'user_id,company_id,plan\na,,free\n');
    expect(await loadAt(where, 'user_id,company_id,size\na,,free\n')).toMatchObject({ updated: 1 });
    expect((await readProfiles(t.system, where.environmentId)).users['a']?.metadata).toEqual({
      plan: 'free',
      size: 'free',
    });
  });

  test('a record has another digest in another environment', async () => {
    const one = await site();
    const other = await site();
    for (const where of [one, other]) await loadAt(where, csv('a,,free'));
    const { rows } = await sql<{ digest: string }>`
      select digest from users where environment_id = any(${[one.environmentId, other.environmentId]})`.execute(
      t.system.db,
    );
    expect(new Set(rows.map(({ digest }) => digest)).size).toBe(2);
  });

  // proves: unchanged-exact
  test('a record is merged after an operator changed its profile', async () => {
    const where = await site();
    await loadAt(where, csv('a,,free', 'b,,free'));
    await sql`update users set metadata = '{"plan": "by hand"}' where user_id = 'a' and environment_id = ${where.environmentId}`.execute(
      t.system.db,
    );
    expect(await loadAt(where, csv('a,,free', 'b,,free'))).toMatchObject({ updated: 1, unchanged: 1 });
    expect(await plans(where)).toEqual(['free', 'free']);
  });

  test('a record still counts as unchanged after a single record without new values', async () => {
    const where = await site();
    await loadAt(where, csv('a,,free'));
    const row = {
      environmentId: where.environmentId,
      key: 'a',
      companyId: null,
      properties: '{"plan":"free"}',
      removes: false,
    };
    await writeUsers(t.system.pool, [row], []);
    await tamper(where);
    expect(await loadAt(where, csv('a,,free'))).toMatchObject({ unchanged: 1 });
    expect(await plans(where)).toEqual(['tampered']);
  });
});

// proves: unchanged-exact
test('concurrent chunks of loads of the same keys store the files as if they came one after another', async () => {
  const lines = Array.from({ length: 400 }, (_, n) => `u${n % 150},,${n}`);
  const first = `user_id,company_id,plan\n${lines.join('\n')}\n`;
  const second = `user_id,company_id,plan\n${lines.toReversed().join('\n')}\n`;
  const environmentId = await newEnvironment(t.system);
  const oracle = new SerialOracle();
  const recordsOf = (texts: readonly string[]): OracleRecord[] =>
    texts.map((line) => ({
      entity: 'users',
      id: line.split(',')[0] ?? '',
      properties: { plan: line.split(',')[2] ?? '' },
    }));
  for (const [text, records] of [
    [first, lines],
    [first, lines],
    [second, lines.toReversed()],
    [first, lines],
  ] as const) {
    const started = await startAt({ environmentId, usesDigests: true }, text, { chunkBytes: 200 });
    const pending = Array.from({ length: started.chunkCount }, (_, index) => index);
    while ((await started.look()).tally.read < 400) {
      const run = async (): Promise<void> => {
        for (let next = pending.shift(); next !== undefined; next = pending.shift())
          await started.chunk(next);
      };
      await Promise.all([run(), run(), run(), run()]);
      pending.push(...Array.from({ length: started.chunkCount }, (_, index) => index));
    }
    expectTally((await started.finish()).tally, oracle.load(recordsOf(records)));
    expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
  }
});
