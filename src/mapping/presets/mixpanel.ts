import type { JsonObject } from '../json-object.ts';
import { membersOf, type PresetRecord } from './preset-record.ts';

const reserved = /^\$/;
const pageView = '$mp_web_page_view';

/**
 * A line of Mixpanel's raw event export, `{"event", "properties": {"time", "distinct_id", "$insert_id", …}}`, or a profile
 * of its engage export, `{"$distinct_id", "$properties": {…}}`, of a group `{"$group_id", "$properties": {…}}`. Whatever else
 * they hold becomes metadata; a profile's reserved properties ($email, $name) lose the sign.
 */
export function readMixpanelRecord(record: JsonObject): PresetRecord | null {
  const { event, properties, ...others } = record;
  if (event === undefined) return readProfile(record);
  const given = { ...others, ...membersOf(properties, 'properties') };
  const { time, distinct_id, $insert_id, $user_id, $group_id, company_id, ...metadata } = given;
  const isPageView = event === pageView;
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

function readProfile({ $distinct_id, $group_id, $properties, ...others }: JsonObject): PresetRecord | null {
  if ($distinct_id === undefined && $group_id === undefined) return null;
  const { $last_seen, $group_key: _, ...properties } = { ...others, ...membersOf($properties, 'properties') };
  const metadata = Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name.replace(reserved, ''), value]),
  );
  const identity =
    $distinct_id === undefined
      ? { event_type: 'identify_company', company_id: $group_id }
      : { event_type: 'identify_user', user_id: $distinct_id };
  return { record: { ...identity, inserted_at: $last_seen, metadata }, profiles: [] };
}
