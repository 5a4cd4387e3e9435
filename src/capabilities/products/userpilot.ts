import { isEventKind, isRecordKind } from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import type { JsonObject } from '../../formats/json-text.ts';
import { filled, membersOf, notStored, type OurRecords } from './record.ts';

const noSuchRecord = notStored('Userpilot has no such record');

/**
 * Reads a row from Userpilot's exports and data sync, which have the same kinds and columns as
 * sluice's records. Also reads a row from Userpilot's lists `all_users` and `all_companies`. These
 * rows do not have kinds. Columns about the browser do not become properties of profiles.
 */
export function readUserpilot(row: JsonObject): OurRecords | Reason {
  const { app_token, internal_event_id, metadata, ...columns } = row;
  if (!Object.hasOwn(row, 'event_type'))
    return app_token === undefined ? noSuchRecord : readListed(filled(columns), metadata);
  const { event_type, event_name, user_id, company_id, source, inserted_at, ...rest } = filled(columns);
  if (typeof event_type !== 'string' || !isRecordKind(event_type)) return noSuchRecord;
  const ownMetadata = membersOf(metadata, 'metadata');
  if (!isEventKind(event_type))
    return [{ event_type, user_id, company_id, metadata: { ...withoutBrowser(rest), ...ownMetadata } }];
  const event = { event_type, event_name, event_id: internal_event_id, user_id, company_id, source };
  return [{ ...event, inserted_at, metadata: { ...rest, ...ownMetadata } }];
}

function readListed(columns: JsonObject, metadata: unknown): OurRecords | Reason {
  const { user_id, company_id, first_seen_at, last_seen_at, inserted_at, ...rest } = columns;
  if ((user_id ?? company_id) === undefined) return noSuchRecord;
  const event_type = user_id === undefined ? 'identify_company' : 'identify_user';
  const properties = { ...withoutBrowser(rest), ...membersOf(metadata, 'metadata') };
  return [{ event_type, user_id, company_id, metadata: properties }];
}

function withoutBrowser(columns: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !ofBrowser.has(name)));
}

const ofBrowser: ReadonlySet<string> = new Set([
  ...['hostname', 'pathname', 'screen_width', 'screen_height', 'device_type', 'user_agent'],
  ...['operating_system', 'browser', 'browser_language', 'session', 'country_code'],
]);
