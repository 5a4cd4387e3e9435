/** What a profile is about. Events are not profiles and come in by other routes. */
export const entities = ['users', 'companies'] as const;
export type Entity = (typeof entities)[number];

/** The entity of a load: fixed by the caller, or `auto`, where every record says by its keys. */
export type LoadEntity = Entity | 'auto';

export const idColumn = { users: 'user_id', companies: 'company_id' } as const satisfies Record<
  Entity,
  string
>;
