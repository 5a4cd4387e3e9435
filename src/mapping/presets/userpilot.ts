import { isEventKind, isRecordKind } from '../../domain/entity.ts';
import type { JsonObject } from '../json-text.ts';
import { filled, membersOf, type PresetRecord } from './record.ts';

/**
 * A row of Userpilot's exports and data sync, which has our kinds and columns. What describes the browser is no property of a user or
 * company, and neither are the ids of the app and the row.
 */
export function readUserpilotRecord(row: JsonObject): PresetRecord | null {
  const { app_token, internal_event_id, metadata, ...columns } = row;
  const { event_type, event_name, user_id, company_id, source, inserted_at, ...rest } = filled(columns);
  if (typeof event_type !== 'string' || !isRecordKind(event_type)) return null;
  const isEvent = isEventKind(event_type);
  const others = Object.entries(rest).filter(([name]) => isEvent || !ofBrowser.has(name));
  return {
    record: {
      ...{ event_type, user_id, company_id, source, inserted_at },
      ...(isEvent && { event_name, event_id: internal_event_id }),
      metadata: { ...Object.fromEntries(others), ...membersOf(metadata, 'metadata') },
    },
    profiles: [],
  };
}

const ofBrowser: ReadonlySet<string> = new Set([
  ...['hostname', 'pathname', 'screen_width', 'screen_height', 'device_type', 'user_agent'],
  ...['operating_system', 'browser', 'browser_language', 'session', 'country_code'],
]);
