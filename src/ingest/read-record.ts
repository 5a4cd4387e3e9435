import { type Instant, readEpoch, readInstant } from '../base/instant.ts';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS, MAX_EVENT_NAME_BYTES } from '../base/limits.ts';
import { automaticProperties } from '../domain/entity.ts';
import { isEmptyObject, isObject, type JsonObject, numberText } from '../formats/json-text.ts';
import type { Fields } from './fields.ts';
import type { CompanyRecord, EventRecord, Properties, UserRecord } from './records.ts';

/** Names that other services use for our fields. A refusal for a missing field mentions them. */
const otherUserIds = ['userId', 'distinct_id', 'external_id', 'anonymousId', 'uid', 'id'];
const otherCompanyIds = ['companyId', 'groupId', 'group_id', 'account_id', 'id'];
const otherEventNames = ['event', 'eventName', 'name'];

/** @throws InputError with all problems */
export function readUser(fields: Fields, environmentId: number): UserRecord {
  const { user_id, company_id, company, metadata, ...others } = fields.object;
  const userId = fields.requiredId(user_id, 'user_id', otherUserIds);
  const properties = profileProperties(fields, others, metadata, '');
  const move = readMove(fields, company, company_id);
  fields.check();
  const { marked, dropped, bytes } = fields;
  return { environmentId, userId, properties, ...move, marked, dropped, bytes };
}

interface Move {
  readonly companyId: string | null;
  readonly company: Properties;
}

/** Reads the company from `company`, or from `company_id` as in bulk data. */
function readMove(fields: Fields, company: unknown, plainId: unknown): Move {
  const object = fields.objectOf(company, 'company');
  if (object === null) {
    const isStated = company === null || plainId !== undefined;
    return { companyId: fields.id(plainId, 'company_id') ?? (isStated ? '' : null), company: {} };
  }
  const { company_id: fullId, id: shortId, metadata, ...others } = object;
  const companyId = agreedCompanyId(fields, fullId, shortId, plainId);
  if ((fullId ?? shortId ?? plainId) == null) {
    fields.refuse('missing_field', 'company.company_id is missing', 'company.company_id');
  }
  return { companyId, company: profileProperties(fields, others, metadata, 'company') };
}

function agreedCompanyId(fields: Fields, fullId: unknown, shortId: unknown, plainId: unknown): string | null {
  return fields.agreedId([
    ['company.company_id', fullId],
    ['company.id', shortId],
    ['company_id', plainId],
  ]);
}

/** @throws InputError with all problems */
export function readCompany(fields: Fields, environmentId: number): CompanyRecord {
  const { company_id, company, metadata, ...others } = fields.object;
  const { companyId, isNamed, rest } = readNamedCompany(fields, company, company_id);
  if (!isNamed) fields.requiredId(company_id, 'company_id', otherCompanyIds);
  const properties = profileProperties(fields, Object.assign(others, rest), metadata, '');
  fields.check();
  return {
    environmentId,
    companyId: companyId ?? '',
    properties,
    marked: fields.marked,
    dropped: fields.dropped,
    bytes: fields.bytes,
  };
}

interface NamedCompany {
  readonly isNamed: boolean;
  readonly companyId: string | null;
  /** The part of `company` that is stored as a property: its members except for the ids. */
  readonly rest: { readonly company?: unknown };
}

function readNamedCompany(fields: Fields, company: unknown, plainId: unknown): NamedCompany {
  if (company === undefined || company === null || isEmptyObject(company)) {
    return { isNamed: plainId != null, companyId: fields.id(plainId, 'company_id'), rest: {} };
  }
  const { company_id: fullId, id: shortId, ...others } = isObject(company) ? company : {};
  const companyId = agreedCompanyId(fields, fullId, shortId, plainId);
  const isNamed = (fullId ?? shortId ?? plainId) != null;
  if (!isObject(company)) return { isNamed, companyId, rest: { company } };
  return { isNamed, companyId, rest: isEmptyObject(others) ? {} : { company: others } };
}

/** @throws InputError with all problems */
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
    company,
    ...others
  } = fields.object;
  const userId = fields.requiredId(user_id, 'user_id', otherUserIds);
  const eventName = fields.requiredText(event_name, 'event_name', MAX_EVENT_NAME_BYTES, otherEventNames);
  const eventId = fields.agreedId([
    ['event_id', event_id],
    ['insert_id', insert_id],
  ]);
  const insertedAt = readMoment(fields, inserted_at, timestamp);
  const { companyId, rest } = readNamedCompany(fields, company, company_id);
  const properties = joinProperties(fields, Object.assign(others, rest), metadata, '');
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
    dropped: fields.dropped,
    bytes: fields.bytes,
  };
}

/**
 * Reads the time of a record from `inserted_at` or `timestamp`. If both are given, they must be
 * equal. Returns `null` if both are missing.
 */
export function readMoment(fields: Fields, inserted_at: unknown, timestamp: unknown): Instant | null {
  const value = inserted_at ?? timestamp;
  if (value === undefined || value === null) return null;
  if (timestamp != null && timestamp !== value) {
    const names = 'inserted_at and timestamp';
    fields.refuse('invalid_field', `${names} say different things; give one`, names);
  }
  const path = inserted_at == null ? 'timestamp' : 'inserted_at';
  const text = numberText(value) ?? value;
  const instant = typeof text === 'string' ? (readInstant(text) ?? readEpoch(text)) : null;
  if (instant === null) {
    const message = `${path} must be an ISO 8601 date or time such as 2026-11-20T12:34:56.123456Z, or seconds or milliseconds since 1970`;
    fields.refuse('invalid_date', message, path);
  } else if (instant.ms < EARLIEST_EVENT || instant.ms > Date.now() + MAX_EVENT_AHEAD_MS) {
    const message = `${path} must lie between ${new Date(EARLIEST_EVENT).toISOString()} and a day from now`;
    fields.refuse('invalid_date', message, path);
  }
  return instant;
}

/** Joins `metadata` with the other keys of the record, as for bulk data. `metadata` wins. */
function joinProperties(fields: Fields, others: JsonObject, metadata: unknown, path: string): Properties {
  const prefix = path === '' ? '' : `${path}.`;
  const object = fields.objectOf(metadata, `${prefix}metadata`);
  const outer = fields.properties(others, path);
  const inner = object === null ? null : fields.properties(object, `${prefix}metadata`);
  if (inner === null) return outer;
  for (const _ in outer) return { ...outer, ...inner };
  return inner;
}

/** Skips automatic properties, which callers cannot set. */
function profileProperties(fields: Fields, others: JsonObject, metadata: unknown, path: string): Properties {
  for (const name of automaticProperties) delete others[name];
  return joinProperties(fields, others, metadata, path);
}
