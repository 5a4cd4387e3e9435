import { isObject, type JsonObject, numberText } from '../../formats/json-text.ts';
import {
  type Company,
  companyOf,
  filled,
  givenId,
  membersOf,
  objectOf,
  type PresetProfile,
  type PresetRecord,
  type ProfileChanges,
  profileRecord,
  profilesOf,
} from './record.ts';

/**
 * A line of Amplitude's event export, which names each event in `event_type`. Its user properties are those that the user
 * had at that moment, or operations ($set, $setOnce, $unset; others, such as $add, need what is stored, and are left out).
 * `$identify` and `$groupidentify` are profiles.
 */
export function readAmplitudeRecord(line: JsonObject, from: string | null): PresetRecord | null {
  const { event_type: name, user_id, event_time, time, groups, group_type, group_value } = line;
  if (name === undefined || name === null) return null;
  const at = event_time ?? time;
  const identity = { user_id: givenId(user_id, line['device_id']), inserted_at: at };
  const company = companyOf(typeof group_type === 'string' ? { [group_type]: group_value } : groups, from);
  const user = { ...identity, event_type: 'identify_user', company_id: company?.[1] };
  const changes = changesOf(line['user_properties']);
  const links = [{ alias: line['device_id'], userId: user_id, linking: 'observe' }] as const;
  if (name === '$identify') return { ...profileRecord(user, changes), links };
  if (name === '$groupidentify') {
    const record = { event_type: 'identify_company', company_id: company?.[1], inserted_at: at };
    const properties = groupProperties(line, company) ?? line['group_properties'];
    return company === null && from !== null ? null : profileRecord(record, changesOf(properties));
  }
  return {
    record: { ...identity, ...readEvent(line), company_id: company?.[1] },
    profiles: [...profilesOf(user, changes), ...companyProfiles(line, company, at)],
    links,
  };
}

function readEvent(line: JsonObject): JsonObject {
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

function companyProfiles(line: JsonObject, company: Company, at: unknown): PresetProfile[] {
  const properties = groupProperties(line, company);
  if (properties === null) return [];
  const identity = { event_type: 'identify_company', company_id: company?.[1], inserted_at: at };
  return profilesOf(identity, changesOf(properties));
}

/** Returns the properties of the company in `{kind: {id: {…}}}`. */
function groupProperties(line: JsonObject, company: Company): JsonObject | null {
  if (company === null) return null;
  const [kind, id] = company;
  const properties = objectOf(objectOf(line['group_properties'])[kind])[numberText(id) ?? String(id)];
  return isObject(properties) ? properties : null;
}

function changesOf(properties: unknown): ProfileChanges {
  const entries = Object.entries(objectOf(properties));
  const { $set, $setOnce, $unset } = objectOf(properties);
  const plain = Object.fromEntries(entries.filter(([name]) => !name.startsWith('$')));
  return { set: { ...plain, ...objectOf($set) }, setOnce: objectOf($setOnce), unset: $unset };
}
