import { numberText } from '../formats/json-text.ts';
import { idProblem } from '../validation.ts';

/** Returns the text of an id, or `null` if the value cannot be one. */
export function idOf(value: unknown): string | null {
  const id = numberText(value) ?? value;
  return typeof id === 'string' && idProblem(id) === null ? id : null;
}
