import { inputError } from '../../base/errors.ts';
import { type Instant, readEpoch, readInstant } from '../../base/instant.ts';
import { kindOfEntity, PAGE_VIEW_NAME } from '../../domain/entity.ts';
import type { Preset } from '../../domain/source.ts';
import { isObject, type JsonObject, numberText } from '../../formats/json-text.ts';
import { Fields, openRecord } from '../../ingest/fields.ts';
import { readItem } from '../../ingest/read-batch.ts';
import { readCompany, readEvent, readUser } from '../../ingest/read-record.ts';
import type { ItemRecord } from '../../ingest/records.ts';
import { splitUrl } from '../../load/map/event-checks.ts';
import { readRecords } from './read-records.ts';
import { isReason } from './record.ts';

/** A smaller clock difference is ignored, because it may be only the duration of the request. */
const CLOCK_TOLERANCE_MS = 5_000;

export interface CallContext {
  readonly environmentId: number;
  /** Time of receipt by our clock, in milliseconds since 1970. */
  readonly receivedAt: number;
  /** Time when the request was sent, by the sender's clock. `undefined` if it is not known. */
  readonly sentAt: unknown;
  /** Key in the body of the request. Records that contain a different key are refused. */
  readonly token?: string | null;
}

/** @throws InputError `unknown_event_type`, `unsupported_kind`, and the errors of `readOurs` */
function readCall(product: Preset, fields: Fields, context: CallContext): readonly ItemRecord[] {
  const { offset, ...sent } = fields.object;
  if (product === 'posthog' && typeof offset === 'number' && sent['timestamp'] === undefined) {
    // A browser's clock may be wrong. Therefore, the SDK sends how long ago the event occurred.
    const waitedMs = Math.min(Math.abs(offset), context.receivedAt);
    fields.object = { ...sent, timestamp: new Date(context.receivedAt - waitedMs).toISOString() };
  }
  const skewMs = clockSkew(context.sentAt ?? fields.object['sentAt'], context.receivedAt);
  const parsed = { value: fields.object, marked: fields.marked };
  const { records, marked } = readRecords(product, parsed, { companyFrom: null });
  if (isReason(records)) {
    const code = records.code === 'unsupported_kind' ? 'unsupported_kind' : 'unknown_event_type';
    throw inputError(code, records.message, `product: ${product}`);
  }
  const [record, ...profiles] = records;
  const { event_type: kind, user_id, company_id } = record;
  const isEvent = kind === 'track' || kind === 'page_view';
  const isAlone = isEvent && !profiles.some((each) => each['event_type'] === kindOfEntity.users);
  const hasCompany = company_id !== undefined && company_id !== null;
  // An event with a company moves its user to that company.
  if (isAlone && hasCompany)
    profiles.push({ event_type: kindOfEntity.users, user_id, company_id, metadata: {} });
  const read = ({ event_type: of, ...value }: JsonObject): ItemRecord => {
    value['inserted_at'] = onOurClock(value['inserted_at'], skewMs);
    return readOurs(of, new Fields({ value, marked }, fields.bytes, 'The record'), context.environmentId);
  };
  // Reads the record before its profiles, so that problems of the record are reported first.
  const item = read(record);
  if (isAlone && !hasCompany) Object.assign(item.record, { impliesUser: true });
  const derived = profiles.map(read);
  for (const each of derived) Object.assign(each.record, { isDerived: true });
  return [...derived, item];
}

function readOurs(kind: unknown, fields: Fields, environmentId: number): ItemRecord {
  const { url, inserted_at, ...record } = fields.object;
  fields.object = record;
  if (kind === kindOfEntity.users) return { entity: 'users', record: readUser(fields, environmentId) };
  if (kind === kindOfEntity.companies)
    return { entity: 'companies', record: readCompany(fields, environmentId) };
  record['inserted_at'] = inserted_at;
  if (kind !== 'page_view') return { entity: 'events', record: readEvent(fields, environmentId) };
  const page = typeof url === 'string' ? splitUrl(url) : {};
  record['event_name'] ??= PAGE_VIEW_NAME;
  record['metadata'] = { ...page, ...(record['metadata'] as JsonObject) };
  return { entity: 'events', record: { ...readEvent(fields, environmentId), isPageView: true } };
}

/** `adds`: members that the path of the request implies for every record. */
export function callReader(product: Preset, adds: object, context: CallContext) {
  return (line: Buffer): readonly ItemRecord[] => {
    const fields = openRecord(line, 'The item');
    Object.assign(fields.object, adds);
    if (context.token != null) requireToken(fields.object, context.token);
    return readCall(product, fields, context);
  };
}

/** Reads an item of a batch, which is either a Segment call or a record in sluice's format. */
export function readMixedItem(line: Buffer, context: CallContext): readonly ItemRecord[] {
  const fields = openRecord(line, 'The item');
  const { type, ...record } = fields.object;
  return isSegmentCall(type, record)
    ? readCall('segment', fields, context)
    : readItem(fields, context.environmentId);
}

/** @throws InputError `invalid_field` if the record contains the token of another project */
function requireToken({ token, $token, properties }: JsonObject, key: string): void {
  const named = $token ?? token ?? (isObject(properties) ? properties['token'] : undefined);
  if (named === undefined || named === null || named === '' || named === key) return;
  const message =
    'The record has another token than the first of the request; send each project its own request';
  throw inputError('invalid_field', message, 'token');
}

function clockSkew(sentAt: unknown, receivedAt: number): number {
  const sent = instantOf(sentAt);
  const skewMs = sent === null ? 0 : receivedAt - sent.ms;
  return Math.abs(skewMs) <= CLOCK_TOLERANCE_MS ? 0 : skewMs;
}

function onOurClock(at: unknown, skewMs: number): unknown {
  const instant = skewMs === 0 ? null : instantOf(at);
  return instant === null ? at : new Date(instant.ms + skewMs).toISOString();
}

function instantOf(value: unknown): Instant | null {
  const text = numberText(value) ?? value;
  return typeof text === 'string' ? (readInstant(text) ?? readEpoch(text)) : null;
}

const segmentTypes: ReadonlySet<unknown> = new Set(['page', 'screen', 'group', 'alias']);

/**
 * Returns true for a Segment call. A record in sluice's format has `user_id` instead of `userId`.
 */
export function isSegmentCall(type: unknown, record: JsonObject): boolean {
  const { userId, anonymousId, user_id, event_name, metadata } = record;
  if (user_id !== undefined) return false;
  if (segmentTypes.has(type)) return true;
  if (type !== 'identify' && type !== 'track') return false;
  return (userId ?? anonymousId) != null && (event_name ?? metadata) === undefined;
}
