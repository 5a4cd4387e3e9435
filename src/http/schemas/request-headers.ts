import { Type } from 'typebox';

function idempotencyKey(what: string) {
  return Type.Optional(
    Type.String({
      pattern: '^[\\x20-\\x7e]{1,255}$',
      description: `Makes the request safe to repeat: for 24 hours the same key with the same ${what} gives the first answer again and changes nothing; with another ${what} it is refused with \`idempotency_conflict\`.`,
      examples: ['2026-11-20/nightly'],
    }),
  );
}

/** Headers of requests that do something to a job. */
export const actionHeaders = { 'Idempotency-Key': idempotencyKey('request') };

/** Headers of requests that bring a body. */
export const bodyHeaders = {
  'Idempotency-Key': idempotencyKey('body'),
  'Content-Encoding': Type.Optional(
    Type.Enum(['gzip', 'x-gzip', 'identity'], { type: 'string', description: 'How the body is packed.' }),
  ),
};
