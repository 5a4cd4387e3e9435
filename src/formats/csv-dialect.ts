import { parse } from 'csv-parse/sync';
import { InputError, inputError, type Problem } from '../domain/errors.ts';
import { MAX_COLUMNS, MAX_HEADER_BYTES } from '../domain/limits.ts';
import { type CsvHeader, isDefusedFile } from './csv-header.ts';
import { createCsvScanner } from './csv-scanner.ts';
import { CR, LF } from './record-scanner.ts';

/** In order of preference, for a header in which several come equally often. */
const delimiters = [',', ';', '\t', '|'] as const;
const QUOTE = 34;

/** The header record of a CSV; or a line before it with nothing in it (`header` is null), to be passed over. */
export interface HeaderRecord {
  readonly header: CsvHeader | null;
  /** Where the record after it starts. */
  readonly end: number;
  readonly lines: number;
}

/**
 * Reads the header at the start of `bytes`; null if more bytes are needed (never when `final`).
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
  if (/^[ \t]*$/.test(text)) return { header: null, end, lines: scanner.lines };
  const columns = readColumns(text, delimiter);
  const header = { delimiter, columns, ...(isDefusedFile(columns, text) && { defused: true as const }) };
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
    positions.set(name, [...(positions.get(name) ?? []), index + 1]);
  });
  const problems: Problem[] = [];
  for (const [name, at] of positions) {
    if (name === '') problems.push(invalid('The header has a column without a name', at));
    else if (at.length > 1)
      problems.push(invalid(`The header names the column "${name}" more than once`, at));
  }
  return problems;
}

function invalid(message: string, positions: readonly number[]): Problem {
  const many = positions.length > 1;
  return {
    code: 'invalid_field',
    message,
    details: `header: ${many ? 'columns' : 'column'} ${positions.join(', ')}`,
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
