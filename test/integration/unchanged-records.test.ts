import fc from 'fast-check';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Tally } from '../../src/domain/load.ts';
import { cancelLoad } from '../../src/load/end.ts';
import { retryLoad } from '../../src/load/retry.ts';
import { acceptDeletion } from '../support/deletions.ts';
import {
  type ManualLoad,
  newEnvironment,
  readProfiles,
  readVersions,
  runManually,
  startManually,
  withoutQueue,
} from '../support/load-file.ts';
import { type RandomFile, randomFile } from '../support/random-files.ts';
import { runs } from '../support/runs.ts';
import {
  type CompanyRecord,
  expectTally,
  type OracleRecord,
  SerialOracle,
  type UserRecord,
} from '../support/serial-oracle.ts';
import { systemOfFile } from '../support/system.ts';
import { writeCompanies, writeUsers } from '../support/write-users.ts';

const t = await systemOfFile();

/** An environment whose loads ask for digests, or never do and merge every record, as if there were none. */
interface Site {
  readonly environmentId: number;
  readonly asks: boolean;
}

async function startAt({ environmentId, asks }: Site, text: string, options = {}): Promise<ManualLoad> {
  const load = await startManually(t.system, environmentId, text, options);
  const memory = t.system.memory.of(load.loadId);
  memory.chunksNotAsked = asks ? 0 : Number.MAX_SAFE_INTEGER;
  return load;
}

/** Chunks in the order of `ranks`; every one asks. */
async function runAt(site: Site, load: ManualLoad, ranks: readonly number[]) {
  const order = Array.from({ length: load.chunkCount }, (_, index) => index).sort(
    (a, b) => (ranks[a % ranks.length] ?? 0) - (ranks[b % ranks.length] ?? 0) || a - b,
  );
  for (const chunk of order) {
    t.system.memory.of(load.loadId).chunksNotAsked = site.asks ? 0 : Number.MAX_SAFE_INTEGER;
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

/** Does one step at a site; a load's tally, or null. */
async function doStep(site: Site, files: readonly RandomFile[], own: Step): Promise<Tally | null> {
  const { environmentId } = site;
  const { pool, db } = t.system;
  if (own.kind === 'load') return runStep(site, files[own.file % files.length], own);
  if (own.kind === 'deletion') {
    await (await acceptDeletion(t.system, environmentId, own.entity, [own.id])).run();
  } else if (own.kind === 'operator') {
    await sql`
      update users set metadata = metadata || '{"a": "by hand"}'
      where environment_id = ${environmentId} and user_id = ${own.id}`.execute(db);
  } else {
    const { kind, id } = own;
    const company = kind === 'identify' ? own.company : undefined;
    const row = {
      environmentId,
      key: id,
      properties: JSON.stringify(own.properties),
      removes: Object.values(own.properties).includes(null) || company === null,
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
  own: Step & { kind: 'load' },
): Promise<Tally | null> {
  if (file === undefined) return null;
  const { format } = file;
  const started = await startAt(site, file.text, {
    format,
    chunkBytes: own.chunkBytes,
    dryRun: own.how === 'dry run',
  });
  if (own.how === 'cancelled' || own.how === 'retried') {
    // The only chunk of a load completes it.
    if (started.chunkCount > 1)
      await started.chunk(own.ranks[0] === undefined ? 0 : own.ranks[0] % started.chunkCount);
    await cancelLoad(withoutQueue(t.system), site.environmentId, started.jobId);
    if (own.how === 'cancelled') return null;
    await retryLoad(withoutQueue(t.system), site.environmentId, started.jobId);
  }
  return (await runAt(site, started, own.ranks)).tally;
}

/** What rows say of the load that wrote them, but for which one. */
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

/** Keys that a step wrote. */
function rewritten(before: Record<string, string>, after: Record<string, string>): string[] {
  return Object.keys({ ...before, ...after })
    .filter((key) => before[key] !== after[key])
    .sort();
}

// proves: unchanged-exact
test('whatever comes in between, loads count, write and mark as if every record were merged', async () => {
  const property = fc.asyncProperty(
    fc.array(randomFile, { minLength: 1, maxLength: 3 }),
    fc.array(step, { minLength: 3, maxLength: 10 }),
    async (files, steps) => {
      const sites = [
        { environmentId: await newEnvironment(t.system), asks: true },
        { environmentId: await newEnvironment(t.system), asks: false },
      ];
      // The first file twice: without it, few digests would be met.
      const again: Step = { kind: 'load', file: 0, chunkBytes: 4_096, ranks: [0], how: 'real' };
      for (const own of [again, again, ...steps]) {
        const outcomes: unknown[] = [];
        for (const site of sites) {
          const before = await readVersions(t.system, site.environmentId);
          const tally = await doStep(site, files, own);
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
test('loads of a few files, and records between them, end as all records one by one', async () => {
  const says = (own: Step & { kind: 'identify' | 'identify company' }): UserRecord | CompanyRecord => {
    if (own.kind === 'identify company')
      return { entity: 'companies', id: own.id, properties: own.properties };
    const record: UserRecord = { entity: 'users', id: own.id, properties: own.properties };
    if (own.company === undefined) return record;
    return { ...record, company: own.company === null ? null : { id: own.company, properties: {} } };
  };
  const merging = fc
    .oneof({ weight: 4, arbitrary: load }, { weight: 2, arbitrary: identify }, identifyCompany)
    .map((own): Step => (own.kind === 'load' ? { ...own, how: 'real' } : own));
  const property = fc.asyncProperty(
    fc.array(randomFile, { minLength: 1, maxLength: 2 }),
    fc.array(merging, { minLength: 3, maxLength: 10 }),
    async (files, steps) => {
      const site = { environmentId: await newEnvironment(t.system), asks: true };
      const oracle = new SerialOracle();
      for (const own of steps) {
        const tally = await doStep(site, files, own);
        if (own.kind === 'load') {
          const records: readonly OracleRecord[] = files[own.file % files.length]?.says ?? [];
          if (tally !== null) expectTally(tally, oracle.load(records));
        } else if (own.kind === 'identify' || own.kind === 'identify company') oracle.identify(says(own));
        expect(await readProfiles(t.system, site.environmentId)).toEqual(oracle.profiles());
      }
    },
  );
  await fc.assert(property, { numRuns: runs(6), endOnFailure: false, interruptAfterTimeLimit: 100_000 });
});

describe('a record that its profile bears the digest of', () => {
  const csv = (...lines: readonly string[]): string =>
    `${['user_id,company_id,plan', ...lines].join('\n')}\n`;
  const site = async (): Promise<Site> => ({ environmentId: await newEnvironment(t.system), asks: true });
  const loadAt = async (where: Site, text: string, chunkBytes = 4_096): Promise<Tally> =>
    (await runManually(await startAt(where, text, { chunkBytes }))).tally;

  /** Changes rows and gives them back the digests that they lost by it: now nothing but these says that they are unchanged. */
  async function tamper({ environmentId }: Site): Promise<void> {
    const { db } = t.system;
    const users = await db
      .selectFrom('users')
      .select(['user_id', 'digest'])
      .where('environment_id', '=', environmentId)
      .execute();
    for (const { user_id, digest } of users) {
      const own = db
        .updateTable('users')
        .where('environment_id', '=', environmentId)
        .where('user_id', '=', user_id);
      await own.set({ metadata: sql`'{"plan": "tampered"}'` }).execute();
      await own.set({ digest }).execute();
    }
  }
  const plans = async ({ environmentId }: Site): Promise<unknown[]> =>
    Object.values((await readProfiles(t.system, environmentId)).users).map(
      ({ metadata }) => metadata['plan'],
    );

  test.each([
    ['csv', csv('a,acme,free', '"b",,"p, ro"')],
    ['ndjson', '{"user_id":"a","plan":"free"}\n{"user_id":"b","metadata":{"plan":"p, ro"}}\n'],
  ])('is counted without a look at what the profile holds: %s', async (_, text) => {
    const where = await site();
    await loadAt(where, text);
    await tamper(where);
    expect(await loadAt(where, text)).toMatchObject({ read: 2, unchanged: 2, updated: 0 });
    expect(await plans(where)).toEqual(['tampered', 'tampered']);
  });

  // proves: unchanged-exact
  test('is merged under another header, though its bytes are the same', async () => {
    const where = await site();
    await loadAt(where, 'user_id,company_id,plan\na,,free\n');
    expect(await loadAt(where, 'user_id,company_id,size\na,,free\n')).toMatchObject({ updated: 1 });
    expect((await readProfiles(t.system, where.environmentId)).users['a']?.metadata).toEqual({
      plan: 'free',
      size: 'free',
    });
  });

  test('is merged in another environment, whose secret is another', async () => {
    const [one, other] = [await site(), await site()];
    for (const where of [one, other]) await loadAt(where, csv('a,,free'));
    const { rows } = await sql<{ digest: string }>`
      select digest from users where environment_id = any(${[one.environmentId, other.environmentId]})`.execute(
      t.system.db,
    );
    expect(new Set(rows.map(({ digest }) => digest)).size).toBe(2);
  });

  // proves: unchanged-exact
  test('is merged after the profile has changed by a statement of an operator', async () => {
    const where = await site();
    await loadAt(where, csv('a,,free', 'b,,free'));
    await sql`update users set metadata = '{"plan": "by hand"}' where user_id = 'a' and environment_id = ${where.environmentId}`.execute(
      t.system.db,
    );
    expect(await loadAt(where, csv('a,,free', 'b,,free'))).toMatchObject({ updated: 1, unchanged: 1 });
    expect(await plans(where)).toEqual(['free', 'free']);
  });

  test('is still passed over after a single record that brought nothing new', async () => {
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
test('chunks that are done at once, of loads of the same keys, end as the files one after another', async () => {
  const lines = Array.from({ length: 400 }, (_, n) => `u${n % 150},,${n}`);
  const first = `user_id,company_id,plan\n${lines.join('\n')}\n`;
  const second = `user_id,company_id,plan\n${lines.toReversed().join('\n')}\n`;
  const environmentId = await newEnvironment(t.system);
  const oracle = new SerialOracle();
  const says = (own: readonly string[]): OracleRecord[] =>
    own.map((line) => ({
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
    const started = await startAt({ environmentId, asks: true }, text, { chunkBytes: 200 });
    const left = Array.from({ length: started.chunkCount }, (_, index) => index);
    while ((await started.look()).tally.read < 400) {
      const run = async (): Promise<void> => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) await started.chunk(next);
      };
      await Promise.all([run(), run(), run(), run()]);
      left.push(...Array.from({ length: started.chunkCount }, (_, index) => index));
    }
    expectTally((await started.finish()).tally, oracle.load(says(records)));
    expect(await readProfiles(t.system, environmentId)).toEqual(oracle.profiles());
  }
});
