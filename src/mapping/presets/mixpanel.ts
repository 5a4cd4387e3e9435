import { isObject, type JsonObject } from '../../formats/json-text.ts';
import {
  companyId,
  givenId,
  linkRecord,
  membersOf,
  objectOf,
  type PresetRecord,
  profileRecord,
  seenAt,
} from './record.ts';

/**
 * A line of Mixpanel's raw event export, `{"event", "properties": {"time", "distinct_id", "$insert_id", …}}`, or a profile
 * of its engage export, `{"$distinct_id", "$properties": {…}}`, of a group `{"$group_key", "$group_id", "$properties": {…}}`; in a CSV
 * the properties are columns. Whatever else they hold becomes metadata; a profile's reserved properties ($email, $name) lose the sign.
 * Or an update of a profile by an SDK. The company of users and events is the first one in the property that is the group key.
 */
export function readMixpanelRecord(record: JsonObject, from: string | null): PresetRecord | null {
  const { event, properties, ...others } = record;
  if (event === undefined) return readProfile(record, from);
  const given = { ...others, ...membersOf(properties, 'properties') };
  const { token, time, distinct_id, $insert_id, $user_id, $group_id, ...rest } = given;
  switch (event) {
    case '$identify':
      return linkRecord(
        rest['$anon_id'] ?? rest['$anon_distinct_id'],
        rest['$identified_id'] ?? distinct_id,
        'observe',
      );
    case '$create_alias':
      return linkRecord(rest['alias'], distinct_id, 'observe');
    case '$merge': {
      const [userId, alias] = Array.isArray(rest['$distinct_ids']) ? rest['$distinct_ids'] : [];
      return linkRecord(alias, userId, 'merge');
    }
  }
  const device = rest['$device_id'];
  const { company, metadata } = withoutCompany(rest, from);
  const isPageView = event === '$mp_web_page_view';
  return {
    record: {
      event_type: isPageView ? 'page_view' : 'track',
      event_name: isPageView ? undefined : event,
      user_id: givenId($user_id, distinct_id),
      company_id: company ?? (from === null ? companyId($group_id) : undefined),
      event_id: $insert_id,
      inserted_at: time,
      url: metadata['$current_url'] ?? metadata['current_url'],
      metadata,
    },
    profiles: [],
    // An event before the login has `$device:…` as its distinct_id.
    ...(device !== undefined && {
      links: [{ alias: `$device:${device}`, userId: $user_id, linking: 'observe' }],
    }),
  };
}

function withoutCompany(properties: JsonObject, from: string | null) {
  const { [from ?? 'company_id']: company, ...metadata } = properties;
  const isWhole = !Array.isArray(company) || company.length < 2;
  return { company: companyId(company), metadata: isWhole ? metadata : properties };
}

function readProfile(record: JsonObject, from: string | null): PresetRecord | null {
  const { $distinct_id, distinct_id, 'Distinct ID': shown, $group_id, $group_key, ...others } = record;
  const user = $distinct_id ?? distinct_id ?? shown;
  if (user === undefined && ($group_id === undefined || (from ?? $group_key) !== $group_key)) return null;
  const isUser = user !== undefined;
  const identity = isUser
    ? { event_type: 'identify_user', user_id: user }
    : { event_type: 'identify_company', company_id: $group_id };
  const split = (given: JsonObject) =>
    isUser ? withoutCompany(given, from) : { company: identity.company_id, metadata: given };
  if (mixpanelUpdates.some((name) => Object.hasOwn(record, name))) return readUpdate(identity, record, split);
  const { $properties, ...beside } = others;
  const { $last_seen, ...given } = { ...beside, ...membersOf($properties, 'properties') };
  const { company: company_id, metadata } = split(given);
  return {
    record: { ...identity, company_id, inserted_at: $last_seen, metadata: unsigned(metadata) },
    profiles: seenAt(identity, given['$created']),
  };
}

/** Operations of an SDK on a profile. All but the first three need the stored value. */
const mixpanelUpdates = [
  ...['$set', '$set_once', '$unset'],
  ...['$add', '$append', '$union', '$remove', '$delete', '$increment'],
] as const;

function readUpdate(
  identity: JsonObject,
  { $set, $set_once, $unset, $time }: JsonObject,
  split: (given: JsonObject) => { readonly company: unknown; readonly metadata: JsonObject },
): PresetRecord | null {
  if (($set ?? $set_once ?? $unset) === undefined) return null;
  if (![$set, $set_once].every((given) => given === undefined || isObject(given))) return null;
  const names = Array.isArray($unset) ? $unset.map((name) => [String(name), null]) : [];
  const { company: company_id, metadata } = split(objectOf($set));
  return profileRecord(
    { ...identity, company_id, inserted_at: $time },
    {
      set: unsigned(metadata),
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
