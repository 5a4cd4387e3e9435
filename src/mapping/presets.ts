import { isEventKind, isRecordKind } from '../domain/entity.ts';
import type { Instant } from '../domain/instant.ts';
import { EARLIEST_EVENT } from '../domain/limits.ts';
import type { Preset } from '../domain/load.ts';
import { isObject, type JsonObject } from './json-text.ts';

/** Returns null for a record that is none of the product's, or none of those that are loaded. */
export type ReadPreset = (record: JsonObject) => PresetRecord | null;

/**
 * Presets turn a decoded record of another product, from an export file or a request of its SDK, into records of ours,
 * which are then read as any others. They are pure and judge no value: whoever reads ours does that.
 */
export const readPreset: Readonly<Record<Preset, ReadPreset>> = {
  mixpanel: readMixpanelRecord,
  amplitude: readAmplitudeRecord,
  segment: readSegmentRecord,
  posthog: readPosthogRecord,
  userpilot: readUserpilotRecord,
};

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

/**
 * Returns the time of properties that only fill in: before any that a record can have, so that all others win, whenever they
 * come; and the later the record, the earlier it is, so that of several such records the first wins.
 */
export function fillingTime(since: Instant | null): Instant {
  const ms = 2 * EARLIEST_EVENT - (since?.ms ?? EARLIEST_EVENT) - 1;
  return { ms, text: new Date(ms).toISOString().replace('Z', '000Z') };
}

interface ProfileChanges {
  readonly set: JsonObject;
  /** Only where the profile has none. */
  readonly setOnce: JsonObject;
  /** Names, or an object of them. */
  readonly unset: unknown;
}

function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/** The members of an object; anything else under a name, so that it is not lost. */
function membersOf(value: unknown, name: string): JsonObject {
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
function profilesOf(identity: JsonObject, changes: ProfileChanges): PresetProfile[] {
  return [
    { record: { ...identity, metadata: changes.setOnce }, fillsIn: true },
    { record: { ...identity, metadata: metadataOf(changes) }, fillsIn: false },
  ].filter(({ record }) => Object.keys(record.metadata).length > 0);
}

/** The record itself is about a profile. */
function profileRecord(identity: JsonObject, changes: ProfileChanges): PresetRecord {
  const once = { ...changes, set: {}, unset: [] };
  return { record: { ...identity, metadata: metadataOf(changes) }, profiles: profilesOf(identity, once) };
}

/** Types of groups that are companies; of others the first is taken. */
const companyTypes = ['company', 'organization', 'account'];

/** Returns the type and id of the company in `{type: id}` or `{type: [id, …]}`. */
function companyOf(groups: unknown): readonly [type: string, id: unknown] | null {
  const given = objectOf(groups);
  const type = companyTypes.find((name) => Object.hasOwn(given, name)) ?? Object.keys(given)[0];
  if (type === undefined) return null;
  const ids = given[type];
  const id: unknown = Array.isArray(ids) ? ids[0] : ids;
  return id === undefined || id === null ? null : [type, id];
}

/**
 * A line of Mixpanel's raw event export, `{"event", "properties": {"time", "distinct_id", "$insert_id", …}}`, or a profile
 * of its engage export, `{"$distinct_id", "$properties": {…}}`, of a group `{"$group_id", "$properties": {…}}`. Whatever else
 * they hold becomes metadata; a profile's reserved properties ($email, $name) lose the sign. Or an update of a profile by an SDK.
 */
function readMixpanelRecord(record: JsonObject): PresetRecord | null {
  const { event, properties, ...others } = record;
  if (event === undefined) return readProfile(record);
  const given = { ...others, ...membersOf(properties, 'properties') };
  const { token, time, distinct_id, $insert_id, $user_id, $group_id, company_id, ...metadata } = given;
  const isPageView = event === '$mp_web_page_view';
  return {
    record: {
      event_type: isPageView ? 'page_view' : 'track',
      event_name: isPageView ? undefined : event,
      user_id: $user_id ?? distinct_id,
      company_id: company_id ?? $group_id,
      event_id: $insert_id,
      inserted_at: time,
      url: metadata['$current_url'] ?? metadata['current_url'],
      metadata,
    },
    profiles: [],
  };
}

function readProfile(record: JsonObject): PresetRecord | null {
  const { $distinct_id, $group_id, $properties, ...others } = record;
  if ($distinct_id === undefined && $group_id === undefined) return null;
  const identity =
    $distinct_id === undefined
      ? { event_type: 'identify_company', company_id: $group_id }
      : { event_type: 'identify_user', user_id: $distinct_id };
  if (mixpanelUpdates.some((name) => Object.hasOwn(record, name))) return readUpdate(identity, record);
  const { $last_seen, $group_key: _, ...properties } = { ...others, ...membersOf($properties, 'properties') };
  return { record: { ...identity, inserted_at: $last_seen, metadata: unsigned(properties) }, profiles: [] };
}

/** Operations of an SDK on a profile. All but the first three need the stored value. */
const mixpanelUpdates = [
  ...['$set', '$set_once', '$unset'],
  ...['$add', '$append', '$union', '$remove', '$delete', '$increment'],
] as const;

function readUpdate(
  identity: JsonObject,
  { $set, $set_once, $unset, $time }: JsonObject,
): PresetRecord | null {
  if (($set ?? $set_once ?? $unset) === undefined) return null;
  const names = Array.isArray($unset) ? $unset.map((name) => [String(name), null]) : [];
  return profileRecord(
    { ...identity, inserted_at: $time },
    {
      set: unsigned(objectOf($set)),
      setOnce: unsigned(objectOf($set_once)),
      unset: unsigned(Object.fromEntries(names)),
    },
  );
}

/** Reserved properties lose their sign. */
function unsigned(properties: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name.replace(/^\$/, ''), value]),
  );
}

/**
 * A line of Amplitude's event export, which names each event in `event_type`. Its user properties are those that the user
 * had at that moment, or operations ($set, $setOnce, $unset; others, such as $add, need what is stored, and are left out).
 * `$identify` and `$groupidentify` are profiles.
 */
function readAmplitudeRecord(line: JsonObject): PresetRecord | null {
  const { event_type: name, user_id, event_time, time, groups, user_properties } = line;
  if (name === undefined || name === null) return null;
  const at = event_time ?? time;
  const identity = { user_id: user_id ?? line['device_id'], inserted_at: at };
  const user = { ...identity, event_type: 'identify_user' };
  const company = companyOf(groups);
  if (name === '$identify') return profileRecord(user, changesOf(user_properties));
  if (name === '$groupidentify') {
    const record = { event_type: 'identify_company', company_id: company?.[1], inserted_at: at };
    return profileRecord(record, changesOf(groupProperties(line, company) ?? line['group_properties']));
  }
  return {
    record: { ...identity, ...readAmplitudeEvent(line), company_id: company?.[1] },
    profiles: [...profilesOf(user, changesOf(user_properties)), ...companyProfiles(line, company, at)],
  };
}

function readAmplitudeEvent(line: JsonObject): JsonObject {
  const { event_type: name, user_id: _, event_time, time, groups, user_properties, ...others } = line;
  const { $insert_id, insert_id, uuid, event_properties, group_properties, ...rest } = others;
  const isPageView = name === '[Amplitude] Page Viewed';
  const own = membersOf(event_properties, 'event_properties');
  return {
    event_type: isPageView ? 'page_view' : 'track',
    event_name: isPageView ? undefined : name,
    event_id: $insert_id ?? insert_id ?? uuid,
    url: isPageView ? own['[Amplitude] Page URL'] : undefined,
    metadata: { ...filled(rest), ...own },
  };
}

/** Returns the members that hold something: a row has all columns there are, most of them empty. */
function filled(members: JsonObject): JsonObject {
  const isFilled = (value: unknown): boolean =>
    value !== null && value !== '' && !(isObject(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(members).filter(([, value]) => isFilled(value)));
}

type Company = ReturnType<typeof companyOf>;

function companyProfiles(line: JsonObject, company: Company, at: unknown): PresetProfile[] {
  const properties = groupProperties(line, company);
  if (properties === null) return [];
  const identity = { event_type: 'identify_company', company_id: company?.[1], inserted_at: at };
  return profilesOf(identity, changesOf(properties));
}

/** Returns the properties of the company in `{type: {id: {…}}}`. */
function groupProperties(line: JsonObject, company: Company): JsonObject | null {
  if (company === null) return null;
  const [type, id] = company;
  const properties = objectOf(objectOf(line['group_properties'])[type])[String(id)];
  return isObject(properties) ? properties : null;
}

function changesOf(properties: unknown): ProfileChanges {
  const entries = Object.entries(objectOf(properties));
  const { $set, $setOnce, $unset } = objectOf(properties);
  const plain = Object.fromEntries(entries.filter(([name]) => !name.startsWith('$')));
  return { set: { ...plain, ...objectOf($set) }, setOnce: objectOf($setOnce), unset: $unset };
}

/**
 * A call as Segment's sources send and its destinations archive it: `type` identify, group, track, page or screen, with
 * `userId` or `anonymousId`, `traits` or `properties`, `timestamp` and `messageId`. What an event has besides becomes
 * metadata, but what is for Segment itself; of identify and group calls the traits do. RudderStack's calls are the same, but for an empty `userId` of who
 * is anonymous, and the traits of identify calls, which stand in `context`.
 */
function readSegmentRecord(call: JsonObject): PresetRecord | null {
  const record = readCall(call);
  return record === null ? null : { record, profiles: [] };
}

function readCall(call: JsonObject): JsonObject | null {
  const { type, userId, anonymousId, groupId, timestamp, originalTimestamp } = call;
  const user = userId === '' ? anonymousId : (userId ?? anonymousId);
  const shared = { user_id: user, inserted_at: timestamp ?? originalTimestamp };
  const metadata = membersOf(call['traits'], 'traits');
  switch (type) {
    case 'identify': {
      const { groupId: company, traits } = objectOf(call['context']);
      const own = call['traits'] === undefined ? membersOf(traits, 'traits') : metadata;
      return { ...shared, event_type: 'identify_user', company_id: company, metadata: own };
    }
    case 'group':
      return user === undefined || user === null
        ? { ...shared, event_type: 'identify_company', company_id: groupId, metadata }
        : { ...shared, event_type: 'identify_user', company: { company_id: groupId, metadata } };
    case 'page':
    case 'screen':
    case 'track':
      return { ...shared, ...readSegmentEvent(call) };
    default:
      return null;
  }
}

function readSegmentEvent(call: JsonObject): JsonObject {
  const { type, userId: _, anonymousId, groupId, event, name, properties, ...others } = call;
  const { type: __, timestamp: ___, originalTimestamp, sentAt, receivedAt, messageId, ...more } = others;
  const { writeKey, _metadata, integrations, ...rest } = more;
  const own = membersOf(properties, 'properties');
  const isTrack = type === 'track';
  return {
    event_type: isTrack ? 'track' : 'page_view',
    event_name: isTrack ? event : name || undefined,
    event_id: messageId,
    company_id: groupId ?? objectOf(call['context'])['groupId'],
    url: isTrack ? undefined : own['url'],
    metadata: { ...rest, anonymousId, ...own },
  };
}

/**
 * An event of PostHog's exports: `uuid`, `event`, `distinct_id`, `timestamp`, `properties`. `$set`, `$set_once` and `$unset`
 * change the user, `$groups` names the company, `$identify`, `$set` and `$groupidentify` are profiles.
 */
function readPosthogRecord(line: JsonObject): PresetRecord | null {
  const { event, distinct_id, timestamp, uuid, properties, set, set_once, ...others } = line;
  if (event === undefined || event === null) return null;
  const { $set, $set_once, $unset, $groups, ...own } = {
    ...others,
    ...membersOf(properties, 'properties'),
  };
  const user = {
    event_type: 'identify_user',
    user_id: distinct_id ?? own['distinct_id'],
    inserted_at: timestamp,
  };
  const changes = {
    set: { ...objectOf(set), ...objectOf($set) },
    setOnce: { ...objectOf(set_once), ...objectOf($set_once) },
    unset: $unset,
  };
  if (event === '$identify' || event === '$set') return profileRecord(user, changes);
  if (event === '$groupidentify') {
    const company = { event_type: 'identify_company', company_id: own['$group_key'], inserted_at: timestamp };
    return profileRecord(company, { set: objectOf(own['$group_set']), setOnce: {}, unset: [] });
  }
  const isPageView = event === '$pageview' || event === '$screen';
  const { distinct_id: _, api_key, token, ...metadata } = own;
  return {
    record: {
      ...user,
      event_type: isPageView ? 'page_view' : 'track',
      event_name: isPageView ? own['$screen_name'] : event,
      event_id: uuid,
      company_id: companyOf($groups)?.[1],
      url: isPageView ? own['$current_url'] : undefined,
      metadata,
    },
    profiles: profilesOf(user, changes),
  };
}

/**
 * A row of Userpilot's exports and data sync, which has our kinds and columns. What describes the browser is no property of a user or
 * company, and neither are the ids of the app and the row.
 */
function readUserpilotRecord(row: JsonObject): PresetRecord | null {
  const { app_token, internal_event_id, metadata, ...columns } = row;
  const { event_type, event_name, user_id, company_id, source, inserted_at, ...rest } = filled(columns);
  if (typeof event_type !== 'string' || !isRecordKind(event_type)) return null;
  const isEvent = isEventKind(event_type);
  const others = Object.entries(rest).filter(([name]) => isEvent || !ofBrowser.has(name));
  return {
    record: {
      ...{ event_type, user_id, company_id, source, inserted_at },
      ...(isEvent && { event_name, event_id: internal_event_id }),
      metadata: { ...Object.fromEntries(others), ...membersOf(metadata, 'metadata') },
    },
    profiles: [],
  };
}

const ofBrowser: ReadonlySet<string> = new Set([
  ...['hostname', 'pathname', 'screen_width', 'screen_height', 'device_type', 'user_agent'],
  ...['operating_system', 'browser', 'browser_language', 'session', 'country_code'],
]);
