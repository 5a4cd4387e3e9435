import type { Reject } from '../domain/reject.ts';
import type { RejectRecord } from './schemas/reject-page.ts';

/** A refused record as the API shows it. `raw` is text: bytes that are not UTF-8 show as U+FFFD. */
export function renderReject(reject: Reject): RejectRecord {
  return {
    row: reject.row,
    line: reject.line,
    byte_offset: reject.byteOffset,
    column: reject.column,
    error_code: reject.code,
    message: reject.message,
    raw: Buffer.from(reject.raw).toString('utf8'),
  };
}
