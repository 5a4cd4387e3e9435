import { STATUS_CODES } from 'node:http';
import { type TSchema, Type } from 'typebox';
import { type ErrorCode, errorCodes } from '../base/errors.ts';
import { errorRecord, withExamples } from './schema.ts';

const header = (type: 'string' | 'integer', description: string, rule: object = {}, required = true) => ({
  required,
  description,
  schema: { type, ...(type === 'integer' && { minimum: 0 }), ...rule },
});

export const answerHeaders = {
  'x-request-id': header(
    'string',
    'ID of the request in the log: the one that was sent, if it is well formed, else a new one.',
    { pattern: '^[\\x21-\\x7e]{1,128}$' },
  ),
  'WWW-Authenticate': header('string', 'The scheme that is expected in `Authorization`.', { const: 'Token' }),
  'Retry-After': header('integer', 'Seconds after which the same call may succeed.'),
  'RateLimit-Limit': header(
    'integer',
    'Number of requests that the key may make in a window of time. On every answer, if there is a limit.',
    {},
    false,
  ),
  'RateLimit-Remaining': header('integer', 'Number of requests left in the window.', {}, false),
  'RateLimit-Reset': header('integer', 'Seconds until the window ends.', {}, false),
  'X-Total-Count': header('integer', 'Number of matching items, on all pages.'),
  Link: header(
    'string',
    'The next page, as `<url>; rel="next"`. Absent on the last page.',
    { pattern: '^<[^>]+>; rel="next"$' },
    false,
  ),
  'Content-Disposition': header('string', 'Name of the file, if the answer is a file.', {}, false),
  ETag: header('string', 'Identifies the content, in quotes. For a file it is the SHA-256.', {
    pattern: '^"[0-9a-f]{64}"$',
  }),
  'Accept-Ranges': header('string', 'Parts of the file can be requested in bytes.', { const: 'bytes' }),
  'Content-Range': header('string', 'The part that is sent, and the size of the file.', {
    pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$',
  }),
  'Cache-Control': header('string', 'Who may keep the answer, and for how long.'),
  Vary: header('string', 'The request headers that the answer depends on.'),
  'Sluice-Dropped-Properties': header(
    'integer',
    'Number of properties with an empty name, which were left out. Absent if there are none.',
    {},
    false,
  ),
  Location: header('string', 'URL of the created resource.'),
} as const;

export type AnswerHeader = keyof typeof answerHeaders;

export function named(...names: readonly AnswerHeader[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, {}]));
}

const meanings: Readonly<Record<number, string>> = {
  400: 'The request is wrong. Every problem found is named.',
  401: 'The key is missing or not valid.',
  403: 'The key does not have the required scope.',
  404: 'The resource does not exist, or belongs to another environment.',
  405: 'The method is not allowed here.',
  408: 'The body stalled or came too slowly.',
  409: 'The request conflicts with the current state.',
  410: 'The resource has expired.',
  413: 'The body is too large.',
  415: 'The media type or encoding of the body is not supported.',
  416: 'The file has no such part.',
  429: 'Too many requests.',
  431: 'The headers are too large.',
  500: 'The service failed. Its log has the error under the request ID.',
  503: 'The service is unavailable at the moment. The same call may succeed later.',
};

const headers: Readonly<Record<number, readonly AnswerHeader[]>> = {
  401: ['WWW-Authenticate'],
  416: ['Content-Range'],
  429: ['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  503: ['Retry-After'],
};

/**
 * Key in the schema of a response. The value is the name of the response as a component. Refusals
 * with the same single error code share one component.
 */
export const responseName = Symbol('responseName');

export function errorAnswers(...codes: readonly ErrorCode[]): Record<number, object> {
  const statuses = [...new Set(codes.map((code) => errorCodes[code]))].sort((a, b) => a - b);
  const of = (status: number) => codes.filter((code) => errorCodes[code] === status);
  return Object.fromEntries(statuses.map((status) => [status, errorAnswer(status, of(status))]));
}

/**
 * Schemas of error responses, by their error codes. Building them again for each route would take a
 * third of the start-up time.
 */
const builtAnswers = new Map<string, object>();

function errorAnswer(status: number, codes: readonly ErrorCode[]): object {
  const key = codes.join();
  const answer = builtAnswers.get(key) ?? buildErrorAnswer(status, codes);
  builtAnswers.set(key, answer);
  return answer;
}

function buildErrorAnswer(status: number, codes: readonly ErrorCode[]): object {
  const list = codes.map((code) => `\`${code}\``).join(', ');
  const [code = 'internal_error', ...others] = codes;
  const { [status]: message = 'Refused.' } = meanings;
  const error = { error: STATUS_CODES[status], error_code: code, message, details: '' };
  return {
    [responseName]:
      others.length === 0
        ? code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())
        : undefined,
    description: `${message} error_code: ${list}.`,
    headers: named(...(headers[status] ?? [])),
    content: {
      'application/json': withExamples(withCodes(codes), {
        [code]: { summary: code, value: { errors: [error] } },
      }),
    },
  };
}

const textFields = { error: { type: 'string' }, message: { type: 'string' }, details: { type: 'string' } };

/**
 * Schema that allows only these error codes, so that tests detect codes that a route does not
 * declare.
 */
function withCodes(codes: readonly ErrorCode[]): TSchema {
  const open = { type: 'object', additionalProperties: true };
  const properties = { ...textFields, error_code: { type: 'string', enum: [...codes] } };
  const error = { ...open, required: Object.keys(properties), properties };
  const narrowing = { ...open, properties: { errors: { type: 'array', items: error } } };
  return Type.Unsafe({ allOf: [errorRecord.ref, narrowing] });
}

interface Described {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
  readonly anyOf?: readonly Described[];
  readonly allOf?: readonly Described[];
}

const texts: Readonly<Record<string, string>> = {
  date: '2026-11-20',
  'date-time': '2026-11-20T11:58:59.562Z',
  uri: 'https://sluice.example.com/',
  uuid: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
};

/** Tests validate all examples. */
export function exampleOf(schema: Described, schemas: Readonly<Record<string, object>>): unknown {
  const { $ref, examples, anyOf, allOf, properties = {}, items, minimum = 0 } = schema;
  const of = (part: Described) => exampleOf(part, schemas);
  if ($ref !== undefined) return of((schemas[$ref.split('/').at(-1) ?? ''] ?? {}) as Described);
  if (examples !== undefined) return examples[0];
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [first] = anyOf ?? allOf ?? [];
  if (first !== undefined) return of(first);
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, of(part)]));
    case 'array':
      return items === undefined || of(items) === '' ? [] : [of(items)];
    case 'integer':
    case 'number':
      return minimum;
    case 'boolean':
      return false;
    case 'string':
      return texts[schema.format ?? ''] ?? '';
    default:
      return null;
  }
}
