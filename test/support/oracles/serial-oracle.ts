import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Entity } from '../../../src/domain/entity.ts';
import type { Tally } from '../../../src/domain/load.ts';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
/** `null` removes a property. Properties that are not listed keep their values. */
export type Properties = Readonly<Record<string, Json>>;

export interface UserRecord {
  readonly entity: 'users';
  readonly id: string;
  readonly properties: Properties;
  /** `undefined`: the company does not change. `null`: the user leaves the company. */
  readonly company?: { readonly id: string; readonly properties: Properties } | null;
}

export interface CompanyRecord {
  readonly entity: 'companies';
  readonly id: string;
  readonly properties: Properties;
}

export type OracleRecord = UserRecord | CompanyRecord | 'rejected';

export interface StoredProfile {
  readonly metadata: Properties;
  /** Id of the company, if the profile is a user. */
  readonly company?: string | null;
}

/** Profiles by key, as `readProfiles` returns them. */
export type Profiles = Readonly<Record<Entity, Readonly<Record<string, StoredProfile>>>>;

/**
 * The expected counts of a load. Each key is counted once, based on its values before and after the
 * load, so the counts do not depend on the chunks.
 */
type ExpectedTally = Omit<Tally, 'unchanged' | 'removed'>;

interface Profile {
  readonly metadata: Map<string, Json>;
  company: string | null;
}

type Table = Map<string, Profile>;

/** Defines what a load must store: it applies the records one by one, in the order of the file. */
export class SerialOracle {
  readonly #tables: Readonly<Record<Entity, Table>> = { users: new Map(), companies: new Map() };

  /** Applies the records. Returns the expected counts. */
  load(records: readonly OracleRecord[]): ExpectedTally {
    const before = this.profiles();
    for (const record of records) if (record !== 'rejected') this.#apply(record);
    const accepted = records.filter((record) => record !== 'rejected');
    const keys = [...new Set(accepted.map(keyOf))];
    const after = this.profiles();
    const isThere = (profiles: Profiles) => (key: string) => lookUp(profiles, key) !== undefined;
    const [stored, inserted] = split(keys, isThere(before));
    const changed = stored.filter((key) => !isDeepStrictEqual(lookUp(before, key), lookUp(after, key)));
    return {
      read: records.length,
      inserted: inserted.length,
      superseded: accepted.length - keys.length,
      rejected: records.length - accepted.length,
      updated: changed.length,
    };
  }

  /**
   * Returns the keys (such as `users/u1`) that no record would change, even if it were loaded
   * alone. The load must not rewrite the rows of these keys.
   */
  quietKeys(records: readonly OracleRecord[]): string[] {
    const before = this.profiles();
    const touched = new Set<string>();
    const loud = new Set<string>();
    for (const record of records) {
      if (record === 'rejected') continue;
      const alone = this.#copy();
      alone.#apply(record);
      const after = alone.profiles();
      for (const key of touchedKeys(record)) {
        touched.add(key);
        if (!isDeepStrictEqual(lookUp(before, key), lookUp(after, key))) loud.add(key);
      }
    }
    return [...touched].filter((key) => !loud.has(key)).sort();
  }

  profiles(): Profiles {
    return { users: plain(this.#tables.users, true), companies: plain(this.#tables.companies, false) };
  }

  /**
   * Applies one record like /v1/identify. Does not write a company for which the record has no new
   * values.
   */
  identify(record: UserRecord | CompanyRecord): void {
    const company = record.entity === 'users' ? record.company : undefined;
    const stored = company == null ? undefined : this.#tables.companies.get(company.id);
    const isUnchanged = Object.entries(company?.properties ?? {}).every(([name, value]) =>
      isDeepStrictEqual(stored?.metadata.get(name) ?? null, value),
    );
    const applied = stored !== undefined && isUnchanged ? { ...company, properties: {} } : company;
    this.#apply(applied == null ? record : ({ ...record, company: applied } as UserRecord));
  }

  remove(entity: Entity, id: string): void {
    this.#tables[entity].delete(id);
  }

  #apply(record: UserRecord | CompanyRecord): void {
    const profile = open(this.#tables[record.entity], record.id);
    const company = record.entity === 'users' ? record.company : undefined;
    write(profile, record.properties, company);
    if (company != null) {
      write(open(this.#tables.companies, company.id), company.properties, undefined);
    }
  }

  #copy(): SerialOracle {
    const copy = new SerialOracle();
    for (const entity of ['users', 'companies'] as const) {
      for (const [id, profile] of this.#tables[entity]) {
        copy.#tables[entity].set(id, { ...profile, metadata: new Map(profile.metadata) });
      }
    }
    return copy;
  }
}

export function expectTally(tally: Tally, expected: ExpectedTally): void {
  const { read, inserted, updated, superseded, rejected } = expected;
  expect(tally).toMatchObject({ ...expected, unchanged: read - inserted - updated - superseded - rejected });
}

function open(table: Table, id: string): Profile {
  const profile = table.get(id);
  if (profile !== undefined) return profile;
  const created: Profile = { metadata: new Map(), company: null };
  table.set(id, created);
  return created;
}

function write(profile: Profile, properties: Properties, company: UserRecord['company']): void {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null) profile.metadata.delete(name);
    else profile.metadata.set(name, value);
  }
  if (company !== undefined) profile.company = company?.id ?? null;
}

function keyOf(record: UserRecord | CompanyRecord): string {
  return `${record.entity}/${record.id}`;
}

function touchedKeys(record: UserRecord | CompanyRecord): string[] {
  const key = keyOf(record);
  const company = record.entity === 'users' ? record.company : undefined;
  return company === undefined || company === null ? [key] : [key, `companies/${company.id}`];
}

function lookUp(profiles: Profiles, key: string): StoredProfile | undefined {
  const slash = key.indexOf('/');
  const table = profiles[key.slice(0, slash) as Entity];
  const id = key.slice(slash + 1);
  return Object.hasOwn(table, id) ? table[id] : undefined;
}

function plain(table: Table, withCompany: boolean): Record<string, StoredProfile> {
  const entries = [...table].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    entries.map(([id, { metadata, company }]): [string, StoredProfile] => {
      const profile = { metadata: Object.fromEntries(metadata) };
      return [id, withCompany ? { ...profile, company } : profile];
    }),
  );
}

function split<T>(items: readonly T[], belongs: (item: T) => boolean): [T[], T[]] {
  return [items.filter(belongs), items.filter((item) => !belongs(item))];
}
