/** The kinds of profiles. Events are no profiles and come in by other routes. */
export const entities = ['users', 'companies'] as const;
export type Entity = (typeof entities)[number];

/** Profiles and events have properties. */
export const propertyEntities = [...entities, 'events'] as const;
export type PropertyEntity = (typeof propertyEntities)[number];

/** The entity of a load: fixed by the caller, or `auto`, where every record says by its keys. */
export type LoadEntity = Entity | 'auto';

export const idColumn = { users: 'user_id', companies: 'company_id' } as const satisfies Record<
  Entity,
  string
>;

/** The keys of which one must be there for a JSON object to be a record. */
export const recordKeys: readonly string[] = [...Object.values(idColumn), 'event_type'];

/** Properties that are kept for every profile and that nobody can set: an export has them, a load takes no notice of them. */
export const automaticProperties = ['first_seen_at', 'last_seen_at'] as const;

const names: ReadonlySet<string> = new Set(automaticProperties);

export function isAutomaticProperty(name: string): boolean {
  return names.has(name);
}
