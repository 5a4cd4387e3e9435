import { type Static, type TSchema, Type } from 'typebox';

/** What is of one type, or null, in the form that tools show best: a list of types. */
export function orNull<T extends TSchema & { readonly type: string }>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] });
}
