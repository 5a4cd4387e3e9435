/*
 * Headers with one delimiter or one quote too many, or with a delimiter too few beside a quote. Each of these costs the whole file, though the records behind the header say how many columns there are.
 */
import { isUtf8 } from 'node:buffer';
import { inputError } from '../domain/errors.ts';
import { MAX_STRAY_QUOTES, MAX_VALUE_BYTES } from '../domain/limits.ts';
import { CsvCutter } from './csv-cutter.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Place } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';
import { readStrayQuote } from './stray-quotes.ts';

/** Records behind the header that must agree, and the share of all that do. */
const leastRecords = 2;
const leastShare = 0.9;
/** Of a line below the header, to see whether it is a ruler. */
const maxRulerBytes = 4_096;

/** A header that cannot be cut as the records are, and what a person should know of it. */
export interface MendedHeader {
  readonly dialect: CsvDialect;
  readonly place: Place;
  readonly note: string;
}

/**
 * The header, if it is the first line and all that is wrong with it is a quote too many, or a delimiter that is missing beside a
 * quote: with the one as a part of a name, or the other put there, it has as many cells as the records. Null if not, or if there is
 * any doubt.
 */
export function findMendedHeader(sample: CsvSample, dialect: CsvDialect): MendedHeader | null {
  const cutter = new CsvCutter(sample.bytes, sample.isWhole, dialect);
  if (cutter.next(0) < 0 || !cutter.isBad || dialect.quote !== '"' || dialect.delimiter.length !== 1)
    return null;
  const { stop, end } = firstLine(sample.bytes);
  const width = widthBehind(sample, dialect, end);
  const line = sample.bytes.subarray(0, stop);
  if (width === 0 || stop > MAX_VALUE_BYTES || !isUtf8(line)) return null;
  const cells = readStrayHeader(line, dialect, width);
  const joined = insertDelimiter(line, dialect, width);
  // Where the name is one that `map` or we know without the quote, it is meant without.
  const without = cells?.map((cell) => (cell.startsWith('"') ? cell.slice(1) : cell));
  const meant = [cells, without, joined].find((each) => each != null && sample.isHeader(each));
  if (meant == null || (cells !== null && joined !== null)) return null;
  return { dialect, place: placeOf(meant, end), note: meant === joined ? missingDelimiter : strayQuote };
}

const strayQuote = 'The header has a quote too many; it was read as part of a name.';
const missingDelimiter =
  'In the header a delimiter is missing beside a quote; it was read as if one were there.';

function placeOf(cells: readonly string[], end: number): Place {
  return { start: 0, lines: 0, end, cells, rows: 1, isDoubtful: false };
}

/** Cells that the records have on which all but a few agree; 0: they do not agree, or are too few. */
export function widthBehind(sample: CsvSample, dialect: CsvDialect, end: number): number {
  const { width, share, records } = sample.score(dialect, end);
  return records.length < leastRecords || share < leastShare ? 0 : width;
}

function hasNames(cells: readonly string[]): boolean {
  return cells.every((cell) => cell.trim() !== '');
}

/** The cells of a line that is one record; null if it is not. */
function cutWhole(line: Buffer, dialect: CsvDialect): string[] | null {
  const cutter = new CsvCutter(line, true, dialect);
  return cutter.next(0) === line.length && !cutter.isBad ? cutter.cells() : null;
}

/** The cells of the line with one delimiter more, if a quote stands beside it; null if that makes no record, or several ones. */
function insertDelimiter(line: Buffer, dialect: CsvDialect, columns: number): string[] | null {
  const delimiter = Buffer.from(dialect.delimiter);
  const found = new Map<string, string[]>();
  let quotes = 0;
  for (let at = line.indexOf('"'); at >= 0; at = line.indexOf('"', at + 1)) {
    if (++quotes > MAX_STRAY_QUOTES) return null;
    for (const gap of [at, at + 1]) {
      const mended = Buffer.concat([line.subarray(0, gap), delimiter, line.subarray(gap)]);
      const cells = cutWhole(mended, dialect);
      if (cells?.length === columns && hasNames(cells)) found.set(JSON.stringify(cells), cells);
    }
  }
  const [only, another] = found.values();
  return only === undefined || another !== undefined ? null : only;
}

/** Null if it cannot be read so. */
function readStrayHeader(line: Buffer, { delimiter }: CsvDialect, columns: number): string[] | null {
  // What follows is known to be records: no cell of the header goes on in them.
  const cells = readStrayQuote(line.toString('latin1'), delimiter, columns, true);
  return cells?.map((cell) => Buffer.from(cell, 'latin1').toString('utf8')) ?? null;
}

function firstLine(bytes: Buffer): { stop: number; end: number } {
  let stop = 0;
  while (stop < bytes.length && bytes[stop] !== LF && bytes[stop] !== CR) stop++;
  const isPair = bytes[stop] === CR && bytes[stop + 1] === LF;
  return { stop, end: Math.min(stop + (isPair ? 2 : 1), bytes.length) };
}

/**
 * Of a table drawn for reading, as Markdown, `mysql`, psql and sqlcmd have it: cells are padded, and a ruler is no record.
 * @throws InputError `invalid_field` if the line below the header is a ruler.
 */
export function refuseRuler({ bytes }: CsvSample, { end }: Place): void {
  const line = bytes.toString('latin1', end, end + maxRulerBytes).split(/[\r\n]/, 1)[0] ?? '';
  if (!/^[-=+:|,;\s]+$/.test(line) || !/---|===/.test(line)) return;
  const message =
    'The line below the header is a ruler, so this is a table drawn for reading, whose cells may be padded with blanks: ask the program that wrote it for CSV, or say with comment how such lines begin, and cells are taken as they are';
  throw inputError('invalid_field', message, 'comment');
}

/**
 * Whether the cells of the header without a name are delimiters too many and no columns: every record has as many cells as there are
 * names, none as many as the header.
 */
export function hasSpareCells(sample: CsvSample, dialect: CsvDialect, { cells, end }: Place): boolean {
  const named = withoutSpareCells(cells).length;
  if (named === cells.length || named === 0) return false;
  if (sample.measure(dialect, end, cells.length, false).good > 0) return false;
  const { good, bad } = sample.measure(dialect, end, named, false);
  return bad.size === 0 && good >= leastRecords;
}

export function withoutSpareCells(cells: readonly string[]): string[] {
  return cells.filter((cell) => cell.trim() !== '');
}
