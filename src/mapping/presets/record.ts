import type { Linking, ShownLink } from '../../domain/identities.ts';
import { readInstant } from '../../domain/instant.ts';
import { EARLIEST_EVENT } from '../../domain/limits.ts';
import type { Reason } from '../../domain/reject.ts';
import { isObject, type JsonObject, numberText, parseJsonText } from '../../formats/json-text.ts';
import { idProblem } from '../../validation.ts';

/*
 * The presets share this: the shape of what they return, changes of profiles, the choice of the group that is the company, and links of ids.
 */

/** A record of another product as records of ours. */
export interface PresetRecord {
  /** Says in `event_type` what it is; the one that is counted. */
  readonly record: JsonObject;
  /** Changes of profiles besides. */
  readonly profiles: readonly PresetProfile[];
  /** The user of an event, as a record `identify_user` without properties. */
  readonly user?: JsonObject;
  /** Pairs of ids of one person that it shows; they are not checked yet. */
  readonly links?: readonly PresetLink[];
}

export interface PresetLink {
  readonly alias: unknown;
  readonly userId: unknown;
  readonly linking: Linking;
}

export interface PresetProfile {
  /** A record `identify_user` or `identify_company`. */
  readonly record: JsonObject;
  /** Its properties only fill in what the profile lacks. */
  readonly fillsIn: boolean;
}

/**
 * Returns null for a record that is none of the product's, or none of those that are loaded. `from` is the kind of group that is the
 * company; null: see `companyOf`.
 */
export type ReadPreset = (record: JsonObject, from: string | null) => PresetRecord | null;

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

/** Leaves out what says nothing: exports have all columns there are, most of them empty. */
export function filled(members: JsonObject): JsonObject {
  const isFilled = (value: unknown): boolean =>
    value !== null && value !== '' && !(isObject(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isFilled(value)));
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

/** Says that a profile was there at a time, if it is one: nothing else of the record depends on it. */
export function seenAt(identity: JsonObject, time: unknown): PresetProfile[] {
  const ms = typeof time === 'string' ? (readInstant(time)?.ms ?? 0) : 0;
  if (ms < EARLIEST_EVENT || ms > Date.now()) return [];
  return [{ record: { ...identity, inserted_at: time, metadata: {} }, fillsIn: false }];
}

/** Kinds of groups that are companies; of others the first is taken. */
const companyKinds = ['company', 'organization', 'account'];

export type Company = readonly [kind: string, id: unknown] | null;

/** Returns the kind and id of the company in `{kind: id}` or `{kind: [id, …]}`. */
export function companyOf(groups: unknown, from: string | null): Company {
  const given = objectOf(groups);
  const idOf = (kind: string) => (Object.hasOwn(given, kind) ? companyId(given[kind]) : undefined);
  const kinds = from === null ? [...companyKinds, ...Object.keys(given)] : [from];
  const kind = kinds.find((name) => idOf(name) !== undefined);
  return kind === undefined ? null : [kind, idOf(kind)];
}

/** Returns an id, or the first of a list; `undefined` if it says nothing: no company is no reason to refuse an event. */
export function companyId(value: unknown): unknown {
  return givenId(Array.isArray(value) ? value[0] : value);
}

/** Returns the first id that is neither absent nor empty. */
export function givenId(...ids: readonly unknown[]): unknown {
  return ids.find((id) => id !== undefined && id !== null && id !== '');
}

/** Returns the links of which both ids can be ids, and differ. */
export function readLinks(links: readonly PresetLink[] = []): ShownLink[] {
  return links.flatMap((link) => {
    const [alias, userId] = [idOf(link.alias), idOf(link.userId)];
    return alias === null || userId === null || alias === userId ? [] : [{ ...link, alias, userId }];
  });
}

/** Ids that SDKs make for visitors who are not identified. */
export const madeId = /^(?:\$device:)?[\da-f]{8}(?:-?[\da-f]{4}){3}-?[\da-f]{12}$/i;

/** Reads other ids of a user from a list, or its text as a cell has it; `column` has them. */
export function readAliases(value: unknown, userId: unknown, column: string): readonly ShownLink[] | Reason {
  const parsed = typeof value === 'string' ? parseJsonText(value) : { value };
  const ids = 'code' in parsed ? null : parsed.value;
  if (!Array.isArray(ids))
    return { code: 'invalid_type', message: `${column} must be a list of ids`, column };
  const own = idOf(userId);
  // What is wrong with it is said when the record is written.
  if (own === null) return [];
  const others = ids.filter((alias) => idOf(alias) !== own);
  const links = readLinks(others.map((alias) => ({ alias, userId, linking: 'add' })));
  if (links.length === others.length) return links;
  return { code: 'invalid_id', message: `${column} must be another id of the user`, column };
}

/** Returns the text of an id, or null if the value can be none. */
export function idOf(value: unknown): string | null {
  const id = numberText(value) ?? value;
  return typeof id === 'string' && idProblem(id) === null ? id : null;
}

/** Says only that an id belongs to a person; null if either cannot be an id. */
export function linkRecord(alias: unknown, userId: unknown, linking: Linking): PresetRecord | null {
  if (idOf(alias) === null || idOf(userId) === null) return null;
  const record = { event_type: 'identify_user', user_id: userId, metadata: {} };
  return { record, profiles: [], links: [{ alias, userId, linking }] };
}
