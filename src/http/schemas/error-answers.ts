import { type TSchema, Type } from 'typebox';
import { type ErrorCode, errorCodes } from '../../domain/errors.ts';
import { type AnswerHeader, named } from './answer-headers.ts';
import { errorRecord } from './error-record.ts';

const meanings: Readonly<Record<number, string>> = {
  400: 'The request is wrong; every problem found is named.',
  401: 'There is no key, or not a valid one.',
  403: 'The key does not have the scope that this needs.',
  404: 'There is no such thing, or it belongs to another environment.',
  408: 'The body stalled, or came too slowly.',
  409: 'As things stand this cannot be done.',
  410: 'It has expired.',
  413: 'The body is too large.',
  415: 'The media type or the encoding of the body is not taken here.',
  416: 'The file has no such part.',
  429: 'Too many requests.',
  500: 'The service failed. Its log has the error under the request id.',
  503: 'The service cannot do this at the moment; the same call may work later.',
};

const headers: Readonly<Record<number, readonly AnswerHeader[]>> = {
  401: ['WWW-Authenticate'],
  416: ['Content-Range'],
  429: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  503: ['Retry-After'],
};

/** The refusals of a route, by status, from the codes it can give. */
export function errorAnswers(...codes: readonly ErrorCode[]): Record<number, object> {
  const statuses = [...new Set(codes.map((code) => errorCodes[code]))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      errorAnswer(
        status,
        codes.filter((code) => errorCodes[code] === status),
      ),
    ]),
  );
}

/** As `errorAnswers`, and those of every route that wants a key. */
export function refusals(...codes: readonly ErrorCode[]): Record<number, object> {
  return errorAnswers(
    ...codes,
    'invalid_api_key',
    'insufficient_scope',
    'rate_limited',
    'internal_error',
    'unavailable',
  );
}

function errorAnswer(status: number, codes: readonly ErrorCode[]): object {
  const list = codes.map((code) => `\`${code}\``).join(', ');
  return {
    description: `${meanings[status] ?? 'Refused.'} error_code: ${list}.`,
    headers: named(...(headers[status] ?? [])),
    content: { 'application/json': { schema: withCodes(codes) } },
  };
}

/** The error record, narrowed: a code that a route does not own up to fails its tests. */
function withCodes(codes: readonly ErrorCode[]): TSchema {
  return Type.Unsafe({ allOf: [errorRecord.ref, narrowing(codes)] });
}

function narrowing(codes: readonly string[]) {
  return { properties: { errors: { items: { properties: { error_code: { enum: [...codes] } } } } } };
}

/** The codes that an answer of the document is narrowed to; none if it is no refusal. */
export function codesIn(answer: { readonly content?: object }): readonly string[] {
  const content = answer.content as Record<string, { schema: { allOf?: readonly unknown[] } }> | undefined;
  const narrowed = content?.['application/json']?.schema.allOf?.[1] as
    | ReturnType<typeof narrowing>
    | undefined;
  return narrowed?.properties.errors.items.properties.error_code.enum ?? [];
}
