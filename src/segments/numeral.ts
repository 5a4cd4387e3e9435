import { MAX_COMPARED_CHARS } from '../domain/limits.ts';

const shape = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$/;

/**
 * Whether a text is a number as JSON writes one, so that `007` and `+1` stay text. Three digits of exponent at most:
 * Postgres would refuse to make a number of much more. `compile-text.ts` says the same in SQL.
 */
export function isNumeral(text: string): boolean {
  return text.length <= MAX_COMPARED_CHARS && shape.test(text);
}
