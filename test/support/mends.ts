import { createHash } from 'node:crypto';

/** The id of a mend for a cause: the same in every job. */
export function mendId(
  mend: string,
  ...cause: readonly [code: string, column: string | null, shape: string]
): string {
  return `${createHash('sha256').update(JSON.stringify(cause)).digest('hex').slice(0, 13)}-${mend}`;
}
