import type { Reason } from '../../domain/reject.ts';
import type { JsonObject } from '../../formats/json-text.ts';
import {
  anonymousId,
  companyOf,
  filled,
  firstId,
  joinsIds,
  membersOf,
  notStored,
  type OurRecords,
  objectOf,
  otherGroup,
  type ProductContext,
  profilesOf,
  propertiesOf,
} from './record.ts';

/**
 * Reads an event from PostHog's exports or SDKs, or a person from its `persons` model or its API.
 * `person_properties`, `$set`, `$set_once` and `$unset` change the user. `$groups` contains the
 * company. `$identify`, `$set` and `$groupidentify` become profiles.
 */
export function readPosthog(line: JsonObject, context: ProductContext): OurRecords | Reason {
  const { event, distinct_id, timestamp, uuid, properties, person_properties, ...beside } = line;
  if (event === undefined || event === null) return readPerson(line);
  if (event === '$create_alias' || event === '$merge_dangerously') return joinsIds;
  const { set, set_once, $set: setBeside, $set_once: onceBeside, ...others } = beside;
  const members = { ...filled(others), ...membersOf(properties, 'properties') };
  const { $set, $set_once, $unset, $groups, ...metadataMembers } = members;
  const company_id = companyOf($groups, context)?.[1];
  const user_id = firstId(distinct_id, metadataMembers['distinct_id']);
  const user = { event_type: 'identify_user', user_id, company_id };
  const ofUser = propertiesOf({
    setOnce: { ...objectOf(set_once), ...objectOf(onceBeside), ...objectOf($set_once) },
    set: { ...objectOf(person_properties), ...objectOf(set), ...objectOf(setBeside), ...objectOf($set) },
    unset: $unset,
  });
  if (event === '$identify' || event === '$set') {
    const isJoin = company_id === undefined && Object.keys(ofUser).length === 0;
    return isJoin && event === '$identify' ? joinsIds : [{ ...user, metadata: ofUser }];
  }
  if (event === '$groupidentify') {
    const { $group_type: kind, $group_key, $group_set: metadata } = metadataMembers;
    if (context.companyFrom !== null && context.companyFrom !== kind) return otherGroup(context.companyFrom);
    const company = { event_type: 'identify_company', company_id: $group_key, metadata: objectOf(metadata) };
    return company_id === undefined ? [company] : [company, user];
  }
  const isPageView = event === '$pageview' || event === '$screen';
  const { distinct_id: _, api_key, token, ...metadata } = metadataMembers;
  const result = {
    event_type: isPageView ? 'page_view' : 'track',
    event_name: isPageView ? metadataMembers['$screen_name'] : event,
    event_id: uuid,
    user_id,
    company_id,
    inserted_at: timestamp,
    url: isPageView ? metadataMembers['$current_url'] : undefined,
    metadata,
  };
  return [result, ...profilesOf(user, ofUser)];
}

function readPerson(person: JsonObject): OurRecords | Reason {
  const { distinct_id, distinct_ids, properties, is_deleted } = person;
  const ids: readonly unknown[] = Array.isArray(distinct_ids) ? distinct_ids : [distinct_id];
  const user_id = ids.find((id) => typeof id !== 'string' || !anonymousId.test(id)) ?? ids[0];
  if (user_id === undefined || properties === undefined) return notStored('PostHog has no such record');
  if (String(is_deleted) === 'true') return notStored('The person is deleted');
  return [{ event_type: 'identify_user', user_id, metadata: objectOf(properties) }];
}
