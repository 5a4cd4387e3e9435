import type { JsonObject } from '../json-object.ts';
import {
  companyOf,
  membersOf,
  objectOf,
  type PresetRecord,
  profileRecord,
  profilesOf,
} from './preset-record.ts';

/**
 * An event of PostHog's exports: `uuid`, `event`, `distinct_id`, `timestamp`, `properties`. `$set`, `$set_once` and `$unset`
 * change the user, `$groups` names the company, `$identify`, `$set` and `$groupidentify` are profiles.
 */
export function readPosthogRecord(line: JsonObject): PresetRecord | null {
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
  const { distinct_id: _, ...metadata } = own;
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
