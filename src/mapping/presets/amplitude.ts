import type { JsonObject } from '../json-object.ts';
import { isObject } from '../json-object.ts';
import {
  companyOf,
  membersOf,
  objectOf,
  type PresetProfile,
  type PresetRecord,
  type ProfileChanges,
  profileRecord,
  profilesOf,
} from './preset-record.ts';

const pageView = '[Amplitude] Page Viewed';
const pageUrl = '[Amplitude] Page URL';

/**
 * A line of Amplitude's event export, which names each event in `event_type`. Its user properties are those that the user
 * had at that moment, or operations ($set, $setOnce, $unset; others, such as $add, need what is stored, and are left out).
 * `$identify` and `$groupidentify` are profiles.
 */
export function readAmplitudeRecord(line: JsonObject): PresetRecord | null {
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
    record: { ...identity, ...readEvent(line), company_id: company?.[1] },
    profiles: [...profilesOf(user, changesOf(user_properties)), ...companyProfiles(line, company, at)],
  };
}

function readEvent(line: JsonObject): JsonObject {
  const { event_type: name, user_id: _, event_time, time, groups, user_properties, ...others } = line;
  const { $insert_id, insert_id, uuid, event_properties, group_properties, ...rest } = others;
  const isPageView = name === pageView;
  const own = membersOf(event_properties, 'event_properties');
  // A line has all columns there are, most of them empty.
  const filled = Object.fromEntries(Object.entries(rest).filter(([, value]) => !isNothing(value)));
  return {
    event_type: isPageView ? 'page_view' : 'track',
    event_name: isPageView ? undefined : name,
    event_id: $insert_id ?? insert_id ?? uuid,
    url: isPageView ? own[pageUrl] : undefined,
    metadata: { ...filled, ...own },
  };
}

function isNothing(value: unknown): boolean {
  return value === null || (isObject(value) && Object.keys(value).length === 0);
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
