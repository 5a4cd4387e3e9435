import type { RecordScanner } from '../../../src/formats/record-scanner.ts';
import type { ReferenceRecord } from './reference-csv.ts';

/** All records of `bytes`, shown to the scanner only as far as each of `ends` in turn. */
export function feedScanner(
  scanner: RecordScanner,
  bytes: Buffer,
  ends: readonly number[],
): ReferenceRecord[] {
  const records: ReferenceRecord[] = [];
  let start = 0;
  let from = 0;
  for (const [index, end] of ends.entries()) {
    const final = index === ends.length - 1;
    while (start < end) {
      const recordEnd =
        from > start ? scanner.skip(bytes, from, end, final) : scanner.next(bytes, start, end, final);
      if (recordEnd < 0) {
        if (from > start || scanner.problem === 'record_too_large') from = end - 1;
        break;
      }
      const { contentEnd, blank, quoted, lines, problem } = scanner;
      const skipped = from > start;
      records.push({
        start,
        end: recordEnd,
        contentEnd,
        blank: !skipped && blank,
        quoted: skipped ? bytes.subarray(start, contentEnd).includes(34) : quoted,
        lines,
        problem: skipped ? 'record_too_large' : problem,
      });
      start = recordEnd;
      from = recordEnd;
    }
  }
  return records;
}
