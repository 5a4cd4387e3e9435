import type { TSchema } from 'typebox';

export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** A body of one media type. `x-examples` is what @fastify/swagger makes the examples of the media type from. */
export function withExamples(schema: TSchema, examples: Readonly<Record<string, Example>>) {
  return { schema: { ...schema, 'x-examples': examples } };
}
