import { MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import { type Reason, rejectCodes } from '../../domain/reject.ts';

/* Records that were refused while their file was received: a rewritten file has in their place why, and what was received. */

export interface RefusedBefore extends Reason {
  /** The record as received, cut at MAX_REJECT_RAW_BYTES. */
  readonly raw: Uint8Array;
}

export function refusedBefore({ code, message, column }: Reason, raw: Buffer): RefusedBefore {
  const isCut = raw.length > MAX_REJECT_RAW_BYTES;
  const cut = isCut ? ` (raw is cut at ${MAX_REJECT_RAW_BYTES} of ${raw.length} bytes)` : '';
  const kept = Uint8Array.prototype.slice.call(raw, 0, MAX_REJECT_RAW_BYTES);
  return { code, message: message + cut, column, raw: kept };
}

const NUL = 0;

/** Returns the line of a CSV that has the place of such a record. A record that begins with U+0000 is refused in any file. */
export function writeRefusal(reason: Reason, raw: Buffer): string {
  const { code, ...refused } = refusedBefore(reason, raw);
  const [message, kept] = [refused.message, refused.raw].map((each) => Buffer.from(each).toString('base64'));
  return `\0${code} ${message} ${kept}`;
}

/** Returns what `writeRefusal` wrote; `null` for any other record. */
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
