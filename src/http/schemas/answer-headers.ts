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
  'Accept-Ranges': { required: true, schema: { type: 'string', const: 'bytes' } },
  'Content-Range': {
    required: true,
    description: 'The part that is answered, and of how many bytes.',
    schema: { type: 'string', pattern: '^bytes (\\d+-\\d+|\\*)/\\d+$' },
  },
  'Cache-Control': { required: true, schema: { type: 'string' } },
  Vary: { required: true, schema: { type: 'string' } },
} as const;

export type AnswerHeader = keyof typeof answerHeaders;

/** What the schema of an answer says of its headers: their names. */
export function named(...names: readonly AnswerHeader[]): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, {}]));
}
