import { isUtf8 } from 'node:buffer';
import { InputError, inputError, type StatedProblem } from '../base/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_BYTES } from '../base/limits.ts';
import { named, type Sentence, say, using } from '../base/sentence.ts';
import { shorten } from '../base/wording.ts';
import { resolveMap } from '../domain/column-map.ts';
import { type CellType, readCellType } from '../domain/data-type.ts';
import { idColumn } from '../domain/entity.ts';
import { isRejectColumn } from '../domain/reject.ts';
import { CellTable } from './csv-cell-table.ts';
import { type CsvForm, isBlankByte, isPlain, marksOf } from './csv-dialect.ts';
import { createCsvScanner } from './csv-scanner.ts';
import { isOwnHeader } from './csv-text.ts';
import { CR, LF } from './record-scanner.ts';
import { explainNotUtf8 } from './utf8.ts';

const MAX_HEADER_PROBLEMS = 100;
const MAX_HEADER_NOTES = 20;

/** Header of a stored CSV file. Stored CSV files conform to RFC 4180. */
export interface CsvHeader {
  /** One ASCII character. */
  readonly delimiter: string;
  /** Names of the columns in the order of the file. All names are different. */
  readonly columns: readonly string[];
  /** True if an apostrophe before a formula is not part of the name or value, so it is removed. */
  readonly defused?: true;
  /**
   * True if the received file had a different dialect. Each stored record then counts as one line.
   */
  readonly isRewritten?: true;
  /** Types of columns that do not contain text. */
  readonly types?: Readonly<Record<string, CellType>>;
  /**
   * `empty` if the last cell is empty in most sampled records. A record with text in that cell may
   * have one delimiter too many.
   */
  readonly lastColumn?: 'empty';
}

export interface CsvReading extends CsvForm {
  readonly types?: readonly string[];
  /** Number of records that form the header. 0 for a file without a header. */
  readonly headerRows: number;
  readonly columns: number;
  readonly lastColumn?: 'empty';
}

interface HeaderRecord {
  readonly header: CsvHeader;
  readonly notes: readonly string[];
  /** Start of the first record after the header. */
  readonly end: number;
  readonly lines: number;
}

interface PassedLines {
  /** Start of the first line that is not skipped, or the end of `bytes`. */
  readonly end: number;
  readonly lines: number;
  /** True if `bytes` ends before the last line to skip, so the line at `end` may continue. */
  readonly isOpen: boolean;
}

/** Skips `count` lines, or all leading blank lines if `count` is `null`. */
export function skipLines(bytes: Buffer, count: number | null, final: boolean): PassedLines {
  let end = 0;
  let lines = 0;
  for (let at = 0; at < bytes.length && lines !== count; at++) {
    const byte = bytes[at];
    if (byte !== LF && byte !== CR) {
      if (count !== null || isBlankByte(byte)) continue;
      return { end, lines, isOpen: false };
    }
    // The LF of a CRLF may be the first of the next bytes.
    if (byte === CR && at + 1 === bytes.length && !final) break;
    if (byte === CR && bytes[at + 1] === LF) at++;
    end = at + 1;
    lines++;
  }
  const isOpen = lines !== count;
  return { end: final && isOpen ? bytes.length : end, lines, isOpen };
}

/**
 * Reads the header. Returns `null` if more bytes are needed (never when `final`).
 * @throws InputError `invalid_field` with every problem if the header has no usable columns;
 * `unsupported_format` if it is not text
 */
export function readCsvHeader(bytes: Buffer, final: boolean, reading: CsvReading): HeaderRecord | null {
  const form = storedForm(reading);
  if (reading.headerRows === 0) {
    const columns = Array.from({ length: reading.columns }, (_, index) => numbered(index));
    return { header: { ...form, columns, ...typesOf(reading, columns) }, notes: [], end: 0, lines: 0 };
  }
  const records = cutRecords(bytes, final, reading);
  if (records === null) return null;
  const cells = joinRows(records.rows);
  if (cells.length > MAX_COLUMNS) {
    const message = `The header has ${cells.length} columns; at most ${MAX_COLUMNS} are taken`;
    throw inputError('invalid_field', message);
  }
  // In our own files, blanks at the ends are part of the name.
  const isOwn = isOwnHeader(cells);
  const { columns, notes } = namesOf(isOwn ? cells : cells.map((cell) => cell.trim()));
  const [first, ...more] = findProblems(columns);
  if (first !== undefined) throw new InputError(first, ...more);
  const header = {
    ...form,
    columns,
    ...(isOwn && { defused: true as const }),
    ...typesOf(reading, columns),
  };
  return { header, notes, end: records.end, lines: records.lines };
}

/**
 * Returns the types of the columns.
 * @throws InputError `invalid_field` if a type is given for a missing column, or if two types are
 * given for the same column
 */
function typesOf(
  { types = [], headerRows }: CsvReading,
  columns: readonly string[],
): Pick<CsvHeader, 'types'> {
  if (types.length === 0) return {};
  const pairs = types.map(readCellType).filter((pair) => pair !== undefined);
  const typeByName = Object.fromEntries(pairs);
  const [conflict] = pairs.find(([name, type]) => typeByName[name] !== type) ?? [];
  if (conflict !== undefined)
    throw inputError('invalid_field', `types gives a column two types: ${shorten(conflict, 100)}`, 'types');
  const resolved = resolveMap(typeByName, columns, headerRows > 0);
  const names = new Set(columns);
  const absent = Object.keys(resolved).find((name) => !names.has(name));
  if (absent === undefined) return { types: resolved as Record<string, CellType> };
  const message = `types names a column that the file does not have: ${shorten(absent, 100)}`;
  throw inputError('invalid_field', message, 'types');
}

export function cellTypeOf({ types = {} }: Pick<CsvHeader, 'types'>, column: string): CellType | undefined {
  return Object.hasOwn(types, column) ? types[column] : undefined;
}

function storedForm(reading: CsvReading): Omit<CsvHeader, 'columns'> {
  const { dialect, ragged, lastColumn } = reading;
  return {
    ...(isPlain(reading) ? { delimiter: dialect.delimiter } : { delimiter: ',', isRewritten: true }),
    ...(ragged === 'refuse' && lastColumn !== undefined && { lastColumn }),
  };
}

interface CutRecords {
  readonly rows: readonly (readonly string[])[];
  readonly end: number;
  readonly lines: number;
}

function cutRecords(bytes: Buffer, final: boolean, { dialect, headerRows }: CsvReading): CutRecords | null {
  const table = new CellTable();
  const marks = marksOf(dialect);
  const scanner = createCsvScanner(marks, MAX_HEADER_BYTES, table);
  const rows: string[][] = [];
  let end = 0;
  let lines = 0;
  while (rows.length < headerRows && end < bytes.length) {
    const next = scanner.next(bytes, end, bytes.length, final);
    if (scanner.problem === 'record_too_large') throw headerTooLong();
    if (next < 0) return null;
    if (scanner.problem !== null) throw malformedHeader(scanner.problem);
    if (!scanner.blank) {
      const record = bytes.subarray(end, scanner.contentEnd);
      if (!isUtf8(record)) {
        const details = `header: ${explainNotUtf8(record)}`;
        throw inputError('unsupported_format', 'The header is not UTF-8 text', details);
      }
      rows.push(table.texts(bytes, marks));
    }
    lines += scanner.lines;
    end = next;
  }
  if (rows.length < headerRows && !final) return null;
  return { rows, end, lines };
}

function malformedHeader(problem: 'invalid_quote' | 'unclosed_quote'): InputError {
  const message =
    problem === 'unclosed_quote'
      ? 'The header has an opening quote that is never closed'
      : 'The header has a quote inside a name, or text after a closing quote; write names with quotes as "a ""b"" c"';
  return inputError('invalid_field', message, 'header');
}

export function headerTooLong(): InputError {
  return inputError('invalid_field', `The header is longer than ${MAX_HEADER_BYTES} bytes`, 'line 1');
}

interface Names {
  readonly columns: readonly string[];
  /** Messages for the user: one sentence for each missing name. */
  readonly notes: readonly string[];
}

export function isNamed(cell: string): boolean {
  return cell.trim() !== '';
}

/** Joins the cells of each column in the header records with blanks. */
export function joinRows(rows: readonly (readonly string[])[]): string[] {
  const [first = [], ...more] = rows;
  if (more.length === 0) return [...first];
  const count = Math.max(...rows.map((row) => row.length));
  return Array.from({ length: count }, (_, index) =>
    rows
      .map((row) => (row[index] ?? '').trim())
      .filter((name) => name !== '')
      .join(' '),
  );
}

/** Replaces a missing name with the position of its column (`column_7`). */
export function namesOf(cells: readonly string[]): Names {
  const notes = cells.flatMap((cell, index) =>
    cell === '' ? [`Column ${index + 1} has no name in the header; it is called "${numbered(index)}".`] : [],
  );
  const columns = cells.map((cell, index) => (cell === '' ? numbered(index) : cell));
  return { columns, notes: notes.slice(0, MAX_HEADER_NOTES) };
}

function numbered(index: number): string {
  return `column_${index + 1}`;
}

function findProblems(names: readonly string[]): StatedProblem[] {
  const positions = new Map<string, number[]>();
  names.forEach((name, index) => {
    const at = positions.get(name);
    if (at === undefined) positions.set(name, [index + 1]);
    else at.push(index + 1);
  });
  const problems: StatedProblem[] = [];
  for (const [name, at] of positions) {
    if (problems.length === MAX_HEADER_PROBLEMS) break;
    if (name.includes('\0')) problems.push(invalid('The header has a name that holds U+0000', at));
    else if (at.length > 1)
      problems.push(invalid(say`The header names the column "${name}" more than once. ${rename}`, at));
  }
  return problems;
}

const rename = say`Rename one, or skip the header with ${named('header', 'none')} and ${named('skip_rows', '1')}, and name each column ${using('map', '1=user_id')}`;

function invalid(message: Sentence, positions: readonly number[]): StatedProblem {
  const shownPositions = positions.slice(0, MAX_HEADER_PROBLEMS).join(', ');
  const more = positions.length > MAX_HEADER_PROBLEMS ? ', …' : '';
  const details = `header: ${positions.length > 1 ? 'columns' : 'column'} ${shownPositions}${more}`;
  return { code: 'invalid_field', message, details };
}

const keys: ReadonlySet<string> = new Set(Object.values(idColumn));

export function namesId(cells: readonly string[]): boolean {
  return cells.some((cell) => keys.has(cell.trim()));
}

/** If only some cells are column positions (`2`, `column_2`), they are probably values. */
export function isNumbered(cells: readonly string[]): boolean {
  return cells.every((cell) => /^(?:column_)?\d{1,5}$/.test(cell.trim()) || isRejectColumn(cell.trim()));
}
