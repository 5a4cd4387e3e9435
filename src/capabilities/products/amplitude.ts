import type { Reason } from '../../domain/reject.ts';
import { isObject, type JsonObject, numberText } from '../../formats/json-text.ts';
import {
  type Company,
  companyOf,
  filled,
  firstId,
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
 * Reads a record in the format of Amplitude's event export. `event_type` is the name of the event.
 * User properties are values at the time of the event, or operations such as `$set`. `$identify`
 * and `$groupidentify` become profiles.
 */
export function readAmplitude(line: JsonObject, context: ProductContext): OurRecords | Reason {
  const { event_type: name, group_type, group_value } = line;
  if (name === undefined || name === null) return notStored('Amplitude has no record without event_type');
  const user_id = firstId(line['user_id'], line['device_id']);
  const groups = typeof group_type === 'string' ? { [group_type]: group_value } : line['groups'];
  const company = companyOf(groups, context);
  const company_id = company?.[1];
  const user = { event_type: 'identify_user', user_id, company_id };
  const ofUser = changesOf(line['user_properties']);
  if (name === '$identify') return [{ ...user, metadata: ofUser }];
  const ofCompany = groupProperties(line, company);
  const ourCompany = { event_type: 'identify_company', company_id };
  if (name === '$groupidentify') {
    if (company === null && context.companyFrom !== null) return otherGroup(context.companyFrom);
    return [{ ...ourCompany, metadata: changesOf(ofCompany ?? line['group_properties']) }];
  }
  const event = { user_id, ...readEvent(line), company_id };
  return [event, ...profilesOf(user, ofUser), ...profilesOf(ourCompany, changesOf(ofCompany))];
}

function readEvent(line: JsonObject): JsonObject {
  const { event_type: name, user_id: _, event_time, time, groups, user_properties, ...others } = line;
  const { $insert_id, insert_id, uuid, event_properties, group_properties, ...rest } = others;
  const isPageView = name === '[Amplitude] Page Viewed';
  const eventProperties = membersOf(event_properties, 'event_properties');
  return {
    event_type: isPageView ? 'page_view' : 'track',
    event_name: isPageView ? undefined : name,
    event_id: $insert_id ?? insert_id ?? uuid,
    inserted_at: event_time ?? time,
    url: isPageView ? eventProperties['[Amplitude] Page URL'] : undefined,
    metadata: { ...filled(rest), ...eventProperties },
  };
}

/** Returns the company's properties from `{kind: {id: properties}}`, or `null`. */
function groupProperties(line: JsonObject, company: Company | null): JsonObject | null {
  if (company === null) return null;
  const [kind, id] = company;
  const properties = objectOf(objectOf(line['group_properties'])[kind])[numberText(id) ?? String(id)];
  return isObject(properties) ? properties : null;
}

function changesOf(properties: unknown): JsonObject {
  const members = objectOf(properties);
  const plain = Object.fromEntries(Object.entries(members).filter(([name]) => !name.startsWith('$')));
  const { $set, $setOnce, $unset: unset } = members;
  return propertiesOf({ setOnce: objectOf($setOnce), set: { ...plain, ...objectOf($set) }, unset });
}
