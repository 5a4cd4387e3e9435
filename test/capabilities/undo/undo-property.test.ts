import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  newEnvironment,
  readProfiles,
  runAtOnce,
  shuffled,
  startManually,
} from '../../support/files/load-file.ts';
import { type RandomFile, randomFile } from '../../support/files/random-files.ts';
import type { Json, Profiles, StoredProfile } from '../../support/oracles/serial-oracle.ts';
import { runs } from '../../support/runs.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { writeUsers } from '../../support/servers/write-users.ts';
import { undo } from './support/undo.ts';

const t = await systemOfFile();

type Step =
  | {
      readonly does: 'load';
      readonly file: RandomFile;
      readonly chunkBytes: number;
      readonly ranks: readonly number[];
    }
  | {
      readonly does: 'identify';
      readonly id: string;
      readonly properties: Readonly<Record<string, Json>>;
      readonly company: string | null;
    }
  | {
      readonly does: 'undo';
      readonly picks: readonly number[];
    };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('load' as const),
      file: randomFile,
      chunkBytes: fc.constantFrom(64, 300, 4_096),
      ranks: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('identify' as const),
      id: fc.constantFrom('k0', 'k1', 'k2', 'k3'),
      properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom<Json>('1', 2, null, 'x'), {
        maxKeys: 2,
      }),
      company: fc.constantFrom(null, null, 'c0', 'c1', 'c2'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('undo' as const),
      picks: fc.array(fc.nat(), { minLength: 1, maxLength: 2 }),
    }),
  },
);

/**
 * Values that a step changed, by profile (such as `users/u1`) and property name. `undefined`: the
 * step removes the value. `null`: the step removes the profile.
 */
type Changes = ReadonlyMap<string, ReadonlyMap<string, unknown> | null>;

const companyName = '\u0000company';

function fields(profile: StoredProfile | undefined): Map<string, unknown> {
  const values = new Map<string, unknown>(Object.entries(profile?.metadata ?? {}));
  if (profile?.company != null) values.set(companyName, profile.company);
  return values;
}

/** Returns the profiles that the file changes. A profile that changes twice is returned twice. */
function changedProfiles({ records }: RandomFile): string[] {
  return records.flatMap((record) => {
    if (record === 'rejected') return [];
    const company = record.entity === 'users' ? record.company : undefined;
    const hasProperties = company != null && Object.keys(company.properties).length > 0;
    return [`${record.entity}/${record.id}`, ...(hasProperties ? [`companies/${company.id}`] : [])];
  });
}

/**
 * Chunk size with which any file is one chunk. It is used for files that change a profile more than
 * once. One chunk writes only the last value of a property, but several chunks could change the
 * value and then change it back.
 */
const oneChunk = 1_000_000;
const chunkBytesOf = (file: RandomFile, chunkBytes: number): number => {
  const changedKeys = changedProfiles(file);
  return new Set(changedKeys).size === changedKeys.length ? chunkBytes : oneChunk;
};

function changesBetween(before: Profiles, after: Profiles): Changes {
  const changes = new Map<string, ReadonlyMap<string, unknown> | null>();
  for (const entity of ['users', 'companies'] as const) {
    for (const id of Object.keys(before[entity])) {
      if (after[entity][id] === undefined) changes.set(`${entity}/${id}`, null);
    }
    for (const [id, profile] of Object.entries(after[entity])) {
      const from = fields(before[entity][id]);
      const to = fields(profile);
      const isNew = before[entity][id] === undefined;
      const names = [...new Set([...from.keys(), ...to.keys()])];
      const changedNames = names.filter((name) => !isDeepStrictEqual(from.get(name), to.get(name)));
      if (changedNames.length > 0 || isNew) {
        changes.set(`${entity}/${id}`, new Map(changedNames.map((name) => [name, to.get(name)])));
      }
    }
  }
  return changes;
}

function fold(steps: readonly Changes[]): Profiles {
  const profiles = new Map<string, Map<string, unknown>>();
  for (const changes of steps) {
    for (const [key, values] of changes) {
      if (values === null) {
        profiles.delete(key);
        continue;
      }
      const profile = profiles.get(key) ?? new Map<string, unknown>();
      profiles.set(key, profile);
      for (const [name, value] of values) {
        if (value === undefined) profile.delete(name);
        else profile.set(name, value);
      }
    }
  }
  const profilesOf = (entity: 'users' | 'companies') =>
    new Map(
      [...profiles].flatMap(([key, values]) =>
        key.startsWith(`${entity}/`) ? [[key.slice(entity.length + 1), values] as const] : [],
      ),
    );
  const tables = { users: profilesOf('users'), companies: profilesOf('companies') };
  for (const user of tables.users.values()) {
    const company = user.get(companyName) as string | undefined;
    if (company !== undefined && !tables.companies.has(company)) tables.companies.set(company, new Map());
  }
  const toTable = (entity: 'users' | 'companies') =>
    Object.fromEntries(
      Array.from(tables[entity], ([id, profile]) => {
        const company = profile.get(companyName) ?? null;
        const metadata = Object.fromEntries([...profile].filter(([name]) => name !== companyName));
        return [id, entity === 'users' ? { metadata, company } : { metadata }];
      }),
    );
  return { users: toTable('users'), companies: toTable('companies') } as Profiles;
}

/**
 * Removes companies that have neither properties nor users. The oracle does not know which user was
 * the last to leave such a company.
 */
function withoutEmpty({ users, companies }: Profiles): Profiles {
  const usedCompanies = new Set(Object.values(users).map(({ company }) => company));
  const remaining = Object.entries(companies).filter(
    ([id, { metadata }]) => usedCompanies.has(id) || Object.keys(metadata).length > 0,
  );
  return { users, companies: Object.fromEntries(remaining) };
}

// proves: undo
test('after any steps the profiles are as if the undone loads had changed nothing', async () => {
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 3, maxLength: 8, size: 'max' }),
    async (steps) => {
      const environmentId = await newEnvironment(t.system);
      /** For each step in order, its changes and its job. An undo has no changes here. */
      const journal: {
        readonly changes: Changes;
        readonly jobId: string | null;
      }[] = [];
      const undoneSteps = new Set<number>();
      let current = await readProfiles(t.system, environmentId);
      for (const step of steps) {
        let jobId: string | null = null;
        if (step.does === 'load') {
          const { text, format } = step.file;
          const load = await startManually(t.system, environmentId, text, {
            format,
            chunkBytes: chunkBytesOf(step.file, step.chunkBytes),
          });
          const ended = await runAtOnce(load, shuffled(load, step.ranks), 2);
          if (ended.status === 'completed') jobId = load.jobId;
        } else if (step.does === 'identify') {
          const { id, company } = step;
          const removes = Object.values(step.properties).includes(null);
          await writeUsers(
            t.system.pool,
            [
              {
                environmentId,
                key: id,
                companyId: company,
                properties: JSON.stringify(step.properties),
                removes,
              },
            ],
            company === null ? [] : [{ environmentId, key: company, properties: '{}', removes: false }],
          );
        } else {
          const jobs = [...journal.keys()].filter(
            (index) => journal[index]?.jobId != null && !undoneSteps.has(index),
          );
          const undoes = [...new Set(step.picks.flatMap((pick) => jobs[pick % jobs.length] ?? []))];
          if (undoes.length === 0) continue;
          const jobIds = undoes.map((index) => journal[index]?.jobId ?? '');
          const ended = await undo(t.system, environmentId, jobIds);
          expect(ended).toMatchObject({ status: 'completed', failure: null });
          for (const index of undoes) undoneSteps.add(index);
        }
        const next = await readProfiles(t.system, environmentId);
        const changes = step.does === 'undo' ? new Map() : changesBetween(current, next);
        journal.push({ changes, jobId });
        current = next;
        const effective = journal.flatMap((entry, index) => (undoneSteps.has(index) ? [] : [entry.changes]));
        expect(withoutEmpty(next)).toEqual(withoutEmpty(fold(effective)));
      }
    },
  );
  await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 100_000, numRuns: runs(30) });
});
