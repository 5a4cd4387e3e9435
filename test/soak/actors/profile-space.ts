import type { Sql, Tenant } from '../site/site.ts';
import { some } from './actor.ts';

export type Value = string | number;
export type Properties = Readonly<Record<string, Value | null>>;

/** A profile as the table must hold it. */
export type Profile = Readonly<Record<string, Value>>;

/** Users or companies that one actor writes and nobody else, with all they must bear. */
export class ProfileSpace {
  readonly entity: 'users' | 'companies';
  readonly prefix: string;
  readonly #profiles = new Map<string, Profile>();
  readonly #tenant: Tenant;

  constructor(entity: 'users' | 'companies', prefix: string, tenant: Tenant) {
    this.entity = entity;
    this.prefix = prefix;
    this.#tenant = tenant;
  }

  get size(): number {
    return this.#profiles.size;
  }

  has(key: string): boolean {
    return this.#profiles.has(key);
  }

  keys(): readonly string[] {
    return [...this.#profiles.keys()];
  }

  /** Lays properties over what is there; null takes one away. */
  lay(key: string, properties: Properties): void {
    const laid: Record<string, Value> = { ...this.#profiles.get(key) };
    for (const [name, value] of Object.entries(properties)) {
      if (value === null) delete laid[name];
      else laid[name] = value;
    }
    this.#profiles.set(key, laid);
  }

  remove(key: string): void {
    this.#profiles.delete(key);
  }

  /** Compares with the table. */
  async check(sql: Sql): Promise<string[]> {
    const stored = await readProfiles(sql, this.entity, this.prefix, this.#tenant);
    const problems: string[] = [];
    const missing = [...this.#profiles.keys()].filter((key) => !stored.has(key));
    const surplus = [...stored.keys()].filter((key) => !this.#profiles.has(key));
    const different = [...this.#profiles].flatMap(([key, wanted]) => {
      const found = stored.get(key);
      return found === undefined || render(found) === render(wanted)
        ? []
        : [`${key} is ${render(found)}, not ${render(wanted)}`];
    });
    if (missing.length > 0) problems.push(`${this.entity} lost: ${some(missing)}`);
    if (surplus.length > 0) problems.push(`${this.entity} that must not be there: ${some(surplus)}`);
    if (different.length > 0) problems.push(`${this.entity} with other properties: ${some(different)}`);
    return problems;
  }
}

/** Reads what the table holds below a prefix, by id. */
export async function readProfiles(
  sql: Sql,
  entity: 'users' | 'companies',
  prefix: string,
  { environmentId }: Tenant,
): Promise<ReadonlyMap<string, Profile>> {
  const id = entity === 'users' ? 'user_id' : 'company_id';
  const rows = await sql<{ id: string; metadata: Profile }>(
    `select ${id} as id, metadata from sluice.${entity} where environment_id = $1 and starts_with(${id}, $2)`,
    [environmentId, prefix],
  );
  return new Map(rows.map((row) => [row.id, row.metadata]));
}

/** Of equal profiles the same, whatever the order of their properties. */
export function render(profile: Profile): string {
  return JSON.stringify(Object.fromEntries(Object.entries(profile).sort(([a], [b]) => (a < b ? -1 : 1))));
}
