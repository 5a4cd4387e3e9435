import { CellTable } from '../../formats/csv-cell-table.ts';
import { type CsvForm, marksOf } from '../../formats/csv-dialect.ts';
import { DialectReader, type ReadCells } from '../../formats/csv-dialect-reader.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import { malformed, tooLarge } from '../map/reasons.ts';
import { writeRefusal } from '../map/record-places.ts';

export interface DialectChunk {
  readonly form: CsvForm;
  readonly width: number;
  readonly bytes: Uint8Array;
  /**
   * Size of a record that is too large, otherwise `null`. `bytes` has only the beginning of such a
   * record.
   */
  readonly oversized: number | null;
}

/**
 * Plain CSV with as many lines as the original, because a record that had several lines is followed
 * by blank lines. Only a record that is too large becomes a single line.
 */
export interface PlainChunk {
  readonly text: Uint8Array;
  readonly lines: number;
}

/** Rewrites a chunk as plain CSV. If a record cannot be read, the reason replaces the record. */
export function rewriteChunk({ form, width, bytes, oversized }: DialectChunk): PlainChunk {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (oversized !== null) {
    const text = `${writeRefusal(tooLarge(oversized, source.length), source)}\n`;
    return { text: Buffer.from(text, 'latin1'), lines: 1 };
  }
  const { records, lines } = readRecords(source, form);
  const padded = form.ragged === 'pad' ? width : 0;
  let text = '';
  let nextLine = 0;
  for (const { start, end, line, cells } of records) {
    const isReadable = typeof cells !== 'string';
    const plain = isReadable
      ? write(cells, padded)
      : writeRefusal(malformed(cells), source.subarray(start, end));
    text += `${'\n'.repeat(line - nextLine)}${plain}\n`;
    nextLine = line + 1;
  }
  // The last line of a file may lack a line break.
  text = nextLine > lines ? text.slice(0, -1) : text + '\n'.repeat(lines - nextLine);
  return { text: Buffer.from(text, 'latin1'), lines };
}

interface ReadRecord {
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly cells: ReadCells;
}

function readRecords(source: Buffer, { dialect }: CsvForm): { records: ReadRecord[]; lines: number } {
  const marks = marksOf(dialect);
  const reader = new DialectReader(marks);
  const table = new CellTable();
  const scanner = createCsvScanner(marks, undefined, reader.needsCells ? table : null);
  const places: Omit<ReadRecord, 'cells'>[] = [];
  const texts: string[] = [];
  const problems = new Map<number, ReadCells>();
  let lines = 0;
  for (let start = 0; start < source.length; ) {
    const next = scanner.next(source, start, source.length, true);
    const { problem, contentEnd: end } = scanner;
    if (problem !== null) problems.set(places.length, problem);
    else if (!scanner.blank) texts.push(reader.text(source, start, end, table));
    if (!scanner.blank) places.push({ start, end, line: lines });
    lines += scanner.lines;
    start = next;
  }
  const readCells = reader.read(texts).values();
  const records = places.map((place, index): ReadRecord => {
    return { ...place, cells: problems.get(index) ?? readCells.next().value ?? [] };
  });
  return { records, lines };
}

function write(cells: readonly string[], width: number): string {
  return cells.map(plainCell).join(',') + ','.repeat(Math.max(0, width - cells.length));
}

export function plainCell(text: string): string {
  return /[",\r\n\0]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
