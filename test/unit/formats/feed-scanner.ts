import type { RecordScanner } from '../../../src/formats/record-scanner.ts';

export interface FedRecord {
  readonly start: number;
  readonly end: number;
  readonly contentEnd: number;
  readonly blank: boolean;
  readonly lines: number;
  readonly problem: string | null;
}

/** Runs a scanner on a buffer that grows. In each step, the buffer ends at the next of `ends`. */
export function feedScanner(scanner: RecordScanner, bytes: Buffer, ends: readonly number[]): FedRecord[] {
  const records: FedRecord[] = [];
  let start = 0;
  /**
   * Offset at which the search for the end of an oversized record continues. -1 if there is no such
   * record.
   */
  let from = -1;
  /** Number of the first record that may in fact be part of a cell. -1 if there is none. */
  let open = -1;
  let openFrom = 0;
  for (const [index, end] of ends.entries()) {
    const final = index === ends.length - 1;
    while (start < end) {
      if (open >= 0) {
        const close = scanner.findClose(bytes, start, openFrom, end, final);
        openFrom = scanner.keepFrom;
        if (close >= 0) {
          start = records[open]?.start ?? 0;
          records.length = open;
          from = close;
        }
        if (close !== -1) open = -1;
      }
      const wasSkipping = from >= 0;
      const recordEnd = wasSkipping
        ? scanner.skip(bytes, from, end, final)
        : scanner.next(bytes, start, end, final);
      if (recordEnd < 0) {
        if (wasSkipping || scanner.problem === 'record_too_large') from = scanner.keepFrom;
        break;
      }
      from = -1;
      const { contentEnd, blank, problem } = scanner;
      const text = bytes.toString('latin1', start, recordEnd);
      records.push({
        start,
        end: recordEnd,
        contentEnd,
        blank,
        lines: wasSkipping ? (text.match(/\r\n|\r|\n/g)?.length ?? 0) : scanner.lines,
        problem,
      });
      if (scanner.isUnclosed && open < 0) {
        open = records.length - 1;
        openFrom = recordEnd;
      }
      start = recordEnd;
    }
  }
  return records;
}
