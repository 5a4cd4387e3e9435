import { isDeepStrictEqual } from 'node:util';
import { pathText } from './operator-file/schema.ts';

/**
 * A field in which two objects differ. `before` or `after` is `undefined` if that object lacks the
 * field.
 */
export interface FieldChange {
  /** Path of the field, such as `load.http.url`. */
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the fields in which two objects differ. `before` was read from JSON. Therefore, `after`
 * is converted to JSON and back before the comparison. A list is compared as a whole.
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

/** Users choose the names, so a name such as `constructor` must not match an inherited member. */
function memberOf(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.value;
}
