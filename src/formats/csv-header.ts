import { isUtf8 } from 'node:buffer';
import { type InputError, inputError } from '../domain/errors.ts';
import { MAX_HEADER_BYTES } from '../domain/limits.ts';
import { CsvCutter } from './csv-cutter.ts';
import { type CsvDialect, isPlain } from './csv-dialect.ts';
import { withoutSpareCells } from './csv-mended-header.ts';
import { joinRows, nameColumns, numberedColumns } from './csv-names.ts';
import { createRecordScanner } from './csv-scanner.ts';
import { explainNotUtf8 } from './detect-encoding.ts';
import { type DefusedCells, findDefusedCells, isOwnHeader } from './own-csv.ts';
import { CR, LF } from './record-scanner.ts';

/** What the first record of a CSV says about all the others. */
export interface CsvHeader {
  /** Between the cells: one ASCII character. With a `dialect`, what stands between them once a chunk has been made plain. */
  readonly delimiter: string;
  /** Column names in file order, all different. */
  readonly columns: readonly string[];
  /** What an apostrophe before a formula means, in names and cells; left out: it is part of the value. */
  readonly defused?: Exclude<DefusedCells, 'kept'>;
  /** How records are written that are not plain (`isPlain`); the worker makes a chunk of them plain before it reads it. */
  readonly dialect?: CsvDialect;
  /** Records with fewer cells than columns are filled up with empty ones. */
  readonly ragged?: 'pad';
  /** One quote too many at the start of a cell is part of its value. */
  readonly strayQuotes?: 'keep';
  /** Empty in most records that were looked at: one that has something in it and an empty cell more may have a delimiter too many. */
  readonly lastColumn?: 'empty';
}

const TAB = 9;
const SPACE = 32;

/** How the header of a CSV, and the records after it, are to be read. */
export interface CsvReading {
  readonly dialect: CsvDialect;
  readonly ragged: 'refuse' | 'pad';
  readonly strayQuotes: 'refuse' | 'keep';
  /** Records that name the columns; 0: none does, and there are so many `columns`. */
  readonly headerRows: number;
  readonly columns: number;
  readonly map: Readonly<Record<string, string>>;
  readonly strict: boolean;
  /** Cells of the header without a name are no columns. */
  readonly hasSpareCells?: true;
  readonly lastColumn?: 'empty';
  /** The header is a line that cannot be cut as the records are; it ends at `end`. */
  readonly stray?: { readonly cells: readonly string[]; readonly end: number };
}

/** The header records of a CSV. */
interface HeaderRecord {
  readonly header: CsvHeader;
  readonly notes: readonly string[];
  /** Where the record after them starts. */
  readonly end: number;
  readonly lines: number;
}

/** What stands before the header, to be passed over. */
interface PassedLines {
  /** Where the first line that is not passed over starts, as far as `bytes` goes. */
  readonly end: number;
  readonly lines: number;
  /** More of them may follow: of a blank line at `end`, that nothing but white space was found of it. */
  readonly isOpen: boolean;
}

/** The lines of blanks and tabs only at the start of `bytes`. One pass, whatever they are made of. */
export function skipBlankLines(bytes: Buffer, final: boolean): PassedLines {
  let end = 0;
  let lines = 0;
  let at = 0;
  for (; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === SPACE || byte === TAB) continue;
    if (byte !== LF && byte !== CR) return { end, lines, isOpen: false };
    // The LF of a CRLF may be still to come.
    if (byte === CR && at + 1 === bytes.length && !final) break;
    if (byte === CR && bytes[at + 1] === LF) at++;
    end = at + 1;
    lines++;
  }
  return { end: final ? bytes.length : end, lines, isOpen: true };
}

/** The first `count` lines of `bytes`, whatever they hold. */
export function skipLines(bytes: Buffer, count: number, final: boolean): PassedLines {
  let end = 0;
  let lines = 0;
  for (let at = 0; at < bytes.length && lines < count; at++) {
    const byte = bytes[at];
    if (byte !== LF && byte !== CR) continue;
    if (byte === CR && at + 1 === bytes.length && !final) break;
    if (byte === CR && bytes[at + 1] === LF) at++;
    end = at + 1;
    lines++;
  }
  return { end: final && lines < count ? bytes.length : end, lines, isOpen: lines < count };
}

/**
 * Reads the header at the start of `bytes`, no blank line before it; null if more bytes are needed (never when `final`).
 * @throws InputError `invalid_field` for a header that names no usable columns, with every problem found;
 *   `unsupported_format` for one that is no text.
 */
export function readCsvHeader(bytes: Buffer, final: boolean, reading: CsvReading): HeaderRecord | null {
  const form = formOf(reading);
  if (reading.headerRows === 0) {
    return { header: { ...form, columns: numberedColumns(reading.columns) }, notes: [], end: 0, lines: 0 };
  }
  const records = reading.stray ? strayRecord(bytes, reading.stray) : cutRecords(bytes, final, form, reading);
  if (records === null) return null;
  const joined = joinRows(records.rows);
  const cells = reading.hasSpareCells === true ? withoutSpareCells(joined) : joined;
  const { map, strict } = reading;
  const { columns, notes } = nameColumns(cells, { map, strict, isOurs: isOwnHeader(cells) });
  const defused = findDefusedCells(cells, records.text);
  const header = { ...form, columns, ...(defused !== 'kept' && { defused }) };
  return { header, notes, end: records.end, lines: records.lines };
}

/** All that the header says but its names. */
function formOf({ dialect, ragged, strayQuotes, lastColumn }: CsvReading): Omit<CsvHeader, 'columns'> {
  const rules = {
    ...(ragged === 'pad' ? { ragged } : lastColumn !== undefined && { lastColumn }),
    ...(strayQuotes === 'keep' && { strayQuotes }),
  };
  return isPlain(dialect)
    ? { delimiter: dialect.delimiter, ...rules }
    : { delimiter: ',', dialect, ...rules };
}

interface CutRecords {
  readonly rows: readonly (readonly string[])[];
  /** Of all of them, as written. */
  readonly text: string;
  readonly end: number;
  readonly lines: number;
}

function strayRecord(bytes: Buffer, { cells, end }: NonNullable<CsvReading['stray']>): CutRecords {
  return { rows: [cells], text: bytes.toString('utf8', 0, end), end, lines: 1 };
}

function cutRecords(
  bytes: Buffer,
  final: boolean,
  form: Omit<CsvHeader, 'columns'>,
  { dialect, headerRows }: CsvReading,
): CutRecords | null {
  const scanner = createRecordScanner(form, MAX_HEADER_BYTES);
  const rows: string[][] = [];
  let [end, lines, contentEnd] = [0, 0, 0];
  while (rows.length < headerRows && end < bytes.length) {
    const next = scanner.next(bytes, end, bytes.length, final);
    if (scanner.problem === 'record_too_large') {
      throw inputError('invalid_field', `The header is longer than ${MAX_HEADER_BYTES} bytes`, 'line 1');
    }
    if (next < 0) return null;
    if (scanner.problem !== null) throw malformedHeader(scanner.problem);
    if (!scanner.blank) {
      const record = bytes.subarray(end, scanner.contentEnd);
      requireUtf8(record);
      const cutter = new CsvCutter(record, true, dialect);
      cutter.next(0);
      rows.push(cutter.cells());
    }
    contentEnd = scanner.contentEnd;
    lines += scanner.lines;
    end = next;
  }
  if (rows.length < headerRows && !final) return null;
  return { rows, text: bytes.toString('utf8', 0, contentEnd), end, lines };
}

function malformedHeader(problem: 'invalid_quote' | 'unclosed_quote'): InputError {
  const message =
    problem === 'unclosed_quote'
      ? 'The header has an opening quote that is never closed'
      : 'The header has a quote inside a name, or text after a closing quote; write names with quotes as "a ""b"" c"';
  return inputError('invalid_field', message, 'header');
}

function requireUtf8(record: Buffer): void {
  if (isUtf8(record)) return;
  const details = `header: ${explainNotUtf8(record, true)}`;
  throw inputError('unsupported_format', 'The header is not UTF-8 text', details);
}
