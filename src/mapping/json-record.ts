import { automaticProperties, type Entity, idColumn } from '../domain/entity.ts';
import { type Reason, rejectKey, rejectRawKey } from '../domain/reject.ts';
import {
  isEmptyObject,
  isObject,
  type JsonContent,
  type JsonObject,
  writeProperties,
} from './json-object.ts';
import { escapeCopy, escapeCopyJson, markedNumber, type ParsedJson, toByteString } from './json-text.ts';
import type { PropertyTypes } from './property-types.ts';
import { REMOVES, UNCOUNTED } from './row-buffer.ts';
import { idLengthProblem, missingId, type Rows } from './rows.ts';

/*
 * The parts of a decoded record: its id, its company, its properties. What is read is taken out of the record, by setting it
 * to undefined, so that what is left are properties.
 */

interface CompanyOfUser {
  /** null leaves the company as it is, '' removes it. */
  readonly id: string | null;
  /** Properties of the company itself, where the record brings any. */
  readonly row: JsonContent | null;
}

const noCompany: CompanyOfUser = { id: null, row: null };

/**
 * In a file of rejects that was mended and sent again, why the record had been refused is no property; nor is, in one
 * that was exported, when the profile was seen.
 */
function dropReserved(object: JsonObject): void {
  if (object[rejectKey] !== undefined) object[rejectKey] = undefined;
  if (object[rejectRawKey] !== undefined) object[rejectRawKey] = undefined;
  dropAutomatic(object);
}

function dropAutomatic(object: JsonObject): void {
  for (const name of automaticProperties) if (object[name] !== undefined) object[name] = undefined;
}

/** An id as a byte string; null if there is none. */
export function readId(value: unknown, column: string, parsed: ParsedJson): string | Reason | null {
  return readText(value, column, parsed, idLengthProblem);
}

/** A text, or a number for it, as a byte string; null if there is none. `lengthProblem`: why it cannot have so many bytes. */
export function readText(
  value: unknown,
  column: string,
  parsed: ParsedJson,
  lengthProblem: (bytes: number, column: string) => Reason | null,
): string | Reason | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'number' ? String(value) : (markedNumber(value) ?? value);
  if (typeof text !== 'string') {
    return { code: 'invalid_id', message: `${column} must be a string or a number`, column };
  }
  if (parsed.decoded && text.includes('\0'))
    return { code: 'nul_character', message: `${column} holds U+0000`, column };
  if (parsed.decoded && !text.isWellFormed()) {
    return { code: 'lone_surrogate', message: `${column} holds half a surrogate pair`, column };
  }
  const bytes = parsed.decoded ? toByteString(text) : text;
  return lengthProblem(bytes.length, column) ?? bytes;
}

/** Takes `company_id` and `company` out of a user record. */
function readCompany(
  object: JsonObject,
  parsed: ParsedJson,
  length: number,
  types: PropertyTypes,
): CompanyOfUser | Reason {
  const { company_id: plain, company } = object;
  if (plain === undefined && company === undefined) return noCompany;
  if (plain !== undefined) object['company_id'] = undefined;
  if (company !== undefined) object['company'] = undefined;
  const isAbsent = company === undefined || isEmptyObject(company);
  if (!isAbsent && company !== null) return readCompanyObject(company, plain, parsed, length, types);
  if (plain === undefined && isAbsent) return noCompany;
  const id = readId(plain, 'company_id', parsed);
  if (id !== null && typeof id !== 'string') return id;
  return { id: id ?? '', row: null };
}

/** Takes `company_id`, and the id in an object `company`, out of the record of a company or an event. Null if it has none. */
export function takeCompanyId(object: JsonObject, parsed: ParsedJson): string | Reason | null {
  const { company_id: own, company } = object;
  object['company_id'] = undefined;
  if (!isObject(company)) return readId(own, 'company_id', parsed);
  const { company_id: second, id: short, ...others } = company;
  if ((second ?? short) != null) object['company'] = isEmptyObject(others) ? undefined : others;
  return agreedId(
    [
      ['company_id', own],
      ['company.company_id', second],
      ['company.id', short],
    ],
    parsed,
  );
}

/** An id under several names, as a byte string: those that are given must agree. Null if none is. */
export function agreedId(
  given: readonly (readonly [column: string, value: unknown])[],
  parsed: ParsedJson,
): string | Reason | null {
  let first: readonly [column: string, id: string] | null = null;
  for (const [column, value] of given) {
    const id = readId(value, column, parsed);
    if (id === null) continue;
    if (typeof id !== 'string') return id;
    if (first !== null && id !== first[1]) {
      const message = `${first[0]} and ${column} are different ids; give one, or the same`;
      return { code: 'invalid_id', message, column };
    }
    first ??= [column, id];
  }
  return first?.[1] ?? null;
}

function readCompanyObject(
  company: unknown,
  plain: unknown,
  parsed: ParsedJson,
  length: number,
  types: PropertyTypes,
): CompanyOfUser | Reason {
  if (!isObject(company))
    return { code: 'invalid_type', message: 'company must be an object', column: 'company' };
  const { company_id: own, id: short, metadata, ...others } = company;
  const id = agreedId(
    [
      ['company.company_id', own],
      ['company.id', short],
      ['company_id', plain],
    ],
    parsed,
  );
  if (id === null) return missingId('company.company_id');
  if (typeof id !== 'string') return id;
  dropAutomatic(others);
  if (metadata !== undefined && metadata !== null) others['metadata'] = metadata;
  const row = readMetadata(others, parsed, length, 'company', types);
  if ('code' in row) return row;
  return { id, row };
}

/** The properties of a record: those beside the documented keys, then those in `metadata`. */
export function readMetadata(
  object: JsonObject,
  parsed: ParsedJson,
  length: number,
  path: string,
  types: PropertyTypes,
  source: string | null = null,
): JsonContent | Reason {
  const metadata = object['metadata'];
  if (metadata !== undefined) object['metadata'] = undefined;
  const beside = writeProperties(object, parsed, length, path, types);
  if ('code' in beside || metadata === undefined || metadata === null) return beside;
  if (isEmptyObject(metadata)) return beside;
  const at = path === '' ? 'metadata' : `${path}.metadata`;
  if (!isObject(metadata)) return { code: 'invalid_type', message: `${at} must be an object`, column: at };
  const within = writeProperties(metadata, parsed, length, at, types, beside.text === '' ? source : null);
  if ('code' in within) return within;
  const separator = beside.text === '' || within.text === '' ? '' : ',';
  return { text: beside.text + separator + within.text, flags: beside.flags | within.flags };
}

/** Keys of records that say what they are, which mean nothing in a profile. */
const ofEventsOnly = ['event_type', 'event_id', 'insert_id', 'event_name', 'source', 'inserted_at'] as const;

/** Takes out of a record that says it is a profile what is no property of one; its time has been read. */
export function dropEventKeys(object: JsonObject, entity: Entity): void {
  for (const name of ofEventsOnly) if (object[name] !== undefined) object[name] = undefined;
  if (entity === 'companies') object['user_id'] = undefined;
}

export type ProfileSink = Pick<Rows, 'addProfile' | 'types'>;

interface ProfileOrigin {
  readonly entity: Entity;
  /** Since when it is so, as `Instant` writes it; null: since the load was accepted. */
  readonly at: string | null;
  /** The length of the line. */
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
