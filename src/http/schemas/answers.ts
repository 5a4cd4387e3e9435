import { type TSchema, Type } from 'typebox';
import { errorRecord } from '../../api/error.ts';
import { withExamples } from '../../api/schema.ts';
import { type ErrorCode, errorCodes } from '../../domain/errors.ts';
import { worded } from '../../validation.ts';
import { errorExample } from './example.ts';

/** A parameter of lists: one of the choices, or several with commas between. */
export function severalOf(name: string, choices: readonly string[], description: string) {
  const one = `(?:${choices.join('|')})`;
  const text = Type.String({
    pattern: `^${one}(?:,${one})*$`,
    description: `${description} Of \`${choices.join('`, `')}\`; several with commas between.`,
    examples: [choices.slice(0, 2).join(',')],
  });
  return Type.Optional(
    worded(text, `${name} is one of ${choices.join(', ')}, or several of them with commas between`),
  );
}

/** What `severalOf` let through. */
export function readSeveral(text: string | undefined): readonly string[] | undefined {
  return text?.split(',');
}

/** Headers of answers, under components of the document; the schemas of routes name them. */
export const answerHeaders = {
  'x-request-id': {
    required: true,
    description:
      'The id under which the log knows the request: the one it was sent with, if sane, else a new one.',
    schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,128}$' },
  },
  'WWW-Authenticate': {
    required: true,
    description: 'The scheme that is expected in `Authorization`.',
    schema: { type: 'string', const: 'Token' },
  },
  'Retry-After': {
    required: true,
    description: 'Seconds after which the same call may work.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Limit': {
    required: false,
    description:
      'Requests that the key may make in a window of time. On every answer, where there is a limit.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Remaining': {
    required: false,
    description: 'Requests that are left of them.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Reset': {
    required: false,
    description: 'Seconds until the window ends.',
    schema: { type: 'integer', minimum: 0 },
  },
  'X-Total-Count': {
    required: true,
    description: 'How many match, on all pages.',
    schema: { type: 'integer', minimum: 0 },
  },
  Link: {
    required: false,
    description: 'The next page, as `<url>; rel="next"`; absent on the last.',
    schema: { type: 'string', pattern: '^<[^>]+>; rel="next"$' },
  },
  'Content-Disposition': {
    required: false,
    description: 'A name for the file, where the answer is one.',
    schema: { type: 'string' },
  },
  ETag: {
    required: true,
    description: 'Stands for the content, in quotes; of a file it is its SHA-256.',
    schema: { type: 'string', pattern: '^"[0-9a-f]{64}"$' },
  },
  'Accept-Ranges': {
    required: true,
    description: 'Parts of the file can be asked for, in bytes.',
    schema: { type: 'string', const: 'bytes' },
  },
  'Content-Range': {
    required: true,
    description: 'The part that is answered, and of how many bytes.',
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
  },
  'Cache-Control': {
    required: true,
    description: 'Who may keep the answer, and how long.',
    schema: { type: 'string' },
  },
  Vary: {
    required: true,
    description: 'The headers of the request that the answer depends on.',
    schema: { type: 'string' },
  },
  Location: {
    required: true,
    description: 'The address of what was created.',
    schema: { type: 'string' },
  },
  'Tus-Resumable': {
    required: true,
    description: 'The version of the tus protocol.',
    schema: { type: 'string', const: '1.0.0' },
  },
  'Tus-Version': {
    required: true,
    description: 'The versions of the tus protocol that are spoken here.',
    schema: { type: 'string', const: '1.0.0' },
  },
  'Upload-Offset': {
    required: true,
    description: 'Bytes that have come: where the next request begins.',
    schema: { type: 'integer', minimum: 0 },
  },
  'Upload-Length': {
    required: true,
    description: 'Bytes of the whole file.',
    schema: { type: 'integer', minimum: 1 },
  },
  'Upload-Expires': {
    required: true,
    description: 'Until when it is kept, as HTTP writes dates.',
    schema: { type: 'string', pattern: ' GMT$' },
  },
} as const;

type AnswerHeader = keyof typeof answerHeaders;

/** What the schema of an answer says of its headers: their names. */
export function named(...names: readonly AnswerHeader[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, {}]));
}

const meanings: Readonly<Record<number, string>> = {
  400: 'The request is wrong; every problem found is named.',
  401: 'There is no key, or not a valid one.',
  403: 'The key does not have the scope that this needs.',
  404: 'There is no such thing, or it belongs to another environment.',
  408: 'The body stalled, or came too slowly.',
  409: 'As things stand this cannot be done.',
  410: 'It has expired.',
  412: 'The version of the protocol is not spoken here.',
  413: 'The body is too large.',
  415: 'The media type or the encoding of the body is not taken here.',
  416: 'The file has no such part.',
  429: 'Too many requests.',
  500: 'The service failed. Its log has the error under the request id.',
  503: 'The service cannot do this at the moment; the same call may work later.',
};

const headers: Readonly<Record<number, readonly AnswerHeader[]>> = {
  401: ['WWW-Authenticate'],
  412: ['Tus-Version'],
  416: ['Content-Range'],
  429: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  503: ['Retry-After'],
};

/** Refusals with one code that many routes have: in the document each stands once, under components, by this name. */
const sharedNames: Partial<Record<ErrorCode, string>> = {
  idempotency_conflict: 'IdempotencyConflict',
  insufficient_scope: 'InsufficientScope',
  internal_error: 'InternalError',
  invalid_api_key: 'InvalidApiKey',
  invalid_field: 'InvalidField',
  payload_too_large: 'PayloadTooLarge',
  rate_limited: 'RateLimited',
  unavailable: 'Unavailable',
  unsupported_media_type: 'UnsupportedMediaType',
  upload_too_slow: 'UploadTooSlow',
};

/** Of an answer: its name among the components of the document, where it has one. */
export const responseName = Symbol('responseName');

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
  const [first, ...others] = codes;
  return {
    [responseName]: first !== undefined && others.length === 0 ? sharedNames[first] : undefined,
    description: `${meanings[status] ?? 'Refused.'} error_code: ${list}.`,
    headers: named(...(headers[status] ?? [])),
    content: { 'application/json': withExamples(withCodes(codes), errorExample(first)) },
  };
}

/** The error record, narrowed: a code that a route does not own up to fails its tests. */
function withCodes(codes: readonly ErrorCode[]): TSchema {
  const open = { type: 'object', additionalProperties: true };
  const error = { ...open, properties: { error_code: { type: 'string', enum: [...codes] } } };
  const narrowing = { ...open, properties: { errors: { type: 'array', items: error } } };
  return Type.Unsafe({ allOf: [errorRecord.ref, narrowing] });
}

/** A job id that is no proper part of a URL is `invalid_field`; one that is absurdly long is no address at all. */
export function jobRefusals(...codes: readonly ErrorCode[]): Record<number, object> {
  return refusals('invalid_field', ...codes, 'not_found', 'route_not_found');
}
