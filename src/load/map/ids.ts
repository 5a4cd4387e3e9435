import { idProblem } from '../../base/validation.ts';
import { idText } from '../../formats/json-text.ts';

/** Returns `null` if the value cannot be an id. */
export function idOf(value: unknown): string | null {
  const id = idText(value);
  return id !== null && idProblem(id) === null ? id : null;
}
