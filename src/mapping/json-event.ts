import { type EventKind, IMPORT_SOURCE } from '../domain/entity.ts';
import type { Instant } from '../domain/instant.ts';
import { type Reason, rejectKey, rejectRawKey } from '../domain/reject.ts';
import { defaultNames, eventNameProblem, eventSourceProblem, splitUrl } from './event-record.ts';
import type { EventTimes } from './event-time.ts';
import type { JsonObject } from './json-object.ts';
import { agreedId, readId, readMetadata, readText, takeCompanyId } from './json-record.ts';
import { escapeCopy, escapeCopyJson, markedNumber, type ParsedJson } from './json-text.ts';
import { missingId, type Rows } from './rows.ts';

/**
 * Reads a decoded record of an event, of `length` bytes; null if it became a row. `source`: the text of its metadata, where
 * that is known.
 */
export function readEvent(
  kind: EventKind,
  object: JsonObject,
  parsed: ParsedJson,
  length: number,
  record: number,
  rows: Rows,
  source: string | null,
): Reason | null {
  const fields = readFields(kind, object, parsed);
  if ('code' in fields) return fields;
  const instant = readTime(object, rows.times);
  if (instant !== null && 'code' in instant) return instant;
  dropRejectKeys(object);
  replaceUrl(object);
  const content = readMetadata(object, parsed, length, '', rows.types.events, source);
  if ('code' in content) return content;
  rows.addEvent({ ...fields, kind, instant, properties: escapeCopyJson(content.text) }, record);
  return null;
}

interface Fields {
  readonly id: string | null;
  readonly name: string;
  readonly userId: string;
  readonly companyId: string | null;
  readonly source: string;
}

/** Takes the fields of an event out of a record, escaped for COPY. */
function readFields(kind: EventKind, object: JsonObject, parsed: ParsedJson): Fields | Reason {
  const id = readEventId(object, parsed);
  if (id !== null && typeof id !== 'string') return id;
  const name = readText(object['event_name'], 'event_name', parsed, eventNameProblem) ?? defaultNames[kind];
  if (typeof name !== 'string') return name;
  if (name === '') return eventNameProblem(0) ?? missingId('event_name');
  const userId = readId(object['user_id'], 'user_id', parsed) ?? missingId('user_id');
  if (typeof userId !== 'string') return userId;
  const companyId = takeCompanyId(object, parsed);
  if (companyId !== null && typeof companyId !== 'string') return companyId;
  const source = readText(object['source'], 'source', parsed, eventSourceProblem);
  if (source !== null && typeof source !== 'string') return source;
  object['event_name'] = undefined;
  object['user_id'] = undefined;
  object['source'] = undefined;
  return {
    id: id === null ? null : escapeCopy(id),
    name: escapeCopy(name),
    userId: escapeCopy(userId),
    companyId: companyId === null ? null : escapeCopy(companyId),
    source: source === null || source === '' ? IMPORT_SOURCE : escapeCopy(source),
  };
}

function readEventId(object: JsonObject, parsed: ParsedJson): string | Reason | null {
  const { event_id: id, insert_id: other } = object;
  if (id === undefined && other === undefined) return null;
  object['event_id'] = undefined;
  object['insert_id'] = undefined;
  if (other === undefined) return readId(id, 'event_id', parsed);
  return agreedId(
    [
      ['event_id', id],
      ['insert_id', other],
    ],
    parsed,
  );
}

/** Takes `inserted_at` out of a record. Null if it has none. */
export function readTime(object: JsonObject, times: EventTimes): Instant | Reason | null {
  const value = object['inserted_at'];
  if (value === undefined) return null;
  object['inserted_at'] = undefined;
  if (value === null) return null;
  const text = typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
  return times.read(typeof text === 'string' ? text : '', 'inserted_at');
}

function dropRejectKeys(object: JsonObject): void {
  if (object[rejectKey] !== undefined) object[rejectKey] = undefined;
  if (object[rejectRawKey] !== undefined) object[rejectRawKey] = undefined;
}

/** Replaces the address of a page by its properties, beside those of the record. */
function replaceUrl(object: JsonObject): void {
  const { url } = object;
  if (typeof url !== 'string' || markedNumber(url) !== null) return;
  object['url'] = undefined;
  for (const [name, part] of Object.entries(splitUrl(url))) object[name] ??= part;
}
