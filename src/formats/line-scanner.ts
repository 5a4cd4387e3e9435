import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import { CR, LF, type RecordScanner, type ScanProblem } from './record-scanner.ts';

const SPACE = 32;
const TAB = 9;

/**
 * Scanner for NDJSON. A record ends at LF or CRLF; a lone CR is white space to JSON and stays in the record.
 * A line of white space only is blank.
 */
export function createLineScanner(maxRecordBytes = MAX_RECORD_BYTES): RecordScanner {
  return new Scanner(maxRecordBytes);
}

class Scanner implements RecordScanner {
  readonly quoted = false;
  blank = false;
  lines = 0;
  contentEnd = 0;
  problem: ScanProblem | null = null;
  readonly #maxBytes: number;

  constructor(maxRecordBytes: number) {
    this.#maxBytes = maxRecordBytes;
  }

  /** Nothing is remembered: a line costs one `indexOf`. */
  reset(): void {}

  next(buf: Buffer, start: number, end: number, final: boolean): number {
    const lineEnd = this.skip(buf, start, end, final);
    this.problem = this.contentEnd - start > this.#maxBytes ? 'record_too_large' : null;
    this.blank = lineEnd >= 0 && this.problem === null && isBlank(buf, start, this.contentEnd);
    return lineEnd;
  }

  /** Sets `contentEnd` also with a -1: to where the content reaches at least. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    const at = buf.indexOf(LF, start);
    const found = at >= 0 && at < end;
    const stop = found ? at : end;
    const beforeCr = stop > start && buf[stop - 1] === CR && (found || !final);
    this.contentEnd = beforeCr ? stop - 1 : stop;
    this.lines = found ? 1 : 0;
    if (found) return stop + 1;
    return final ? end : -1;
  }
}

function isBlank(buf: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = buf[i];
    if (byte !== SPACE && byte !== TAB && byte !== CR) return false;
  }
  return true;
}
