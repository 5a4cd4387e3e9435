import type { FastifySchema } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { refusals } from './error-answers.ts';

export interface LookupText {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
}

/** A lookup that answers a bare array of all there is. */
export function lookupSchema(text: LookupText, item: TSchema) {
  return {
    ...text,
    description: `${text.description} A body of the request is ignored, and so are \`limit\` and cursors; other parameters are refused.`,
    tags: ['lookups'],
    response: {
      200: { description: 'All of them.', content: { 'application/json': { schema: Type.Array(item) } } },
      ...refusals('invalid_field'),
    },
  } satisfies FastifySchema;
}
