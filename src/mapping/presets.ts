import type { Instant } from '../domain/instant.ts';
import { EARLIEST_EVENT } from '../domain/limits.ts';
import type { Preset } from '../domain/load.ts';
import { readAmplitudeRecord } from './presets/amplitude.ts';
import { readMixpanelRecord } from './presets/mixpanel.ts';
import { readPosthogRecord } from './presets/posthog.ts';
import type { PresetRecord, ReadPreset } from './presets/record.ts';
import { readSegmentRecord } from './presets/segment.ts';
import { readUserpilotRecord } from './presets/userpilot.ts';

/**
 * Presets turn a decoded record of another product, from an export file or a request of its SDK, into records of ours,
 * which are then read as any others. They are pure and judge no value: whoever reads ours does that.
 */
export const readPreset: Readonly<Record<Preset, ReadPreset>> = {
  mixpanel: ofMember(readMixpanelRecord),
  amplitude: ofMember(readAmplitudeRecord),
  segment: ofMember(readSegmentRecord),
  posthog: ofMember(readPosthogRecord),
  userpilot: ofMember(readUserpilotRecord),
};

/** Members that are JSON, in Parquet files and some others as a text. */
export const presetTexts: readonly string[] = [
  ...['properties', '$properties', 'person_properties', 'event_properties', 'user_properties'],
  ...['group_properties', 'groups', 'set', 'set_once', '$set', '$set_once', 'distinct_ids'],
  ...['traits', 'context', 'metadata'],
];

/** An event makes its user, who then was in the event's company. */
function ofMember(read: ReadPreset): ReadPreset {
  return (given, from) => {
    const found = read(given, from);
    const kind = found?.record['event_type'];
    return found !== null && (kind === 'track' || kind === 'page_view') ? withUser(found) : found;
  };
}

function withUser(found: PresetRecord): PresetRecord {
  const { record, profiles } = found;
  const { user_id, company_id, inserted_at } = record;
  if (profiles.some((each) => each.record['event_type'] === 'identify_user' && !each.fillsIn)) return found;
  const user = {
    event_type: 'identify_user',
    user_id,
    company_id: company_id ?? undefined,
    inserted_at,
    metadata: {},
  };
  return { ...found, user };
}

/**
 * Returns the time of properties that only fill in: before any that a record can have, so that all others win, whenever they
 * come; and the later the record, the earlier it is, so that of several such records the first wins.
 */
export function fillingTime(since: Instant | null): Instant {
  const ms = 2 * EARLIEST_EVENT - (since?.ms ?? EARLIEST_EVENT) - 1;
  return { ms, text: new Date(ms).toISOString().replace('Z', '000Z') };
}
