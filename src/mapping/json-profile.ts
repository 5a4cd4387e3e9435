import { type Entity, idColumn } from '../domain/entity.ts';
import type { Reason } from '../domain/reject.ts';
import type { JsonObject } from './json-object.ts';
import { dropReserved, noCompany, readCompany, readId, readMetadata, takeCompanyId } from './json-record.ts';
import { escapeCopy, escapeCopyJson, type ParsedJson } from './json-text.ts';
import { REMOVES, UNCOUNTED } from './row-buffer.ts';
import { missingId, type Rows } from './rows.ts';

/** Keys of records that say what they are, which mean nothing in a profile. */
const ofEventsOnly = ['event_type', 'event_id', 'insert_id', 'event_name', 'source', 'inserted_at'] as const;

/** Takes out of a record that says it is a profile what is no property of one; its time has been read. */
export function dropEventKeys(object: JsonObject, entity: Entity): void {
  for (const name of ofEventsOnly) if (object[name] !== undefined) object[name] = undefined;
  if (entity === 'companies') object['user_id'] = undefined;
}

/** Where the rows of profiles go. */
export type ProfileSink = Pick<Rows, 'addProfile' | 'types'>;

/** What is known of a profile's record besides its content. */
export interface ProfileOrigin {
  readonly entity: Entity;
  /** Since when it is so, as `Instant` writes it; null: since the load was accepted. */
  readonly at: string | null;
  /** Of its line. */
  readonly length: number;
  readonly record: number;
  /** The text of its metadata, where that is known. */
  readonly source: string | null;
}

/** Reads a decoded record of a profile; null if it became a row, and perhaps one of its company. */
export function readProfile(
  object: JsonObject,
  parsed: ParsedJson,
  { entity, at, length, record, source }: ProfileOrigin,
  sink: ProfileSink,
): Reason | null {
  const column = idColumn[entity];
  const id = readId(object[column], column, parsed);
  if (typeof id !== 'string') return id ?? missingId(column);
  if (entity === 'companies' && object['company'] !== undefined) {
    const agreed = takeCompanyId(object, parsed);
    if (agreed !== null && typeof agreed !== 'string') return agreed;
  }
  object[column] = undefined;
  dropReserved(object);
  const company = entity === 'users' ? readCompany(object, parsed, length, sink.types.companies) : noCompany;
  if ('code' in company) return company;
  const content = readMetadata(object, parsed, length, '', sink.types[entity], source);
  if ('code' in content) return content;
  if (company.row !== null) {
    const { text } = company.row;
    const flags = UNCOUNTED | company.row.flags;
    sink.addProfile(at, 'companies', escapeCopy(company.id ?? ''), escapeCopyJson(text), null, flags, record);
  }
  const flags = content.flags | (company.id === '' ? REMOVES : 0);
  const companyId = company.id === null ? null : escapeCopy(company.id);
  sink.addProfile(at, entity, escapeCopy(id), escapeCopyJson(content.text), companyId, flags, record);
  return null;
}
