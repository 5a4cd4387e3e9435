import { StringDecoder } from 'node:string_decoder';
import type { Reject } from '../domain/reject.ts';
import type { RejectRecord } from './schemas/reject-page.ts';

/** A refused record as the API shows it. `raw` is text: bytes that are not UTF-8 show as U+FFFD. One that was cut ends with an ellipsis. */
export function renderReject(reject: Reject & { readonly isCut: boolean }): RejectRecord {
  return {
    row: reject.row,
    line: reject.line,
    byte_offset: reject.byteOffset,
    column: reject.column,
    error_code: reject.code,
    message: reject.message,
    // Half a character at the end of what was cut is left out.
    raw: reject.isCut
      ? `${new StringDecoder('utf8').write(Buffer.from(reject.raw))}…`
      : Buffer.from(reject.raw).toString('utf8'),
  };
}
