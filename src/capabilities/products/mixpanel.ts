import type { Reason } from '../../domain/reject.ts';
import { isObject, type JsonObject } from '../../formats/json-text.ts';
import {
  companyId,
  firstId,
  joinsIds,
  membersOf,
  notStored,
  type OurRecords,
  objectOf,
  otherGroup,
  type ProductContext,
  propertiesOf,
} from './record.ts';

/**
 * Reads an event from Mixpanel's raw export, a profile from its engage export (`$distinct_id`, or
 * `$group_key` and `$group_id`), or a profile update from an SDK. In a CSV file, properties are
 * columns. If the company property is a list, its first value is the company.
 */
export function readMixpanel(record: JsonObject, context: ProductContext): OurRecords | Reason {
  const { event, properties, ...others } = record;
  if (event === undefined) return readProfile(record, context);
  if (event === '$identify' || event === '$create_alias' || event === '$merge') return joinsIds;
  const members = { ...others, ...membersOf(properties, 'properties') };
  const { token, time, distinct_id, $insert_id, $user_id, $group_id, ...rest } = members;
  const { company, metadata } = withoutCompany(rest, context);
  const isPageView = event === '$mp_web_page_view';
  const result = {
    event_type: isPageView ? 'page_view' : 'track',
    event_name: isPageView ? undefined : event,
    user_id: firstId($user_id, distinct_id),
    company_id: company ?? (context.companyFrom === null ? companyId($group_id) : undefined),
    event_id: $insert_id,
    inserted_at: time,
    url: isPageView ? (metadata['$current_url'] ?? metadata['current_url']) : undefined,
    metadata,
  };
  return [result];
}

/**
 * Separates the company from the properties. A list of several companies also remains a property.
 */
function withoutCompany(properties: JsonObject, { companyFrom }: ProductContext) {
  const { [companyFrom ?? 'company_id']: company, ...metadata } = properties;
  const isWhole = !Array.isArray(company) || company.length < 2;
  return { company: companyId(company), metadata: isWhole ? metadata : properties };
}

function readProfile(record: JsonObject, context: ProductContext): OurRecords | Reason {
  const { $distinct_id, distinct_id, 'Distinct ID': titled, $group_id, $group_key, ...others } = record;
  const user = $distinct_id ?? distinct_id ?? titled;
  const isUser = user !== undefined;
  if (!isUser && $group_id === undefined) return notStored('Mixpanel has no such record');
  if (!isUser && (context.companyFrom ?? $group_key) !== $group_key)
    return otherGroup(String(context.companyFrom));
  const properties = updates.some((name) => Object.hasOwn(record, name))
    ? readUpdate(record)
    : readProperties(others);
  if (properties === null)
    return notStored('Operations that need the stored value, such as increments, are not stored');
  if (!isUser)
    return [{ event_type: 'identify_company', company_id: $group_id, metadata: unsigned(properties) }];
  const { company, metadata } = withoutCompany(properties, context);
  return [{ event_type: 'identify_user', user_id: user, company_id: company, metadata: unsigned(metadata) }];
}

function readProperties({ $properties, ...columns }: JsonObject): JsonObject {
  const { $last_seen, ...properties } = { ...columns, ...membersOf($properties, 'properties') };
  return properties;
}

/** SDK operations on a profile. Only the first three can be applied without the stored value. */
const updates = [
  ...['$set', '$set_once', '$unset'],
  ...['$add', '$append', '$union', '$remove', '$delete', '$increment'],
] as const;

function readUpdate({ $set, $set_once, $unset }: JsonObject): JsonObject | null {
  if (($set ?? $set_once ?? $unset) === undefined) return null;
  if (![$set, $set_once].every((members) => members === undefined || isObject(members))) return null;
  const unset = Array.isArray($unset) ? $unset : [];
  return propertiesOf({ setOnce: objectOf($set_once), set: objectOf($set), unset });
}

function unsigned(properties: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name.replace(/^\$/, ''), value]),
  );
}
