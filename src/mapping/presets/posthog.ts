import type { Linking } from '../../domain/identities.ts';
import type { JsonObject } from '../../formats/json-text.ts';
import {
  companyOf,
  filled,
  givenId,
  madeId,
  membersOf,
  objectOf,
  type PresetRecord,
  profileRecord,
  profilesOf,
  seenAt,
} from './record.ts';

/**
 * An event of PostHog's exports: `uuid`, `event`, `distinct_id`, `timestamp`, `properties`. `person_properties`, `$set`, `$set_once` and
 * `$unset` change the user, `$groups` names the company, `$identify`, `$set` and `$groupidentify` are profiles. Or a person, as the
 * model `persons` or the API has it.
 */
export function readPosthogRecord(line: JsonObject, from: string | null): PresetRecord | null {
  const { event, distinct_id, timestamp, uuid, properties, person_properties, ...beside } = line;
  if (event === undefined || event === null) return readPerson(line);
  const { set, set_once, $set: setBeside, $set_once: onceBeside, ...others } = beside;
  const { $set, $set_once, $unset, $groups, ...own } = {
    ...filled(others),
    ...membersOf(properties, 'properties'),
  };
  const company = companyOf($groups, from)?.[1];
  const identity = { user_id: givenId(distinct_id, own['distinct_id']), inserted_at: timestamp };
  const user = { ...identity, event_type: 'identify_user', company_id: company };
  const changes = {
    set: { ...objectOf(person_properties), ...objectOf(set), ...objectOf(setBeside), ...objectOf($set) },
    setOnce: { ...objectOf(set_once), ...objectOf(onceBeside), ...objectOf($set_once) },
    unset: $unset,
  };
  const links = (alias: unknown, linking: Linking) => [{ alias, userId: identity.user_id, linking }];
  switch (event) {
    case '$identify':
      return { ...profileRecord(user, changes), links: links(own['$anon_distinct_id'], 'observe') };
    case '$set':
      return profileRecord(user, changes);
    case '$create_alias':
      return { ...profileRecord(user, changes), links: links(own['alias'], 'observe') };
    case '$merge_dangerously':
      return { ...profileRecord(user, changes), links: links(own['alias'], 'merge') };
  }
  if (event === '$groupidentify') {
    const { $group_type: kind, $group_key, $group_set } = own;
    if ((from ?? kind) !== kind) return null;
    const group = { event_type: 'identify_company', company_id: $group_key, inserted_at: timestamp };
    const { record } = profileRecord(group, { set: objectOf($group_set), setOnce: {}, unset: [] });
    return { record, profiles: company === undefined ? [] : [{ record: user, fillsIn: false }] };
  }
  const isPageView = event === '$pageview' || event === '$screen';
  const { distinct_id: _, api_key, token, ...metadata } = own;
  return {
    record: {
      ...identity,
      event_type: isPageView ? 'page_view' : 'track',
      event_name: isPageView ? own['$screen_name'] : event,
      event_id: uuid,
      company_id: company,
      url: isPageView ? own['$current_url'] : undefined,
      metadata,
    },
    profiles: profilesOf(user, changes),
  };
}

/** A person holds since now, as its export says no time; it was there since `created_at`. Its other ids are aliases. */
function readPerson({
  distinct_id,
  distinct_ids,
  properties,
  created_at,
  is_deleted,
}: JsonObject): PresetRecord | null {
  const ids: readonly unknown[] = Array.isArray(distinct_ids) ? distinct_ids : [distinct_id];
  const user_id = ids.find((id) => typeof id !== 'string' || !madeId.test(id)) ?? ids[0];
  if (user_id === undefined || properties === undefined || String(is_deleted) === 'true') return null;
  const identity = { event_type: 'identify_user', user_id };
  const { record } = profileRecord(identity, { set: objectOf(properties), setOnce: {}, unset: [] });
  const links = ids.map((alias) => ({ alias, userId: user_id, linking: 'add' }) as const);
  return { record, profiles: seenAt(identity, created_at), links };
}
