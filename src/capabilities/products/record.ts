import type { Reason } from '../../domain/reject.ts';
import { isObject, type JsonObject } from '../../formats/json-text.ts';

export interface ProductContext {
  /** Kind of group that is treated as the company. If `null`, `companyOf` chooses the kind. */
  readonly companyFrom: string | null;
}

/**
 * The record, followed by the profile changes that it implies. Only the record is counted. In the
 * record and in each change, `event_type` is the kind of record.
 */
export type OurRecords = readonly [record: JsonObject, ...profiles: JsonObject[]];

/**
 * Converts a decoded record of a product to sluice's format. The reader of this format then checks
 * the values.
 */
export type ReadProduct = (record: JsonObject, context: ProductContext) => OurRecords | Reason;

export function isReason(result: OurRecords | Reason): result is Reason {
  return 'code' in result;
}

export const joinsIds: Reason = {
  code: 'unsupported_kind',
  message: 'A user has one ID, so a record that joins two IDs is not stored',
  column: null,
};

export function notStored(message: string): Reason {
  return { code: 'unknown_event_type', message, column: null };
}

export function otherGroup(companyFrom: string): Reason {
  return notStored(`The record is of a group that is not a ${companyFrom} (company_from)`);
}

/** `set` overrides `setOnce`, because it is not known whether the profile already has a value. */
export interface ProfileChanges {
  readonly setOnce: JsonObject;
  readonly set: JsonObject;
  /** A list of names, or an object whose keys are the names. */
  readonly unset: unknown;
}

/** A removed property is `null` in the result. */
export function propertiesOf({ setOnce, set, unset }: ProfileChanges): JsonObject {
  const names = Array.isArray(unset) ? unset : Object.keys(objectOf(unset));
  const removed = names.filter((name) => typeof name === 'string').map((name) => [name, null] as const);
  return { ...setOnce, ...set, ...Object.fromEntries(removed) };
}

export function profilesOf(profile: JsonObject, properties: JsonObject): JsonObject[] {
  return Object.keys(properties).length === 0 ? [] : [{ ...profile, metadata: properties }];
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** Returns the members of an object. Any other value becomes a member named `name`. */
export function membersOf(value: unknown, name: string): JsonObject {
  if (value === undefined || value === null) return {};
  return isObject(value) ? value : { [name]: value };
}

/** Removes empty members, because exported records have every column. */
export function filled(members: JsonObject): JsonObject {
  const isFilled = (value: unknown): boolean =>
    value !== null && value !== '' && !(isObject(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isFilled(value)));
}

/**
 * Kinds of groups that represent companies. If none of them exists, the first group is the company.
 */
const companyKinds = ['company', 'organization', 'account'];

export type Company = readonly [kind: string, id: unknown];

/** Returns the kind and the id of the company in `{kind: id}` or `{kind: [id, …]}`, or `null`. */
export function companyOf(groups: unknown, { companyFrom }: ProductContext): Company | null {
  const kindsOfGroups = objectOf(groups);
  const idOf = (kind: string) =>
    Object.hasOwn(kindsOfGroups, kind) ? companyId(kindsOfGroups[kind]) : undefined;
  const kinds = companyFrom === null ? [...companyKinds, ...Object.keys(kindsOfGroups)] : [companyFrom];
  const kind = kinds.find((name) => idOf(name) !== undefined);
  return kind === undefined ? null : [kind, idOf(kind)];
}

/**
 * Returns an id, or the first id of a list. `undefined` if the id is empty, because an event does
 * not need a company.
 */
export function companyId(value: unknown): unknown {
  return firstId(Array.isArray(value) ? value[0] : value);
}

export function firstId(...ids: readonly unknown[]): unknown {
  return ids.find((id) => id !== undefined && id !== null && id !== '');
}

export const anonymousId = /^(?:\$device:)?[\da-f]{8}(?:-?[\da-f]{4}){3}-?[\da-f]{12}$/i;
