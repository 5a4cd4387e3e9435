import type { Problems } from './problems.ts';
import type { SourceNode } from './source.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** How a value of the file is read, and how an editor is told of it: one description for both. */
export interface Field<T> {
  readonly schema: JsonSchema;
  /** Stands for what the file leaves out; without one, the field must be there. */
  readonly fallback?: T;
  /** undefined: something is wrong with it, which has been noted. */
  read(node: SourceNode, problems: Problems): T | undefined;
}

export type ValueOf<F> = F extends Field<infer T> ? T : never;

/** The same field, which may be left out. */
export function optional<T>(field: Field<T>, fallback: T): Field<T> {
  return { ...field, fallback, schema: { ...field.schema, default: fallback } };
}

/** The same field, which may be left out; then there is none. */
export function maybe<T>(field: Field<T>): Field<T | null> {
  return { ...field, fallback: null };
}
