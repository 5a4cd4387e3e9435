/*
 * The records that callers see, each declared once: what a request brings, what an answer holds, and an example. The
 * schemas of the routes, the OpenAPI document and, by `import type`, the console's types derive from them. Begin with `job.ts`.
 */
import { type Static, type TObjectOptions, type TProperties, type TSchema, Type } from 'typebox';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../domain/limits.ts';

const declared: TSchema[] = [];

/** The records that the document names. A file of `src/api` declares its own when it is first imported. */
export const components: readonly TSchema[] = declared;

/** Declares a record that the document names: it stands there once, under components, and other schemas refer to it by `ref`. */
export function component<T extends TSchema>(name: string, schema: T) {
  const named = { ...schema, $id: name };
  declared.push(named);
  return { schema: named, ref: Type.Unsafe<Static<T>>({ $ref: `${name}#` }) };
}

export const closed = { additionalProperties: false } as const;

/** An object with members of any name, whose values have the type `V`. */
export function record<V = unknown>(options: TObjectOptions) {
  return Type.Unsafe<Readonly<Record<string, V>>>(Type.Object({}, options));
}

export const count = (description: string) => Type.Integer({ minimum: 0, description });

/** What is of one type, or null, in the form that tools show best: a list of types. */
export function orNull<T extends TSchema & { readonly type: string }>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] });
}

/** An example of a body, as the document has it. */
export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** A body of one media type. `x-examples` is what @fastify/swagger makes the examples of the media type from. */
export function withExamples(schema: TSchema, examples: Readonly<Record<string, Example>>) {
  return { schema: { ...schema, 'x-examples': examples } };
}

/** The envelope of a list. `more`: what its metadata has besides. */
export function envelope<T extends TSchema, M extends TProperties = Record<never, TSchema>>(
  name: string,
  item: T,
  description: string,
  more = {} as M,
) {
  const after = orNull(
    Type.String({
      description:
        'The `cursor` of the next page; null on the last. A page may be short, or empty, and have a next one.',
      examples: ['MTAw'],
    }),
  );
  const before = Type.Null({ description: 'Always null: lists are read forwards.' });
  const metadata = Type.Object(
    {
      cursor: Type.Object({ after, before }, { ...closed, description: 'What leads to the next page.' }),
      limit: Type.Integer({
        minimum: 1,
        maximum: MAX_PAGE_SIZE,
        description: 'Items on a page, at most.',
        examples: [DEFAULT_PAGE_SIZE],
      }),
      ...more,
    },
    { ...closed, description: 'Of the page.' },
  );
  const data = Type.Array(item, { description: 'The items of the page.' });
  return component(name, Type.Object({ data, metadata }, { ...closed, description }));
}
