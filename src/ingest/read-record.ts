import { type Instant, readEpoch, readInstant } from '../base/instant.ts';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS, MAX_EVENT_NAME_BYTES } from '../base/limits.ts';
import { automaticProperties } from '../domain/entity.ts';
import { isEmptyObject, isObject, type JsonObject, numberText } from '../formats/json-text.ts';
import type { Fields } from './fields.ts';
import type { CompanyRecord, EventRecord, Properties, UserRecord } from './records.ts';

/** Id fields of other services, refused by name. */
const otherUserIds = ['userId', 'distinct_id', 'external_id', 'anonymousId', 'uid', 'id'];
const otherCompanyIds = ['companyId', 'groupId', 'group_id', 'account_id', 'id'];
const otherEventNames = ['event', 'eventName', 'name'];

/** @throws InputError with every problem found. */
export function readUser(fields: Fields, environmentId: number): UserRecord {
  const { user_id, company_id, company, metadata, ...beside } = fields.object;
  const userId = fields.requiredId(user_id, 'user_id', otherUserIds);
  const properties = profileProperties(fields, beside, metadata, '');
  const moved = readMove(fields, company, company_id);
  fields.check();
  const { marked, dropped, bytes } = fields;
  return { environmentId, userId, properties, ...moved, marked, dropped, bytes };
}

interface Moved {
  readonly companyId: string | null;
  readonly company: Properties;
}

/** `company`, or `company_id` as in bulk data. Null removes the user from the company. */
function readMove(fields: Fields, company: unknown, plainId: unknown): Moved {
  const given = fields.objectOf(company, 'company');
  if (given === null) {
    const isGiven = company === null || plainId !== undefined;
    return { companyId: fields.id(plainId, 'company_id') ?? (isGiven ? '' : null), company: {} };
  }
  const { company_id: own, id: short, metadata, ...others } = given;
  const companyId = agreedCompanyId(fields, own, short, plainId);
  if ((own ?? short ?? plainId) == null) {
    fields.refuse('missing_field', 'company.company_id is missing', 'company.company_id');
  }
  return { companyId, company: profileProperties(fields, others, metadata, 'company') };
}

function agreedCompanyId(fields: Fields, own: unknown, short: unknown, plainId: unknown): string | null {
  return fields.agreedId([
    ['company.company_id', own],
    ['company.id', short],
    ['company_id', plainId],
  ]);
}

/** @throws InputError with every problem found. */
export function readCompany(fields: Fields, environmentId: number): CompanyRecord {
  const { company_id, company, metadata, ...beside } = fields.object;
  const { companyId, isNamed, left } = readNamedCompany(fields, company, company_id);
  if (!isNamed) fields.requiredId(company_id, 'company_id', otherCompanyIds);
  const properties = profileProperties(fields, Object.assign(beside, left), metadata, '');
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
  /** A `company` without an id, or its other members, as a property. */
  readonly left: { readonly company?: unknown };
}

function readNamedCompany(fields: Fields, company: unknown, plainId: unknown): NamedCompany {
  if (company === undefined || company === null || isEmptyObject(company)) {
    return { isNamed: plainId != null, companyId: fields.id(plainId, 'company_id'), left: {} };
  }
  const { company_id: own, id: short, ...others } = isObject(company) ? company : {};
  const companyId = agreedCompanyId(fields, own, short, plainId);
  const isNamed = (own ?? short ?? plainId) != null;
  if (!isObject(company)) return { isNamed, companyId, left: { company } };
  return { isNamed, companyId, left: isEmptyObject(others) ? {} : { company: others } };
}

/** @throws InputError with every problem found. */
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
    ...beside
  } = fields.object;
  const userId = fields.requiredId(user_id, 'user_id', otherUserIds);
  const eventName = fields.requiredText(event_name, 'event_name', MAX_EVENT_NAME_BYTES, otherEventNames);
  const eventId = fields.agreedId([
    ['event_id', event_id],
    ['insert_id', insert_id],
  ]);
  const insertedAt = readMoment(fields, inserted_at, timestamp);
  const { companyId, left } = readNamedCompany(fields, company, company_id);
  const properties = besideAndWithin(fields, Object.assign(beside, left), metadata, '');
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

/** Reads `inserted_at` or `timestamp`, which must agree. Returns null if both are missing. */
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

/** Joins `metadata` and, as in bulk data, other keys beside it. `metadata` wins. */
function besideAndWithin(fields: Fields, beside: JsonObject, metadata: unknown, path: string): Properties {
  const under = path === '' ? '' : `${path}.`;
  const within = fields.objectOf(metadata, `${under}metadata`);
  const outer = fields.properties(beside, path);
  const inner = within === null ? null : fields.properties(within, `${under}metadata`);
  if (inner === null) return outer;
  for (const _ in outer) return { ...outer, ...inner };
  return inner;
}

/** Automatic properties cannot be set. */
function profileProperties(fields: Fields, beside: JsonObject, metadata: unknown, path: string): Properties {
  for (const name of automaticProperties) delete beside[name];
  return besideAndWithin(fields, beside, metadata, path);
}
