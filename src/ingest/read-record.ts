import { isUtf8 } from 'node:buffer';
import { automaticProperties } from '../domain/entity.ts';
import { inputError } from '../domain/errors.ts';
import { type Instant, readInstant } from '../domain/instant.ts';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS, MAX_EVENT_NAME_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { isObject, type JsonObject } from '../mapping/json-object.ts';
import { parseJsonText } from '../mapping/json-text.ts';
import { Fields, type ValueRule } from './fields.ts';
import type { CompanyRecord, EventRecord, Properties, UserRecord } from './records.ts';

/** The body of /v1/identify. @throws InputError with every problem found. */
export function readUser(fields: Fields, environmentId: number): UserRecord {
  const { user_id, company_id, company, metadata, ...beside } = fields.object;
  const userId = fields.requiredText(user_id, 'user_id');
  const properties = profileProperties(fields, beside, metadata, '', 'text');
  const moved = readMove(fields, company, company_id);
  fields.check();
  return { environmentId, userId, properties, ...moved, marked: fields.marked, bytes: fields.bytes };
}

interface Moved {
  readonly companyId: string | null;
  readonly company: Properties;
}

/** `company`, or `company_id` as in bulk data; null for either takes the user out of the company. */
function readMove(fields: Fields, company: unknown, plainId: unknown): Moved {
  if (company === undefined || company === null) {
    if (plainId === undefined) return { companyId: company === null ? '' : null, company: {} };
    return { companyId: fields.text(plainId, 'company_id') ?? '', company: {} };
  }
  if (!isObject(company)) {
    fields.objectOf(company, 'company');
    return { companyId: null, company: {} };
  }
  const { company_id: own, id: short, metadata, ...others } = company;
  const companyId = fields.requiredText(own ?? short ?? plainId, 'company.company_id');
  const beside = own != null && short !== undefined ? { ...others, id: short } : others;
  return { companyId, company: profileProperties(fields, beside, metadata, 'company', 'primitive') };
}

/** The body of /v1/companies/identify. @throws InputError with every problem found. */
export function readCompany(fields: Fields, environmentId: number): CompanyRecord {
  const { company_id, metadata, ...beside } = fields.object;
  const companyId = fields.requiredText(company_id, 'company_id');
  const properties = profileProperties(fields, beside, metadata, '', 'any');
  fields.check();
  return { environmentId, companyId, properties, marked: fields.marked, bytes: fields.bytes };
}

/** The body of /v1/track. @throws InputError with every problem found. */
export function readEvent(fields: Fields, environmentId: number): EventRecord {
  const {
    user_id,
    event_name,
    metadata,
    event_id,
    insert_id,
    inserted_at,
    timestamp,
    company_id,
    ...beside
  } = fields.object;
  const userId = fields.requiredText(user_id, 'user_id');
  const eventName = fields.requiredText(event_name, 'event_name', MAX_EVENT_NAME_BYTES);
  const eventId = fields.text(
    either(fields, 'event_id', event_id, 'insert_id', insert_id),
    event_id == null ? 'insert_id' : 'event_id',
  );
  const insertedAt = readMoment(fields, inserted_at, timestamp);
  const companyId = fields.text(company_id, 'company_id');
  const properties = besideAndWithin(fields, beside, metadata, '', 'any');
  fields.check();
  return {
    environmentId,
    eventId,
    eventName,
    userId,
    companyId,
    insertedAt,
    metadata: properties,
    marked: fields.marked,
    bytes: fields.bytes,
  };
}

/** Two names for one thing: both may be given if they say the same. */
function either(fields: Fields, oneName: string, one: unknown, otherName: string, other: unknown): unknown {
  if (other == null) return one ?? undefined;
  if (one == null) return other;
  if (one !== other) {
    const names = `${oneName} and ${otherName}`;
    fields.refuse('invalid_field', `${names} say different things; give one`, names);
  }
  return one;
}

/** When it happened: `inserted_at`, or `timestamp`; null if neither is there. */
export function readMoment(fields: Fields, inserted_at: unknown, timestamp: unknown): Instant | null {
  const value = either(fields, 'inserted_at', inserted_at, 'timestamp', timestamp);
  return readTime(fields, value, inserted_at == null ? 'timestamp' : 'inserted_at');
}

function readTime(fields: Fields, value: unknown, path: string): Instant | null {
  if (value === undefined) return null;
  const instant = typeof value === 'string' ? readInstant(value) : null;
  if (instant === null) {
    const message = `${path} must be an ISO 8601 date or time such as 2026-11-20T12:34:56.123456Z`;
    fields.refuse('invalid_date', message, path);
  } else if (instant.ms < EARLIEST_EVENT || instant.ms > Date.now() + MAX_EVENT_AHEAD_MS) {
    const message = `${path} must lie between ${new Date(EARLIEST_EVENT).toISOString()} and a day from now`;
    fields.refuse('invalid_date', message, path);
  }
  return instant;
}

/**
 * The properties of a record: those in `metadata`, and the keys beside the documented ones, as in bulk data. Where
 * one is given in both places, `metadata` wins.
 */
function besideAndWithin(
  fields: Fields,
  beside: JsonObject,
  metadata: unknown,
  path: string,
  rule: ValueRule,
): Properties {
  const under = path === '' ? '' : `${path}.`;
  const within = fields.objectOf(metadata, `${under}metadata`);
  const outer = fields.properties(beside, path, rule);
  const inner = within === null ? null : fields.properties(within, `${under}metadata`, rule);
  if (inner === null) return outer;
  for (const _ in outer) return { ...outer, ...inner };
  return inner;
}

/** Those of a profile: what is kept automatically cannot be set. */
function profileProperties(
  fields: Fields,
  beside: JsonObject,
  metadata: unknown,
  path: string,
  rule: ValueRule,
): Properties {
  for (const name of automaticProperties) delete beside[name];
  return besideAndWithin(fields, beside, metadata, path, rule);
}

const byteOrderMark = '\ufeff';

/** Opens the body of a single record, or an item of a batch. @throws InputError `invalid_json`, `invalid_field`. */
export function openRecord(body: Buffer, what = 'The body'): Fields {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  if (!isUtf8(body)) throw inputError('invalid_json', `${what} is not valid UTF-8`);
  const text = body.toString('utf8');
  const parsed = parseJsonText(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if ('code' in parsed) throw unreadable(parsed, what);
  return new Fields(parsed, body.length, what);
}

/** Why a text that is a JSON object was not read. */
function unreadable({ code, message }: Reason, what: string): Error {
  if (code === 'too_deep') return inputError('invalid_metadata_value', `${what} is ${message}`);
  return inputError('invalid_json', `${what} is not JSON`, message);
}
