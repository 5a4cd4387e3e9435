import { type DataType, dataTypeOf, widen } from '../domain/data-type.ts';
import type { Entity } from '../domain/entity.ts';
import { markedNumber, writeJson } from '../mapping/json-text.ts';
import type { Database } from '../postgres/database.ts';
import { type ProfileRow, type UserRow, writeCompanies, writeUsers } from '../postgres/stores/profiles.ts';
import type { KnownProperties } from '../properties/known-properties.ts';
import type { CompanyRecord, IngestContext, Properties, RecordWriter, UserRecord } from './records.ts';

/** Users, and the companies they name. */
export function userWriter({
  knownProperties,
  db,
}: IngestContext): RecordWriter<UserRecord, ReturnType<typeof userRows>> {
  return {
    async prepare(records) {
      const found = new NewProperties(knownProperties);
      const rows = userRows(records, found);
      await found.note(db);
      return rows;
    },
    write: (connection, { users, companies }) => writeUsers(connection, users, companies),
  };
}

export function companyWriter({
  knownProperties,
  db,
}: IngestContext): RecordWriter<CompanyRecord, ReturnType<typeof companyRows>> {
  return {
    async prepare(records) {
      const found = new NewProperties(knownProperties);
      const rows = companyRows(records, found);
      await found.note(db);
      return rows;
    },
    write: writeCompanies,
  };
}

/** A row in the making: what the records of one key come to, laid over each other in the order in which they came. */
interface Draft {
  readonly environmentId: number;
  readonly key: string;
  properties: Properties;
  marked: boolean;
  companyId: string | null;
}

/** The rows of a window of users, each key once, and of the companies that they name. */
function userRows(
  records: readonly UserRecord[],
  found: NewProperties,
): { readonly users: UserRow[]; readonly companies: ProfileRow[] } {
  const users = new Drafts();
  const companies = new Drafts();
  for (const record of records) {
    const { environmentId, userId, companyId, properties, company, marked } = record;
    users.lay(environmentId, userId, properties, marked, companyId);
    if (companyId !== null && companyId !== '') companies.lay(environmentId, companyId, company, marked);
  }
  return { users: users.rows('users', found), companies: companies.rows('companies', found) };
}

/** The rows of a window of companies, each key once. */
function companyRows(records: readonly CompanyRecord[], found: NewProperties): ProfileRow[] {
  const companies = new Drafts();
  for (const { environmentId, companyId, properties, marked } of records) {
    companies.lay(environmentId, companyId, properties, marked);
  }
  return companies.rows('companies', found);
}

class Drafts {
  readonly #byKey = new Map<string, Draft>();

  lay(
    environmentId: number,
    key: string,
    properties: Properties,
    marked: boolean,
    companyId: string | null = null,
  ): void {
    const name = `${environmentId} ${key}`;
    const draft = this.#byKey.get(name);
    if (draft === undefined) {
      this.#byKey.set(name, { environmentId, key, properties, marked, companyId });
      return;
    }
    draft.properties = { ...draft.properties, ...properties };
    draft.marked ||= marked;
    draft.companyId = companyId ?? draft.companyId;
  }

  rows(entity: Entity, found: NewProperties): UserRow[] {
    return Array.from(this.#byKey.values(), ({ environmentId, key, properties, marked, companyId }) => ({
      environmentId,
      key,
      companyId,
      removes: found.look(environmentId, entity, properties) || companyId === '',
      properties: writeJson(properties, marked),
    }));
  }
}

/** Collects the properties of a window that are not known; nearly always none. */
class NewProperties {
  readonly #knownProperties: KnownProperties;
  readonly #found = new Map<string, Found>();

  constructor(knownProperties: KnownProperties) {
    this.#knownProperties = knownProperties;
  }

  /** Looks at the properties of one record; returns whether one of them is null. */
  look(environmentId: number, entity: Entity, properties: Properties): boolean {
    let removes = false;
    for (const name in properties) {
      const value = properties[name];
      if (value === null) {
        removes = true;
        continue;
      }
      const type = markedNumber(value) === null ? dataTypeOf(value) : 'numeric';
      if (type === null || this.#knownProperties.knowsProperty(environmentId, entity, name, type)) continue;
      this.#add(environmentId, entity, name, type);
    }
    return removes;
  }

  /** Has them listed. Before the records are committed, so that none is ever there without its properties. */
  async note(db: Database): Promise<void> {
    for (const { environmentId, entity, types } of this.#found.values()) {
      await this.#knownProperties.learnProperties(db, environmentId, entity, types);
    }
  }

  #add(environmentId: number, entity: Entity, name: string, type: DataType): void {
    const key = `${environmentId} ${entity}`;
    const found = this.#found.get(key) ?? { environmentId, entity, types: new Map() };
    this.#found.set(key, found);
    const known = found.types.get(name);
    found.types.set(name, known === undefined ? type : widen(known, type));
  }
}

interface Found {
  readonly environmentId: number;
  readonly entity: Entity;
  readonly types: Map<string, DataType>;
}
