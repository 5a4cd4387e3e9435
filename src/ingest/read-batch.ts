import { setImmediate as turn } from 'node:timers/promises';
import { type ErrorCode, InputError, inputError } from '../base/errors.ts';
import { MAX_RECORD_BYTES, READ_BYTES } from '../base/limits.ts';
import type { Entity } from '../domain/entity.ts';
import { type ArrayEnvelope, arrayToNdjson } from '../formats/json-document.ts';
import type { Fields } from './fields.ts';
import { readCompany, readEvent, readMoment, readUser } from './read-record.ts';
import type { BatchItem, ItemRecord } from './records.ts';

export const MAX_BATCH_ITEMS = 10_000;
/** Number of items after which other requests can run. */
const BATCH_ITEMS_AT_A_TIME = 250;

const itemTypes = ['identify', 'track', 'company'] as const;

export interface Rejection {
  readonly index: number;
  readonly error_code: ErrorCode;
  readonly message: string;
}

export interface ReadBatch {
  readonly items: readonly BatchItem[];
  readonly rejected: readonly Rejection[];
  /** True to store all items or none. */
  readonly isWhole?: boolean;
}

/**
 * The form of a batch: an array `[…]`, an object such as `{"batch":[…]}`, one item per line, or a
 * single record.
 */
export type BatchFormat = ArrayEnvelope | 'ndjson' | 'record';

/** Reads an item of a batch. @throws InputError if the item is refused */
export type ReadItem = (line: Buffer) => readonly ItemRecord[];

const LF = 10;

/**
 * Parses the items one by one. This is slower than parsing the whole body (2.7 instead of 1.5 µs
 * for 170 bytes). But only items with a number that must keep its digits need the slow parser, and
 * other requests can run between items.
 * @throws InputError if the body is not a batch or is too long
 */
export async function readBatch(body: Buffer, format: BatchFormat, readItem: ReadItem): Promise<ReadBatch> {
  if (body.length === 0) throw inputError('invalid_json', 'The request has no body');
  const isWhole = format === 'ndjson' || format === 'record';
  const text = isWhole ? body : await elementsOf(body, format);
  const items: BatchItem[] = [];
  const rejected: Rejection[] = [];
  let index = 0;
  for (const line of format === 'record' ? [body] : linesOf(text)) {
    if (index === MAX_BATCH_ITEMS) {
      throw inputError('too_many_records', `A batch may have ${MAX_BATCH_ITEMS} items`, 'the request body');
    }
    try {
      if (line.length > MAX_RECORD_BYTES) {
        throw inputError('payload_too_large', `An item may have ${MAX_RECORD_BYTES} bytes`);
      }
      for (const record of readItem(line)) items.push({ index, ...record });
    } catch (error) {
      rejected.push(rejection(index, error));
    }
    index++;
    if (index % BATCH_ITEMS_AT_A_TIME === 0) await turn();
  }
  return { items, rejected };
}

/** Converts the error of an item to a rejection. @throws `error` if it is not an InputError */
export function rejection(index: number, error: unknown): Rejection {
  if (!(error instanceof InputError)) throw error;
  const more = error.problems.length - 1;
  const others = more === 0 ? '' : ` (and ${more} more ${more === 1 ? 'problem' : 'problems'})`;
  return { index, error_code: error.problems[0].code, message: error.message + others };
}

async function elementsOf(body: Buffer, array: ArrayEnvelope): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of arrayToNdjson(piecesOf(body), array)) parts.push(part);
  return Buffer.concat(parts);
}

async function* piecesOf(body: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < body.length; at += READ_BYTES) {
    if (at > 0) await turn();
    yield body.subarray(at, at + READ_BYTES);
  }
}

function* linesOf(text: Buffer): Generator<Buffer> {
  for (let start = 0; start < text.length; ) {
    const lineFeed = text.indexOf(LF, start);
    const end = lineFeed === -1 ? text.length : lineFeed;
    if (!isBlank(text, start, end)) yield text.subarray(start, end);
    start = end + 1;
  }
}

function isBlank(text: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((text[at] as number) > 32) return false;
  return true;
}

export function readItem(fields: Fields, environmentId: number): readonly ItemRecord[] {
  const { type, ...record } = fields.object;
  fields.object = record;
  if (type === 'track') return [{ entity: 'events', record: readEvent(fields, environmentId) }];
  if (type === 'identify') return [profileItem('users', fields, environmentId)];
  if (type === 'company') return [profileItem('companies', fields, environmentId)];
  const isMissing = type === undefined || type === null;
  throw inputError(
    isMissing ? 'missing_field' : 'invalid_field',
    isMissing ? 'type is missing' : `type must be one of ${itemTypes.join(', ')}`,
    'type',
  );
}

const readProfile = { users: readUser, companies: readCompany } as const;

/**
 * Reads an item that is a profile. Its time and its id do not become properties, but the time is
 * checked.
 */
function profileItem(entity: Entity, fields: Fields, environmentId: number): ItemRecord {
  const { inserted_at, timestamp, event_id: _, insert_id: __, ...profile } = fields.object;
  fields.object = profile;
  readMoment(fields, inserted_at, timestamp);
  return { entity, record: readProfile[entity](fields, environmentId) } as ItemRecord;
}
