import { type Static, type TSchema, Type } from 'typebox';

/** A schema that the document names: it stands there once, under components, and others refer to it. */
export function component<T extends TSchema>(name: string, schema: T) {
  return {
    schema: { ...schema, $id: name },
    ref: Type.Unsafe<Static<T>>({ $ref: `${name}#` }),
  };
}
