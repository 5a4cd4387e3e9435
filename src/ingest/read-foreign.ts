import { type Entity, entities, kindOfEntity, PAGE_VIEW_NAME } from '../domain/entity.ts';
import { inputError } from '../domain/errors.ts';
import type { ShownLink } from '../domain/identities.ts';
import { type Instant, readEpoch, readInstant } from '../domain/instant.ts';
import { CLOCK_TOLERANCE_MS } from '../domain/limits.ts';
import type { Preset } from '../domain/load.ts';
import { isObject, type JsonObject, numberText, withoutTexts } from '../formats/json-text.ts';
import { splitUrl } from '../mapping/event-rules.ts';
import { madeId, type PresetProfile, readLinks } from '../mapping/presets/record.ts';
import { fillingTime, presetTexts, readPreset } from '../mapping/presets.ts';
import { Fields, openRecord, readCompany, readEvent, readMoment, readUser } from './read-record.ts';
import type { ItemRecord, ReadRecord } from './records.ts';

/** The request that brings records of another product. */
export interface ForeignContext {
  readonly environmentId: number;
  /** Milliseconds since 1970, by our clock. */
  readonly receivedAt: number;
  /** The time of sending by the sender's clock, if the request says it. */
  readonly sentAt: unknown;
  /** The key of the body if it is that of the request: records with another belong elsewhere. */
  readonly token?: string | null;
  /** Its key stands in a page, where anybody can read it. */
  readonly isOfPage: boolean;
}

/**
 * Reads a record that another product's SDK sends, by the preset that reads the product's files.
 * @throws InputError `unknown_event_type`, and as the readers of our own records do.
 */
export function readForeign(preset: Preset, fields: Fields, context: ForeignContext): readonly ReadRecord[] {
  const { offset, ...sent } = fields.object;
  if (preset === 'posthog' && typeof offset === 'number' && sent['timestamp'] === undefined) {
    // A page counts the milliseconds that an event has waited, since its clock may be wrong.
    const waitedMs = Math.min(Math.abs(offset), context.receivedAt);
    fields.object = { ...sent, timestamp: new Date(context.receivedAt - waitedMs).toISOString() };
  }
  const { value: given, marked } = withoutTexts({ value: fields.object, marked: fields.marked }, presetTexts);
  const ours = readPreset[preset](given as JsonObject, null);
  if (ours === null) {
    const message =
      'This record is stored as nothing: increments, removals and links of what cannot be an id are not taken';
    throw inputError('unknown_event_type', message, `preset ${preset}`);
  }
  const skewMs = clockSkew(context.sentAt ?? fields.object['sentAt'], context.receivedAt);
  const read = ({ record, fillsIn }: PresetProfile): ItemRecord => {
    const { event_type: kind, ...value } = record;
    value['inserted_at'] = onOurClock(value['inserted_at'], skewMs);
    const own = new Fields({ value, marked }, fields.bytes, 'The record');
    const item = readOurs(kind, own, context.environmentId);
    if (!fillsIn || item.entity === 'events') return item;
    const at = fillingTime(item.record.at ?? { ms: context.receivedAt, text: '' });
    return { ...item, record: { ...item.record, at } } as ItemRecord;
  };
  // The rows beside come first, as in files.
  const own = read({ record: ours.record, fillsIn: false });
  const links = readLinks(ours.links).filter((link) => isAllowed(link, context.isOfPage));
  const user =
    ours.user === undefined
      ? []
      : [{ ...read({ record: ours.user, fillsIn: false }), isBeside: true } as ItemRecord];
  const beside = ours.profiles.map((profile) => ({ ...read(profile), isBeside: true }) as ItemRecord);
  return [...beside, ...user, links.length === 0 ? own : { ...own, links }];
}

/** Lets a page link the visitor, by an id that an SDK made: it may know or guess any other. @throws InputError `insufficient_scope` */
function isAllowed(link: ShownLink, isOfPage: boolean): boolean {
  if (!isOfPage) return true;
  if (link.linking === 'observe') return madeId.test(link.alias);
  throw inputError(
    'insufficient_scope',
    'A key of the scope browser cannot join users; send this from a server, with a key of the scope ingest',
    `alias: ${link.alias}`,
  );
}

/** @throws InputError `invalid_field` for a record with the token of another project than the one that the request was let in with. */
function requireToken({ token, $token, properties }: JsonObject, own: string): void {
  const found = $token ?? token ?? (isObject(properties) ? properties['token'] : undefined);
  if (found === undefined || found === null || found === '' || found === own) return;
  const message =
    'The record has another token than the first of the request; send each project its own request';
  throw inputError('invalid_field', message, 'token');
}

/** Returns the reader of a request's records, each of which also has the members that its path says. */
export function foreignReader(preset: Preset, adds: object, context: ForeignContext) {
  return (line: Buffer): readonly ReadRecord[] => {
    const fields = openRecord(line, 'The item');
    Object.assign(fields.object, adds);
    if (context.token != null) requireToken(fields.object, context.token);
    return readForeign(preset, fields, context);
  };
}

function readOurs(kind: unknown, fields: Fields, environmentId: number): ItemRecord {
  const entity = entities.find((each) => kindOfEntity[each] === kind);
  if (entity !== undefined) return datedProfile(entity, fields, environmentId);
  const { url, ...event } = fields.object;
  fields.object = event;
  if (kind !== 'page_view') return { entity: 'events', record: readEvent(fields, environmentId) };
  const page = typeof url === 'string' ? splitUrl(url) : {};
  event['event_name'] ??= PAGE_VIEW_NAME;
  event['metadata'] = { ...page, ...(event['metadata'] as JsonObject) };
  return { entity: 'events', record: { ...readEvent(fields, environmentId), isPageView: true } };
}

const readProfile = { users: readUser, companies: readCompany } as const;

/** Reads a profile that may have a time. Neither that nor the item's id, which is not used, is a property. */
export function datedProfile(entity: Entity, fields: Fields, environmentId: number): ItemRecord {
  const { inserted_at, timestamp, event_id: _, insert_id: __, ...profile } = fields.object;
  fields.object = profile;
  const at = readMoment(fields, inserted_at, timestamp);
  const record = { ...readProfile[entity](fields, environmentId), ...(at !== null && { at }) };
  return { entity, record } as ItemRecord;
}

/** Returns how far the sender's clock is behind ours; 0 if they differ by no more than a request may take. */
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

const foreignTypes: ReadonlySet<unknown> = new Set(['page', 'screen', 'group', 'alias']);

/** Tells a call of Segment from a record of ours, which has `user_id`, and never `userId` without it. */
export function isSegmentCall(type: unknown, record: JsonObject): boolean {
  const { userId, anonymousId, user_id, event_name, metadata } = record;
  if (user_id !== undefined) return false;
  if (foreignTypes.has(type)) return true;
  if (type !== 'identify' && type !== 'track') return false;
  return (userId ?? anonymousId) != null && (event_name ?? metadata) === undefined;
}
