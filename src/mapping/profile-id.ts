import { MAX_ID_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';

/** Why `bytes` bytes of UTF-8 cannot be the id in `column`, or null. */
export function idLengthProblem(bytes: number, column: string): Reason | null {
  if (bytes === 0) return { code: 'missing_id', message: `${column} is empty`, column };
  if (bytes <= MAX_ID_BYTES) return null;
  return {
    code: 'id_too_long',
    message: `${column} has ${bytes} bytes; at most ${MAX_ID_BYTES} are allowed`,
    column,
  };
}

export function missingId(column: string): Reason {
  return { code: 'missing_id', message: `${column} is missing`, column };
}
