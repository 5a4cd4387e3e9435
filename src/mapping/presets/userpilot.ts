import { isEventKind, isRecordKind } from '../../domain/entity.ts';
import type { JsonObject } from '../../formats/json-text.ts';
import { filled, membersOf, type PresetRecord, seenAt } from './record.ts';

/**
 * A row of Userpilot's exports and data sync, which has our kinds and columns. What describes the browser is no property of a user or
 * company, and neither are the ids of the app and the row. Or a row of its lists `all_users` and `all_companies`, which have no
 * kinds, since they hold the latest state of each profile.
 */
export function readUserpilotRecord(row: JsonObject): PresetRecord | null {
  const { app_token, internal_event_id, metadata, ...columns } = row;
  if (!Object.hasOwn(row, 'event_type'))
    return app_token === undefined ? null : readListed(filled(columns), metadata);
  const { event_type, event_name, user_id, company_id, source, inserted_at, ...rest } = filled(columns);
  if (typeof event_type !== 'string' || !isRecordKind(event_type)) return null;
  const isEvent = isEventKind(event_type);
  return {
    record: {
      ...{ event_type, user_id, company_id, source, inserted_at },
      ...(isEvent && { event_name, event_id: internal_event_id }),
      metadata: { ...(isEvent ? rest : withoutBrowser(rest)), ...membersOf(metadata, 'metadata') },
    },
    profiles: [],
  };
}

/** A profile holds since it was last seen. */
function readListed(columns: JsonObject, metadata: unknown): PresetRecord | null {
  const { user_id, company_id, first_seen_at, last_seen_at, inserted_at = last_seen_at, ...rest } = columns;
  if ((user_id ?? company_id) === undefined) return null;
  const identity =
    user_id === undefined
      ? { event_type: 'identify_company', company_id }
      : { event_type: 'identify_user', user_id };
  const all = { ...withoutBrowser(rest), ...membersOf(metadata, 'metadata') };
  return {
    record: { ...identity, company_id, inserted_at, metadata: all },
    profiles: seenAt(identity, first_seen_at),
  };
}

function withoutBrowser(columns: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !ofBrowser.has(name)));
}

const ofBrowser: ReadonlySet<string> = new Set([
  ...['hostname', 'pathname', 'screen_width', 'screen_height', 'device_type', 'user_agent'],
  ...['operating_system', 'browser', 'browser_language', 'session', 'country_code'],
]);
