import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Static, type TNumberOptions as TIntegerOptions, type TSchema, Type } from 'typebox';
import { inputError } from '../base/errors.ts';
import { readInstant, readRangeEnd } from '../base/instant.ts';
import { isUuid, optional, ruled, textProblem, worded } from '../base/validation.ts';
import { foreignStatuses, loadStatuses } from '../domain/load.ts';
import type { Idempotency } from '../tasks/idempotency.ts';
import { exampleJobId } from './job.ts';
import { uuid } from './schema.ts';

export function checked<T extends TSchema>(
  schema: T,
  isRight: (value: Static<T>) => boolean,
  message: string,
) {
  return worded(
    ruled(schema, (value) => (isRight(value) ? null : message)),
    message,
  );
}

export function optionalChoice<const T extends string>(
  choices: readonly T[],
  message: string,
  description: string,
  standard?: NoInfer<T>,
) {
  const options = {
    type: 'string',
    ...(standard !== undefined && { default: standard }),
    description,
  } as const;
  return optional(Type.Enum([...choices], options), message);
}

export const optionalNumber = (range: TIntegerOptions, message: string, description: string) =>
  optional(Type.Integer({ ...range, description }), message);

/** If the text is not a UUID, the response is 404. */
export function idParameter<const Name extends string>(name: Name, what: string, example = exampleJobId) {
  const message = `There is no such ${what}`;
  const text = uuid(`ID of the ${what}.`, example);
  return pathParameter(
    name,
    ruled(text, (id) => (isUuid(id) ? null : message)),
    message,
  );
}

/** If the text is refused, the response is 404, because nothing can have such a name. */
export function pathParameter<const Name extends string, T extends TSchema>(
  name: Name,
  schema: T,
  message: string,
) {
  const wording = (value: unknown) => {
    const details = `${name}: ${String(value).slice(0, 100).toWellFormed()}`;
    return { code: 'not_found', message, details } as const;
  };
  const schemaWithWording = worded(schema, { wording });
  return Type.Object({ [name]: schemaWithWording } as Record<Name, T>);
}

export const jobParameters = idParameter('job_id', 'job');

export function severalOf(name: string, choices: readonly string[], description: string) {
  const one = `(?:${choices.join('|')})`;
  const text = Type.String({
    pattern: `^${one}(?:,${one})*$`,
    description: `${description} One of \`${choices.join('`, `')}\`, or several separated by commas.`,
    examples: [choices.slice(0, 2).join(',')],
  });
  return optional(text, `${name} is one of ${choices.join(', ')}, or several of them with commas between`);
}

export function readSeveral(text: string | undefined): readonly string[] | undefined {
  return text?.split(',');
}

export const statusParameter = (description: string) =>
  severalOf('status', [...loadStatuses, ...foreignStatuses], description);

export function textParameter(name: string, maxBytes: number, description: string, ...examples: string[]) {
  const problem = (text: unknown) => `${name} ${textProblem(String(text), maxBytes)}`;
  const text = ruled(Type.String({ description, ...(examples.length > 0 && { examples }) }), (value) =>
    textProblem(value, maxBytes) === null ? null : problem(value),
  );
  return optional(text, { wording: (value) => ({ message: problem(value) }) });
}

export function instantParameter(description: string, message: string, example: string) {
  const text = Type.String({ description, examples: [example] });
  return checked(text, (value) => readInstant(value) !== null, message);
}

export function dateParameter(
  message: string,
  description: string,
  example: string,
  isDate: (text: string) => boolean,
) {
  const text = Type.String({ description, examples: [example] });
  const date = ruled(text, (value) => (isDate(value) ? null : message));
  return optional(date, { wording: { code: 'invalid_date', message } });
}

export const rangeEnd = (name: 'from' | 'to', description: string) =>
  dateParameter(
    `${name} must be a day such as 2026-11-20, or an ISO 8601 instant such as 2026-11-20T12:00:00Z`,
    description,
    '2026-11-20',
    (text) => readRangeEnd(text) !== null,
  );

export function dateOf(text: string | undefined): Date | null {
  const instant = text === undefined ? null : readInstant(text);
  return instant === null ? null : new Date(instant.ms);
}

export const flagParameter = (name: string, description: string, options: object = {}) =>
  optional(Type.Boolean({ ...options, description }), `${name} must be true or false`);

function idempotencyKey(what: string) {
  const key = Type.String({
    pattern: '^[\\x20-\\x7e]{1,255}$',
    description: `Makes the request safe to repeat. For 24 hours, the same key with the same ${what} returns the first answer again and changes nothing; with another ${what} it is refused with \`idempotency_conflict\`.`,
    examples: ['2026-11-20/nightly'],
  });
  return optional(key, {
    wording: {
      message: 'An Idempotency-Key has 1 to 255 printable ASCII characters',
      details: 'Idempotency-Key',
    },
  });
}

export const actionHeaders = { 'Idempotency-Key': idempotencyKey('request') };

export const jobAction = { access: 'import', params: jobParameters, headers: actionHeaders } as const;

export const conditionHeaders = {
  'If-None-Match': Type.Optional(
    Type.String({
      description:
        'ETag of the version that the caller has. If it is still current, the answer is 304 without a body.',
    }),
  ),
};

/** The code that reads the body checks the encoding. */
export const bodyHeaders = {
  'Idempotency-Key': idempotencyKey('body'),
  'Content-Encoding': Type.Optional(
    Type.Enum(['gzip', 'x-gzip', 'identity'], { type: 'string', description: 'Encoding of the body.' }),
  ),
};

const jsonTypes = /^(?:|(?:application|text)\/(?:x-)?json|[\w.-]+\/[\w.+-]+\+json)$/;
/**
 * Media types sent by default: by `curl -d`, by `fetch` with a string, and by pages that send while
 * they close.
 */
const defaultTypes: ReadonlySet<string> = new Set([
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'text/plain',
]);

export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

export function meansJson(mediaType: string): boolean {
  return jsonTypes.test(mediaType);
}

/** A type sent by default says nothing about the body. */
export function isDefaultType(mediaType: string): boolean {
  return defaultTypes.has(mediaType);
}

export function readEncoding(header: string | undefined): boolean {
  const encoding = header?.trim().toLowerCase() ?? '';
  if (encoding === 'gzip' || encoding === 'x-gzip') return true;
  if (encoding === '' || encoding === 'identity') return false;
  throw inputError(
    'unsupported_media_type',
    'Send the body as it is, or gzip',
    `Content-Encoding: ${encoding}`,
  );
}

export function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  return (headers['idempotency-key'] as string | undefined) ?? null;
}

/** The digest covers the route and the body. */
export function readIdempotency(request: FastifyRequest, body: Buffer): Idempotency | null {
  const key = idempotencyKeyOf(request);
  if (key === null) return null;
  const digest = createHash('sha256').update(`${request.routeOptions.url}\n`).update(body).digest();
  return { key, digest };
}

export function namesTag(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
