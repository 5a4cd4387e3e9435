import { type Static, type TSchema, Type } from 'typebox';

/** A schema that the document names: it stands there once, under components, and others refer to it. */
export function component<T extends TSchema>(name: string, schema: T) {
  return {
    schema: { ...schema, $id: name },
    ref: Type.Unsafe<Static<T>>({ $ref: `${name}#` }),
  };
}

/** What is of one type, or null, in the form that tools show best: a list of types. */
export function orNull<T extends TSchema & { readonly type: string }>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] });
}

interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** A body of one media type. `x-examples` is what @fastify/swagger makes the examples of the media type from. */
export function withExamples(schema: TSchema, examples: Readonly<Record<string, Example>>) {
  return { schema: { ...schema, 'x-examples': examples } };
}
