import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { System } from '../context.ts';
import { type ErrorCode, InputError } from '../domain/errors.ts';
import { MAX_ID_BYTES } from '../domain/limits.ts';
import type { Fields } from '../ingest/fields.ts';
import { openRecord } from '../ingest/read-record.ts';
import type { Idempotency, IngestEntity } from '../ingest/records.ts';
import type { RecordRouteName, RecordTap, TakenRecord } from '../live/record-tap.ts';
import { callerKeyId, environmentId } from './plugins/auth.ts';
import { bodyBytes } from './plugins/json-body.ts';
import { readIdempotency } from './request-headers.ts';
import { refusals } from './schemas/answers.ts';

/*
 * The bodies of single records are read by hand (`src/ingest/read-record.ts`), and their schemas only document them. Measured with the
 * body of an event, 190 bytes, on Node 20: `readEvent` takes 5 100 ns, 1 100 of which are JSON.parse. The compiled schema takes 86 ns
 * more and replaces nothing of it: a reader must still look at every value, for its bytes, for U+0000 and half surrogate pairs, and for
 * numbers that JavaScript rounds, while it makes the row; and a refusal by the schema costs 7 400 ns.
 */

/** An id: a string, or a number, which becomes one. */
export const idText = (description: string) =>
  Type.Unsafe<string | number>({
    type: ['string', 'number'],
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    description,
  });

export const nullableId = (description: string) =>
  Type.Unsafe<string | number | null>({ ...idText(description), type: ['string', 'number', 'null'] });

/** Of a property. */
export const anyValue = { description: 'Any JSON value; null removes the property.' };

/** What every route of single records answers. */
export function ingestAnswers(...codes: readonly ErrorCode[]): Record<number, object> {
  return {
    202: { type: 'null', description: 'It is committed in the database. The body is empty.' },
    ...refusals(
      'invalid_json',
      'missing_field',
      'invalid_field',
      'invalid_metadata_value',
      ...codes,
      'upload_too_slow',
      'idempotency_conflict',
      'payload_too_large',
      'unsupported_media_type',
    ),
  };
}

/** How the records of one entity are read and committed. */
export interface RecordRoute<T> {
  readonly name: RecordRouteName;
  readonly entity: IngestEntity;
  readonly read: (fields: Fields, environmentId: number) => T;
  readonly commit: (record: T, idempotency: Idempotency | null) => Promise<void>;
}

/**
 * Takes a single record in: 202, without a body, when it is committed. Answers by itself and not by a promise, which would
 * cost each request some microseconds.
 */
export function commitRecord<T>(
  system: Pick<System, 'metrics' | 'records' | 'rates'>,
  route: RecordRoute<T>,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { metrics, records, rates } = system;
  const { entity, read, commit } = route;
  const fail = (error: unknown): void => {
    if (records.isWatched) showRecord(records, route.name, request, error);
    metrics.recordsEnded(entity, error instanceof InputError ? 'refused' : 'failed', 1);
    rates.add(environmentId(request), 'refused', 1);
    reply.send(error);
  };
  let committed: Promise<void>;
  try {
    const body = bodyBytes(request);
    committed = commit(read(openRecord(body), environmentId(request)), readIdempotency(request, body));
  } catch (error) {
    fail(error);
    return;
  }
  committed.then(() => {
    metrics.recordsEnded(entity, 'accepted', 1);
    rates.add(environmentId(request), 'records', 1);
    if (records.isWatched) showRecord(records, route.name, request, null);
    reply.code(202).send();
  }, fail);
}

/** To whoever watches. */
export function showRecord(
  records: RecordTap,
  route: RecordRouteName,
  request: FastifyRequest,
  error: unknown,
): void {
  const ms = performance.now() - request.startedAt;
  const from = { route, requestId: request.id, keyId: callerKeyId(request) };
  records.take(environmentId(request), { ...from, ms, body: bodyBytes(request), refusal: refusalOf(error) });
}

/** Why a record was not taken, whoever's fault it is; null: it was. */
function refusalOf(error: unknown): TakenRecord['refusal'] {
  if (error === null) return null;
  if (error instanceof InputError) return { code: error.problems[0].code, message: error.message };
  return { code: 'unavailable', message: error instanceof Error ? error.message : String(error) };
}
