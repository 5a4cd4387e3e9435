import { MAX_EXPLAINED_RECORDS } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { explainNotUtf8 } from '../formats/detect-encoding.ts';
import { validPrefix } from '../formats/utf8.ts';
import type { CsvCells } from './csv-cells.ts';

/** Why records of one chunk are refused whose bytes are not UTF-8. For the first of them it is looked at what they may be in. */
export class Utf8Reasons {
  #left = MAX_EXPLAINED_RECORDS;

  ofRecord(record: Buffer, column: string | null = null): Reason {
    this.#left--;
    return { code: 'invalid_utf8', message: explainNotUtf8(record, this.#left >= 0), column };
  }

  /** Of the record bytes [start, end), which says in which column it is. */
  ofCsv(bytes: Buffer, start: number, end: number, cells: CsvCells, columns: readonly string[]): Reason {
    const record = bytes.subarray(start, end);
    const at = start + validPrefix(record);
    const isSplit = cells.find(bytes, start, end) === columns.length;
    const column = isSplit ? columns.findIndex((_, index) => at < (cells.ends[index] ?? 0)) : -1;
    return this.ofRecord(record, columns[column] ?? null);
  }
}
