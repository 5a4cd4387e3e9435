import { MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import { type Reason, rejectCodes } from '../../domain/reject.ts';

/*
 * Records that could not be rewritten. In the rewritten file, such a record is replaced by the
 * reason and its original bytes.
 */

export interface RefusedBefore extends Reason {
  /** Original bytes of the record, truncated to MAX_REJECT_RAW_BYTES. */
  readonly raw: Uint8Array;
}

export function refusedBefore({ code, message, column }: Reason, raw: Buffer): RefusedBefore {
  const isCut = raw.length > MAX_REJECT_RAW_BYTES;
  const cut = isCut ? ` (raw is cut at ${MAX_REJECT_RAW_BYTES} of ${raw.length} bytes)` : '';
  const cutBytes = Uint8Array.prototype.slice.call(raw, 0, MAX_REJECT_RAW_BYTES);
  return { code, message: message + cut, column, raw: cutBytes };
}

const NUL = 0;

/**
 * Returns the line that replaces a record in a rewritten CSV file. The line begins with U+0000. It
 * cannot be confused with a record, because records that contain U+0000 are refused.
 */
export function writeRefusal(reason: Reason, raw: Buffer): string {
  const { code, ...refused } = refusedBefore(reason, raw);
  const [message, cutBytes] = [refused.message, refused.raw].map((each) =>
    Buffer.from(each).toString('base64'),
  );
  return `\0${code} ${message} ${cutBytes}`;
}

/** Returns `null` for a line that `writeRefusal` has not written. */
export function readRefusal(bytes: Buffer, start: number, end: number): RefusedBefore | null {
  if (bytes[start] !== NUL) return null;
  const [name, message, raw] = bytes.toString('latin1', start + 1, end).split(' ');
  const code = rejectCodes.find((each) => each === name);
  if (code === undefined || message === undefined || raw === undefined) return null;
  return {
    code,
    message: Buffer.from(message, 'base64').toString(),
    column: null,
    raw: Buffer.from(raw, 'base64'),
  };
}
