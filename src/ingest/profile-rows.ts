import type { Entity } from '../domain/entity.ts';
import { writeJson } from '../mapping/json-text.ts';
import type { ProfileRow, UserRow } from '../postgres/ingest/write-profiles.ts';
import type { NewProperties } from './new-properties.ts';
import type { CompanyRecord, Properties, UserRecord } from './records.ts';

/** A row in the making: what the records of one key come to, laid over each other in the order in which they came. */
interface Draft {
  readonly environmentId: number;
  readonly key: string;
  properties: Properties;
  marked: boolean;
  companyId: string | null;
}

/** The rows of a window of users, each key once, and of the companies that they name. */
export function userRows(
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
export function companyRows(records: readonly CompanyRecord[], found: NewProperties): ProfileRow[] {
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
