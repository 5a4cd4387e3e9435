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
  return {
    users: users.rows('users', found).map((row, at) => ({ ...row, ...removal(row, users.companyAt(at)) })),
    companies: companies.rows('companies', found),
  };
}

/** The rows of a window of companies, each key once. */
export function companyRows(records: readonly CompanyRecord[], found: NewProperties): ProfileRow[] {
  const companies = new Drafts();
  for (const { environmentId, companyId, properties, marked } of records) {
    companies.lay(environmentId, companyId, properties, marked);
  }
  return companies.rows('companies', found);
}

function removal({ removes }: ProfileRow, companyId: string | null): Pick<UserRow, 'companyId' | 'removes'> {
  return { companyId, removes: removes || companyId === '' };
}

class Drafts {
  readonly #byKey = new Map<string, Draft>();
  readonly #drafts: Draft[] = [];

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
      const made = { environmentId, key, properties, marked, companyId };
      this.#byKey.set(name, made);
      this.#drafts.push(made);
      return;
    }
    draft.properties = { ...draft.properties, ...properties };
    draft.marked ||= marked;
    draft.companyId = companyId ?? draft.companyId;
  }

  companyAt(index: number): string | null {
    return this.#drafts[index]?.companyId ?? null;
  }

  rows(entity: Entity, found: NewProperties): ProfileRow[] {
    return this.#drafts.map(({ environmentId, key, properties, marked }) => ({
      environmentId,
      key,
      removes: found.look(environmentId, entity, properties),
      properties: writeJson(properties, marked),
    }));
  }
}
