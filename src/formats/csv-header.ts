import { parse } from 'csv-parse/sync';
import { InputError, inputError, type Problem } from '../domain/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_BYTES, MAX_HEADER_PROBLEMS } from '../domain/limits.ts';
import type { CsvDialect } from './csv-dialect.ts';
import { createCsvScanner } from './csv-scanner.ts';
import { type DefusedCells, findDefusedCells } from './own-csv.ts';
import { CR, LF } from './record-scanner.ts';

/** What the first record of a CSV says about all the others. */
export interface CsvHeader {
  /** Between the cells: one ASCII character. With a `dialect`, what stands between them once a chunk has been made plain. */
  readonly delimiter: string;
  /** Column names in file order, as written (BOM removed, not trimmed). */
  readonly columns: readonly string[];
  /** What an apostrophe before a formula means, in names and cells; left out: it is part of the value. */
  readonly defused?: Exclude<DefusedCells, 'kept'>;
  /** How records are written that are not plain (`isPlain`); the worker makes a chunk of them plain before it reads it. */
  readonly dialect?: CsvDialect;
  /** Records with fewer cells than columns are filled up with empty ones. */
  readonly ragged?: 'pad';
}

/** In order of preference, for a header in which several come equally often. */
const delimiters = [',', ';', '\t', '|'] as const;
const TAB = 9;
const SPACE = 32;
const QUOTE = 34;

/** The header record of a CSV. */
interface HeaderRecord {
  readonly header: CsvHeader;
  /** Where the record after it starts. */
  readonly end: number;
  readonly lines: number;
}

/** What stands before the header, to be passed over. */
interface BlankLines {
  /** Where the first line with something in it starts, as far as `bytes` goes. */
  readonly end: number;
  readonly lines: number;
  /** Nothing but white space was found: the line at `end` may yet turn out to be blank. */
  readonly isOpen: boolean;
}

/** The lines of blanks and tabs only at the start of `bytes`. One pass, whatever they are made of. */
export function skipBlankLines(bytes: Buffer, final: boolean): BlankLines {
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

/**
 * Reads the header at the start of `bytes`, no blank line before it; null if more bytes are needed (never when `final`).
 * @throws InputError `invalid_field` for a header that names no usable columns, with every problem found;
 *   `unsupported_format` for one that is no text.
 */
export function readCsvHeader(bytes: Buffer, final: boolean): HeaderRecord | null {
  const delimiter = findDelimiter(bytes);
  const scanner = createCsvScanner(delimiter.charCodeAt(0), MAX_HEADER_BYTES);
  const end = scanner.next(bytes, 0, bytes.length, final);
  if (scanner.problem === 'record_too_large') {
    throw inputError('invalid_field', `The header is longer than ${MAX_HEADER_BYTES} bytes`, 'line 1');
  }
  if (end < 0) return null;
  if (scanner.problem !== null) throw malformedHeader(scanner.problem);
  const text = decode(bytes.subarray(0, scanner.contentEnd));
  const columns = readColumns(text, delimiter);
  const defused = findDefusedCells(columns, text);
  const header = { delimiter, columns, ...(defused !== 'kept' && { defused }) };
  return { header, end, lines: scanner.lines };
}

/** The candidate that comes most often in the first record, outside quotes; a single column has none: `,`. */
function findDelimiter(bytes: Buffer): string {
  const counts = new Uint32Array(256);
  let quoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (byte === LF || byte === CR) break;
    else counts[byte] = (counts[byte] as number) + 1;
  }
  const count = (delimiter: string) => counts[delimiter.charCodeAt(0)] as number;
  return delimiters.reduce<string>((best, each) => (count(each) > count(best) ? each : best), delimiters[0]);
}

function readColumns(text: string, delimiter: string): string[] {
  const options = { delimiter, record_delimiter: ['\r\n', '\n', '\r'], relax_column_count: true };
  const [columns = []] = parse(text, options) as string[][];
  if (columns.length > MAX_COLUMNS) {
    throw inputError(
      'invalid_field',
      `The header has ${columns.length} columns; at most ${MAX_COLUMNS} are taken`,
    );
  }
  const [first, ...more] = findProblems(columns);
  if (first !== undefined) throw new InputError(first, ...more);
  return columns;
}

function findProblems(columns: readonly string[]): Problem[] {
  const positions = new Map<string, number[]>();
  columns.forEach((name, index) => {
    const at = positions.get(name);
    if (at === undefined) positions.set(name, [index + 1]);
    else at.push(index + 1);
  });
  const problems: Problem[] = [];
  for (const [name, at] of positions) {
    if (problems.length === MAX_HEADER_PROBLEMS) break;
    if (name === '') problems.push(invalid('The header has a column without a name', at));
    else if (at.length > 1)
      problems.push(invalid(`The header names the column "${name}" more than once`, at));
  }
  return problems;
}

function invalid(message: string, positions: readonly number[]): Problem {
  const shown = positions.slice(0, MAX_HEADER_PROBLEMS).join(', ');
  const more = positions.length > MAX_HEADER_PROBLEMS ? ', …' : '';
  return {
    code: 'invalid_field',
    message,
    details: `header: ${positions.length > 1 ? 'columns' : 'column'} ${shown}${more}`,
  };
}

function malformedHeader(problem: 'invalid_quote' | 'unclosed_quote'): InputError {
  const message =
    problem === 'unclosed_quote'
      ? 'The header has an opening quote that is never closed'
      : 'The header has a quote inside a name, or text after a closing quote; write names with quotes as "a ""b"" c"';
  return inputError('invalid_field', message, 'header');
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw Object.assign(inputError('unsupported_format', 'The header is not UTF-8 text', 'header'), {
      cause,
    });
  }
}
