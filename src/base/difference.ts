import { isDeepStrictEqual } from 'node:util';
import { pathText } from './operator-file/schema.ts';

/** A value is `undefined` if the field is missing on that side. */
export interface FieldChange {
  /** Path of the field, such as `load.http.url`. */
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the fields in which two objects differ once stored as JSON. Compares lists as a whole.
 */
export function listFieldChanges(before: object, after: object): FieldChange[] {
  return compare(before, JSON.parse(JSON.stringify(after)), []);
}

function compare(before: unknown, after: unknown, keys: readonly string[]): FieldChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (!isPlain(before) || !isPlain(after)) return [{ field: pathText('', keys), before, after }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    compare(memberOf(before, name), memberOf(after, name), [...keys, name]),
  );
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Ignores inherited members, because users supply the names. */
function memberOf(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value;
}
