// Declares each record of the API once. Routes, OpenAPI and the console's types follow from it.
// Start reading at `job.ts`.
import {
  type Static,
  type TArrayOptions,
  type TObjectOptions,
  type TProperties,
  type TSchema,
  Type,
} from 'typebox';
import { type ErrorCode, errorCodes } from '../base/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../base/limits.ts';

const declared: TSchema[] = [];

/** Components of the `api.ts` files that have been imported. */
export const components: readonly TSchema[] = declared;

export function component<T extends TSchema>(name: string, schema: T) {
  const named = { ...schema, $id: name };
  declared.push(named);
  return { schema: named, ref: Type.Unsafe<Static<T>>({ $ref: `${name}#` }) };
}

export function withFields(
  records: readonly TSchema[],
  added: Readonly<Record<string, TProperties>>,
): readonly TSchema[] {
  return records.map((schema) => {
    const fields = added[String((schema as { $id?: string }).$id)] ?? {};
    if (Object.keys(fields).length === 0) return schema;
    const { properties, required = [] } = schema as TSchema & {
      properties: TProperties;
      required?: string[];
    };
    return {
      ...schema,
      properties: { ...properties, ...fields },
      required: [...required, ...Object.keys(fields)],
    };
  });
}

export const closed = { additionalProperties: false } as const;

const described = (description: string, examples: readonly unknown[]) => ({
  description,
  ...(examples.length > 0 && { examples: [...examples] }),
});

export function defineRecord<P extends TProperties>(
  name: string,
  description: string,
  members: P,
  ...examples: unknown[]
) {
  return component(name, Type.Object(members, { ...closed, ...described(description, examples) }));
}

export const object = <P extends TProperties>(description: string, members: P) =>
  Type.Object(members, { ...closed, description });

/** An object without a description, because the list or record that contains it has one. */
export const item = <P extends TProperties>(members: P) => Type.Object(members, closed);

export const listOf = <T extends TSchema>(description: string, of: T, options: TArrayOptions = {}) =>
  Type.Array(of, { ...options, description });

export const items = <P extends TProperties>(description: string, members: P) =>
  listOf(description, item(members));

export const texts = (description: string, ...examples: (readonly string[] | null)[]) =>
  Type.Array(Type.String(), described(description, examples));

export const anyObject = (description: string, ...examples: object[]) =>
  Type.Object({}, { additionalProperties: true, ...described(description, examples) });

export function record<V = unknown>(options: TObjectOptions) {
  return Type.Unsafe<Readonly<Record<string, V>>>(Type.Object({}, options));
}

export const text = (description: string, ...examples: string[]) =>
  Type.String(described(description, examples));

export const time = (description: string, ...examples: string[]) =>
  Type.String({ format: 'date-time', ...described(description, examples) });

export const uuid = (description: string, ...examples: string[]) =>
  Type.String({ format: 'uuid', ...described(description, examples) });

export const url = (description: string, example: string) =>
  Type.String({ format: 'uri', ...described(description, [example]) });

export const sha256 = (description: string, ...examples: string[]) =>
  Type.String({ pattern: '^[0-9a-f]{64}$', ...described(description, examples) });

export const count = (description: string, ...examples: number[]) =>
  Type.Integer({ minimum: 0, ...described(description, examples) });

export const ordinal = (description: string, ...examples: number[]) =>
  Type.Integer({ minimum: 1, ...described(description, examples) });

export const flag = (description: string, ...examples: boolean[]) =>
  Type.Boolean(described(description, examples));

export const choice = <const T extends string>(
  choices: readonly T[],
  description: string,
  ...examples: T[]
) => Type.Enum([...choices], { type: 'string', ...described(description, examples) });

export const choiceOrNull = <const T extends string>(
  choices: readonly T[],
  description: string,
  ...examples: (T | null)[]
) =>
  Type.Unsafe<T | null>({
    type: ['string', 'null'],
    enum: [...choices, null],
    ...described(description, examples),
  });

/** Allows `null`. The type becomes a list of types, which tools display best. */
export function orNull<T extends TSchema & { readonly type: string }>(schema: T, ...examples: null[]) {
  const all = { ...schema, type: [schema.type, 'null'], ...(examples.length > 0 && { examples }) };
  return Type.Unsafe<Static<T> | null>(all);
}

export const reasonFields = {
  error_code: text('Error code: stable, for programs.', 'missing_id'),
  message: text('A sentence for a person.', 'user_id is empty'),
};

export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** @fastify/swagger reads the examples from `x-examples`. */
export function withExamples(schema: TSchema, examples: Readonly<Record<string, Example>>) {
  return { schema: { ...schema, 'x-examples': examples } };
}

export function exampleText(description: string, name: string, summary: string, value: string) {
  return withExamples(text(description), { [name]: { summary, value } });
}

/** Schema of one page of a list. `more` contains further metadata. */
export function envelope<T extends TSchema, M extends TProperties = Record<never, TSchema>>(
  name: string,
  of: T,
  description: string,
  more = {} as M,
) {
  const after = text(
    'Cursor of the next page. Null on the last page. A page may be short or empty and still have a next one.',
    'MTAw',
  );
  const before = Type.Null({ description: 'Always null: lists are read forwards.' });
  const limit = Type.Integer({
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    ...described('Maximum number of items on a page.', [DEFAULT_PAGE_SIZE]),
  });
  const cursor = object('Cursors of the neighbouring pages.', { after: orNull(after), before });
  const metadata = object('Facts about the page.', { cursor, limit, ...more });
  return defineRecord(name, description, { data: listOf('The items of the page.', of), metadata });
}

const errorEntry = object('One problem.', {
  error: text('The HTTP status phrase.', 'Bad Request'),
  error_code: choice(
    Object.keys(errorCodes) as ErrorCode[],
    'Error code: stable, for programs.',
    'missing_field',
  ),
  message: text('A sentence for a person.', 'The form has no part named file'),
  details: text('The field, column or position at fault. May be empty.', 'file'),
});

export const errorRecord = defineRecord('ErrorRecord', 'The body of every refusal.', {
  errors: listOf('The problems found, one entry each.', errorEntry, { minItems: 1 }),
});
