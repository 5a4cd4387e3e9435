import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import type { CsvDialect } from './csv-dialect.ts';
import { createCsvScanner } from './csv-scanner.ts';
import type { RecordScanner } from './record-scanner.ts';

/** What finds the records after this header: in the receiver, in the worker, and in a record that was refused. */
export function createRecordScanner(
  { delimiter }: { readonly delimiter: string; readonly dialect?: CsvDialect },
  maxRecordBytes = MAX_RECORD_BYTES,
): RecordScanner {
  return createCsvScanner(delimiter.charCodeAt(0), maxRecordBytes);
}
