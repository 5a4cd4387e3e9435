import { type Instant, readInstant } from '../domain/instant.ts';
import { EARLIEST_EVENT, MAX_EVENT_AHEAD_MS, MAX_EVENT_NAME_BYTES } from '../domain/limits.ts';
import type { Fields } from './fields.ts';
import { besideAndWithin } from './properties.ts';
import { readBody } from './read-body.ts';
import type { EventRecord } from './records.ts';

/** The body of /v1/track. @throws InputError with every problem found. */
export function readEvent(body: Buffer, environmentId: number): EventRecord {
  const fields = readBody(body);
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
  const insertedAt = readTime(
    fields,
    either(fields, 'inserted_at', inserted_at, 'timestamp', timestamp),
    inserted_at == null ? 'timestamp' : 'inserted_at',
  );
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
    bytes: body.length,
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
