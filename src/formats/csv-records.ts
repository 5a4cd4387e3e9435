import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import { marksOf, type RecordForm } from './csv-marks.ts';
import { createCsvScanner } from './csv-scanner.ts';
import type { CellList } from './csv-walker.ts';
import type { RecordScanner } from './record-scanner.ts';

/**
 * What finds the records after this header: in the receiver, in the worker, and in a record that was refused. `cells`, if
 * given, has those of each record that was found.
 */
export function createRecordScanner(
  header: RecordForm,
  maxRecordBytes = MAX_RECORD_BYTES,
  cells: CellList | null = null,
): RecordScanner {
  return createCsvScanner(marksOf(header), maxRecordBytes, cells);
}
