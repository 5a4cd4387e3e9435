export const entities = ['users', 'companies'] as const;
export type Entity = (typeof entities)[number];

export const propertyEntities = [...entities, 'events'] as const;
export type PropertyEntity = (typeof propertyEntities)[number];
/** A property of an entity, or the name of an event. */
export type NameKind = PropertyEntity | 'event_names';

/** Entity of a load's records. With `auto`, the keys of each record determine its entity. */
export type LoadEntity = Entity | 'auto';

export const idColumn = { users: 'user_id', companies: 'company_id' } as const satisfies Record<
  Entity,
  string
>;

/**
 * Keys of which a record has at least one. A JSON object with none of these keys is not a record.
 */
export const recordKeys: readonly string[] = [...Object.values(idColumn), 'event_type'];

/** Properties that a search for profiles compares, in addition to the id. */
export const namingProperties = 'name first_name last_name firstName lastName username email'.split(' ');

/** Properties that every profile has. Exports contain them, and loads ignore them. */
export const automaticProperties = ['first_seen_at', 'last_seen_at'] as const;

const names: ReadonlySet<string> = new Set(automaticProperties);

export function isAutomaticProperty(name: string): boolean {
  return names.has(name);
}

export const eventKinds = ['track', 'page_view', 'interaction', 'track_feature', 'session_start'] as const;
export type EventKind = (typeof eventKinds)[number];

export const recordKinds = ['identify_user', 'identify_company', ...eventKinds] as const;
export type RecordKind = (typeof recordKinds)[number];

export const kindOfEntity = {
  users: 'identify_user',
  companies: 'identify_company',
} as const satisfies Readonly<Record<Entity, RecordKind>>;

export const byEventKind = <T>(make: (kind: EventKind) => T) =>
  Object.fromEntries(eventKinds.map((kind) => [kind, make(kind)])) as Record<EventKind, T>;

const kinds: ReadonlySet<string> = new Set(recordKinds);

export function isRecordKind(text: string): text is RecordKind {
  return kinds.has(text);
}

export function isEventKind(kind: RecordKind): kind is EventKind {
  return kind !== 'identify_user' && kind !== 'identify_company';
}

export const IMPORT_SOURCE = 'import';

export const PAGE_VIEW_NAME = 'page_view';
