import { isObject, type JsonObject } from '../json-object.ts';

/** A record of another product as records of ours. */
export interface PresetRecord {
  /** Says in `event_type` what it is; the one that is counted. */
  readonly record: JsonObject;
  /** Changes of profiles besides. */
  readonly profiles: readonly PresetProfile[];
}

export interface PresetProfile {
  /** A record `identify_user` or `identify_company`. */
  readonly record: JsonObject;
  /** Its properties only fill in what the profile lacks. */
  readonly fillsIn: boolean;
}

export interface ProfileChanges {
  readonly set: JsonObject;
  /** Only where the profile has none. */
  readonly setOnce: JsonObject;
  /** Names, or an object of them. */
  readonly unset: unknown;
}

export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The members of an object; anything else under a name, so that it is not lost. */
export function membersOf(value: unknown, name: string): JsonObject {
  if (value === undefined || value === null) return {};
  return isObject(value) ? value : { [name]: value };
}

/** The properties that are set, and null for those that are removed. */
function metadataOf({ set, unset }: ProfileChanges): JsonObject {
  const names = Array.isArray(unset) ? unset : Object.keys(objectOf(unset));
  const removed = names.filter((name) => typeof name === 'string').map((name) => [name, null] as const);
  return { ...set, ...Object.fromEntries(removed) };
}

/** `identity` is a record without its metadata. What changes nothing gives no record. */
export function profilesOf(identity: JsonObject, changes: ProfileChanges): PresetProfile[] {
  return [
    { record: { ...identity, metadata: changes.setOnce }, fillsIn: true },
    { record: { ...identity, metadata: metadataOf(changes) }, fillsIn: false },
  ].filter(({ record }) => Object.keys(record.metadata).length > 0);
}

/** The record itself is about a profile. */
export function profileRecord(identity: JsonObject, changes: ProfileChanges): PresetRecord {
  const once = { ...changes, set: {}, unset: [] };
  return { record: { ...identity, metadata: metadataOf(changes) }, profiles: profilesOf(identity, once) };
}

/** Types of groups that are companies; of others the first is taken. */
const companyTypes = ['company', 'organization', 'account'];

/** Returns the type and id of the company in `{type: id}` or `{type: [id, …]}`. */
export function companyOf(groups: unknown): readonly [type: string, id: unknown] | null {
  const given = objectOf(groups);
  const type = companyTypes.find((name) => Object.hasOwn(given, name)) ?? Object.keys(given)[0];
  if (type === undefined) return null;
  const ids = given[type];
  const id: unknown = Array.isArray(ids) ? ids[0] : ids;
  return id === undefined || id === null ? null : [type, id];
}
