import { isUtf8 } from 'node:buffer';
import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createCsvScanner } from '../formats/csv-scanner.ts';
import { CsvCells } from '../mapping/csv-cells.ts';

/** A cell as CSV has it, quoted where it must be. */
export function csvCell(text: string, delimiter: string): string {
  const plain = !text.includes(delimiter) && !/["\r\n]|^\s|\s$/.test(text);
  return plain ? text : `"${text.replaceAll('"', '""')}"`;
}

/** One cell of a refused record. */
export interface RecordCell {
  /** As it stands in the record, quotes and all. */
  readonly written: string;
  /** What that means. */
  readonly text: string;
}

/**
 * A function that splits refused records of a file. It gives null for what is not exactly one well-formed record of proper
 * text with a cell for each column; one that may have been cut off is not.
 */
export function createRecordSplitter({
  columns,
  delimiter,
}: CsvHeader): (raw: Buffer) => RecordCell[] | null {
  const byte = delimiter.charCodeAt(0);
  const scanner = createCsvScanner(byte);
  const cells = new CsvCells(byte, columns.length, true);
  return (raw) => {
    if (raw.length === 0 || raw.length >= MAX_REJECT_RAW_BYTES || raw.includes(0) || !isUtf8(raw))
      return null;
    scanner.reset();
    scanner.next(raw, 0, raw.length, true);
    if (scanner.problem !== null || scanner.contentEnd !== raw.length) return null;
    if (cells.find(raw, 0, raw.length) !== columns.length) return null;
    return columns.map((_, at) => ({ written: cells.written(raw, at), text: cells.text(raw, at) }));
  };
}
