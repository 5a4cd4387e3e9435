/*
 * Headers with one delimiter or one quote too many. Either costs the whole file, though the records behind the header say how many
 * columns there are.
 */
import { isUtf8 } from 'node:buffer';
import { MAX_VALUE_BYTES } from '../domain/limits.ts';
import { CsvCutter } from './csv-cutter.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Place } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';
import { readStrayQuote } from './stray-quotes.ts';

/** Records behind the header that must agree, and the share of all that do. */
const leastRecords = 2;
const leastShare = 0.9;

/**
 * The header, if it is the first line and a quote too many is all that is wrong with it: with that quote as a part of a name it has
 * as many cells as the records. Null if not.
 */
export function findStrayHeader(sample: CsvSample, dialect: CsvDialect): Place | null {
  const cutter = new CsvCutter(sample.bytes, sample.isWhole, dialect);
  if (cutter.next(0) < 0 || !cutter.isBad) return null;
  const { stop, end } = firstLine(sample.bytes);
  const { width, share, records } = sample.score(dialect, end);
  if (records.length < leastRecords || share < leastShare) return null;
  const cells = readHeaderLine(sample.bytes.subarray(0, stop), dialect, width);
  // Where the name is one that `map` or we know without the quote, it is meant without.
  const without = cells.map((cell) => (cell.startsWith('"') ? cell.slice(1) : cell));
  const meant = [cells, without].find((each) => sample.isHeader(each));
  return meant === undefined ? null : { start: 0, lines: 0, end, cells: meant, rows: 1, isDoubtful: false };
}

/** None if it cannot be read so. */
function readHeaderLine(line: Buffer, { delimiter, quote }: CsvDialect, columns: number): string[] {
  if (quote !== '"' || delimiter.length !== 1 || line.length > MAX_VALUE_BYTES || !isUtf8(line)) return [];
  // What follows is known to be records: no cell of the header goes on in them.
  const cells = readStrayQuote(line.toString('latin1'), delimiter, columns, true) ?? [];
  return cells.map((cell) => Buffer.from(cell, 'latin1').toString('utf8'));
}

function firstLine(bytes: Buffer): { stop: number; end: number } {
  let stop = 0;
  while (stop < bytes.length && bytes[stop] !== LF && bytes[stop] !== CR) stop++;
  const isPair = bytes[stop] === CR && bytes[stop + 1] === LF;
  return { stop, end: Math.min(stop + (isPair ? 2 : 1), bytes.length) };
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
