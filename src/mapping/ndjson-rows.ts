import { isUtf8 } from 'node:buffer';
import { automaticProperties, type Entity, idColumn, type LoadEntity } from '../domain/entity.ts';
import type { ChunkRange } from '../domain/load.ts';
import { type Reason, rejectKey, rejectRawKey } from '../domain/reject.ts';
import { createLineScanner } from '../formats/record-scanner.ts';
import {
  isEmptyObject,
  isObject,
  type JsonContent,
  type JsonObject,
  writeProperties,
} from './json-object.ts';
import {
  escapeCopy,
  escapeCopyJson,
  markedNumber,
  type ParsedJson,
  parseJson,
  toByteString,
} from './json-text.ts';
import type { PropertyTypes } from './property-types.ts';
import { REMOVES, UNCOUNTED } from './row-buffer.ts';
import { idLengthProblem, missingId, type Rows } from './rows.ts';

const dotted = 'metadata.';

/** Turns chunks of one NDJSON file into rows and rejects. */
export class NdjsonRows {
  readonly #entity: LoadEntity;
  readonly #map: ReadonlyMap<string, string>;
  readonly #rows: Rows;

  constructor(entity: LoadEntity, map: Readonly<Record<string, string>>, rows: Rows) {
    this.#entity = entity;
    this.#map = new Map(Object.entries(map));
    this.#rows = rows;
  }

  /** Reads the whole chunk; rows and rejects are in the `Rows` this was made with. */
  read(chunk: ChunkRange, bytes: Buffer): void {
    const scanner = createLineScanner();
    const wholeIsUtf8 = isUtf8(bytes);
    let line = 0;
    for (let start = 0; start < bytes.length; ) {
      const end = scanner.next(bytes, start, bytes.length, true);
      if (!scanner.blank) {
        const record = this.#rows.records.add(start, scanner.contentEnd, line);
        const reason = this.#readLine(bytes, start, scanner.contentEnd, record, scanner.problem, wholeIsUtf8);
        if (reason !== null) this.#rows.rejects.push(this.#rows.records.reject(record, reason, chunk, bytes));
      }
      line += scanner.lines;
      start = end;
    }
  }

  #readLine(
    bytes: Buffer,
    start: number,
    end: number,
    record: number,
    problem: string | null,
    wholeIsUtf8: boolean,
  ): Reason | null {
    if (problem !== null) return tooLarge;
    if (!wholeIsUtf8 && !isUtf8(bytes.subarray(start, end))) return notUtf8;
    const whole = bytes.toString('latin1', start, end);
    const line = this.#map.size === 0 ? withoutSeen(whole) : whole;
    const parsed = parseJson(line);
    if ('code' in parsed) return parsed;
    if (!isObject(parsed.value)) return notAnObject;
    return this.#readRecord(this.#renamed(parsed.value), parsed, line, record);
  }

  /** Applies the map and `metadata.x` = `x`; nearly always there is nothing to do. */
  #renamed(object: JsonObject): JsonObject {
    let rename = this.#map.size > 0;
    if (!rename) for (const name in object) if (name.startsWith(dotted)) rename = true;
    if (!rename) return object;
    const renamed = Object.entries(object).map(([name, value]): [string, unknown] => {
      const own = this.#map.get(name) ?? name;
      return [own.startsWith(dotted) ? own.slice(dotted.length) : own, value];
    });
    return Object.fromEntries(renamed);
  }

  #readRecord(object: JsonObject, parsed: ParsedJson, line: string, record: number): Reason | null {
    const entity = this.#entity === 'auto' ? entityOf(object) : this.#entity;
    if (entity === null) return neitherId;
    const column = idColumn[entity];
    const id = readId(object[column], column, parsed);
    if (typeof id !== 'string') return id ?? missingId(column);
    const second = entity === 'companies' ? dropSecondId(object, parsed) : null;
    if (second !== null) return second;
    object[column] = undefined;
    dropReserved(object);
    const source = this.#map.size === 0 ? sourceOfMetadata(line, object, parsed) : null;
    const company =
      entity === 'users' ? readCompany(object, parsed, line.length, this.#rows.types.companies) : none;
    if ('code' in company) return company;
    const content = readMetadata(object, parsed, line.length, '', this.#rows.types[entity], source);
    if ('code' in content) return content;
    if (company.row !== null) {
      const { text } = company.row;
      const flags = UNCOUNTED | company.row.flags;
      this.#rows.add('companies', escapeCopy(company.id ?? ''), escapeCopyJson(text), null, flags, record);
    }
    const flags = content.flags | (company.id === '' ? REMOVES : 0);
    const companyId = company.id === null ? null : escapeCopy(company.id);
    this.#rows.add(entity, escapeCopy(id), escapeCopyJson(content.text), companyId, flags, record);
    return null;
  }
}

const notUtf8: Reason = { code: 'invalid_utf8', message: 'the record is not valid UTF-8', column: null };
const tooLarge: Reason = {
  code: 'record_too_large',
  message: 'the record is longer than a record may be',
  column: null,
};
const notAnObject: Reason = {
  code: 'not_an_object',
  message: 'a record must be a JSON object',
  column: null,
};
const neitherId: Reason = {
  code: 'missing_id',
  message: 'the record has neither user_id nor company_id',
  column: null,
};

interface CompanyOfUser {
  /** null leaves the company as it is, '' removes it. */
  readonly id: string | null;
  /** Properties of the company itself, where the record brings any. */
  readonly row: JsonContent | null;
}

const none: CompanyOfUser = { id: null, row: null };

function entityOf(object: JsonObject): Entity | null {
  if (object['user_id'] !== undefined) return 'users';
  return object['company_id'] === undefined ? null : 'companies';
}

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

const seen = /^\},"first_seen_at":"[\d:.TZ-]{27}","last_seen_at":"[\d:.TZ-]{27}"\}$/;
const seenLength =
  '},"first_seen_at":"2026-01-01T00:00:00.000000Z","last_seen_at":"2026-01-01T00:00:00.000000Z"}'.length;

/**
 * An exported record without its end, which is of no use here: what comes before then ends in its `metadata`, which can
 * be taken as it stands (`sourceOfMetadata`), numbers and all. Its quotes are even in number: what was no JSON before is
 * none after.
 */
function withoutSeen(line: string): string {
  const at = line.length - seenLength;
  if (!line.startsWith('},"first_seen_at"', at) || !seen.test(line.slice(at))) return line;
  return `${line.slice(0, at + 1)}}`;
}

/** An id as a byte string; null if there is none. */
function readId(value: unknown, column: string, parsed: ParsedJson): string | Reason | null {
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
  return idLengthProblem(bytes.length, column) ?? bytes;
}

/** Takes `company_id` and `company` out of a user record. */
function readCompany(
  object: JsonObject,
  parsed: ParsedJson,
  length: number,
  types: PropertyTypes,
): CompanyOfUser | Reason {
  const { company_id: plain, company } = object;
  if (plain === undefined && company === undefined) return none;
  if (plain !== undefined) object['company_id'] = undefined;
  if (company !== undefined) object['company'] = undefined;
  const isAbsent = company === undefined || isEmptyObject(company);
  if (!isAbsent && company !== null) return readCompanyObject(company, plain, parsed, length, types);
  if (plain === undefined && isAbsent) return none;
  const id = readId(plain, 'company_id', parsed);
  if (id !== null && typeof id !== 'string') return id;
  return { id: id ?? '', row: null };
}

/** Takes the id out of the `company` of a company; the reason, if it is another than its own. */
function dropSecondId(object: JsonObject, parsed: ParsedJson): Reason | null {
  const { company_id: own, company } = object;
  if (!isObject(company)) return null;
  const { company_id: second, id: short, ...others } = company;
  const id = agreedId(
    [
      ['company_id', own],
      ['company.company_id', second],
      ['company.id', short],
    ],
    parsed,
  );
  if ((second ?? short) != null) object['company'] = isEmptyObject(others) ? undefined : others;
  return id === null || typeof id === 'string' ? null : id;
}

/** An id under several names, as a byte string: those that are given must agree. Null if none is. */
function agreedId(
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
function readMetadata(
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

const metadataName = '"metadata"';

/**
 * The text of `metadata` where it is known without parsing again: its name stands once in the line (be it as a key or
 * in a text), and is the last of the record. Holds only if no key stands beside the documented ones and none was
 * renamed; the caller sees to that. White space that means something to COPY is not let through.
 */
function sourceOfMetadata(line: string, object: JsonObject, parsed: ParsedJson): string | null {
  const at = line.indexOf(metadataName);
  if (at === -1 || parsed.decoded || line.includes(metadataName, at + 1)) return null;
  if (!line.startsWith(':', at + metadataName.length)) return null;
  // A key that comes twice counts where it came first, and may follow all the same.
  if (line.includes('"user_id"', at) || line.includes('"company', at) || line.includes('"sluice_', at))
    return null;
  let last = '';
  for (const name in object) last = name;
  if (last !== 'metadata') return null;
  const source = line.slice(at + metadataName.length + 1, line.lastIndexOf('}')).trim();
  return source.includes('\t') || source.includes('\r') ? null : source;
}
