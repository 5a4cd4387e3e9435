import { inputError } from '../base/errors.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Measure, Place, Score } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';

type IsBetter = (other: Measure, plain: Measure) => boolean;

/**
 * Adds traits of the dialect that the header does not show. A trait is added only if all records
 * that it splits differently are then well-formed.
 */
export function refineDialect(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  source: SourceOptions,
): CsvDialect {
  const measure = (dialect: CsvDialect, cells = place.cells) =>
    sample.measure(dialect, place.end, cells.length, source.ragged === 'pad');
  let dialect = source.delimiter === undefined ? withBlanks(sample, base, place, measure) : base;
  let plain = measure(dialect);
  for (const traits of [singleQuotes, backslashes]) {
    for (const [other, isBetter] of traits(sample, dialect, place, source)) {
      const result = measure(other);
      if (!isBetter(result, plain)) continue;
      dialect = other;
      plain = result;
      break;
    }
  }
  return dialect;
}

/**
 * Yields dialects with `'` as the quote. If it encloses all values, it is not part of them, even if
 * the plain dialect splits every record correctly. If it encloses header names, the dialect only
 * has to fit more records than the plain one. Records that no longer fit contain such quotes and
 * are refused. If `"` encloses cells, `'` is not a quote.
 */
function* singleQuotes(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  source: SourceOptions,
): Generator<[CsvDialect, IsBetter]> {
  if (source.quote !== undefined || base.quote !== '"' || !sample.bytes.includes("'")) return;
  const isNamed = place.cells.some((cell) => /^\s*'.+'\s*$/s.test(cell));
  for (const mark of source.escape === undefined ? ["'", '\\'] : [source.escape]) {
    const dialect = { ...base, quote: "'", escape: mark };
    yield [
      dialect,
      (other, plain) => {
        if (plain.quoted > 0 || (mark === '\\' && other.oddEscapes > 0)) return false;
        if (isNamed && other.good > plain.good) return true;
        return mends(other, plain, 1) || (mends(other, plain, 0) && other.quoted >= 2 && other.bare === 0);
      },
    ];
  }
}

/**
 * Yields the dialect with backslash escapes. The dialect is rejected if a backslash escapes
 * nothing, and so may be part of a value.
 */
function* backslashes(
  { bytes }: CsvSample,
  base: CsvDialect,
  _: Place,
  source: SourceOptions,
): Generator<[CsvDialect, IsBetter]> {
  const isOpen = source.escape === undefined && base.escape !== '\\' && base.quote !== '';
  if (!isOpen || !bytes.includes(`\\${base.quote}`)) return;
  yield [{ ...base, escape: '\\' }, (other, plain) => other.oddEscapes === 0 && mends(other, plain, 1)];
}

/**
 * Adds blanks to the delimiter if blanks always surround it. Doubles the delimiter if it always
 * occurs twice.
 */
function withBlanks(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  measure: (dialect: CsvDialect, cells?: readonly string[]) => Measure,
): CsvDialect {
  const { delimiter } = base;
  if (delimiter.length !== 1 || delimiter === ' ') return base;
  const plain = measure(base);
  for (const wider of [delimiter.repeat(2), `${delimiter} `, ` ${delimiter} `]) {
    if (!sample.bytes.includes(wider)) continue;
    const dialect = { ...base, delimiter: wider };
    const header = sample.recordAt(dialect, place.start);
    // True if splitting by the longer delimiter gives names that neither contain the shorter one
    // nor begin or end with a blank.
    const isWhole = header.every((cell) => !cell.includes(delimiter) && cell.trim() === cell);
    if (!isWhole || header.length < 2 || !sample.isHeader(header)) continue;
    const result = measure(dialect, header);
    if (result.good > 0 && result.good >= plain.good && result.bad.size <= plain.bad.size) return dialect;
  }
  return base;
}

/**
 * Returns true if names are enclosed in `"` and the dialect treats these quotes as part of the
 * names.
 */
export function hasOtherQuotes({ quote }: CsvDialect, { cells }: Place): boolean {
  return quote === "'" && cells.some((cell) => /^\s*"|"\s*$/.test(cell));
}

/** Returns true if the other dialect corrects at least `least` records and breaks none. */
function mends(other: Measure, plain: Measure, least: number): boolean {
  for (const start of other.bad) if (!plain.bad.has(start)) return false;
  return plain.bad.size - other.bad.size >= least && other.good >= plain.good;
}

/**
 * Common delimiters. If several are equally frequent in a header, the one listed first is chosen.
 */
export const commonDelimiters = [',', ';', '\t', '|'] as const;

export const delimiters = [
  ...commonDelimiters,
  ...['^', '~', ':', '\x01', '\x1f', '~|~', '|~|', '^|^', '||', '::', ';;', '^^', '~~', '\t\t'],
  // These delimiters include a blank, so that a quote after the blank is at the start of the cell.
  ...[', ', '; ', '| ', ' | ', ' ', 'blanks'],
] as const;

/** Delimiters that distinguish records from prose even if no column name is known. */
export const tellingDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];

const QUOTE = 34;

/** Reads the delimiter line that Excel writes, such as `sep=;`. */
export function readSeparatorLine(
  bytes: Buffer,
  isWhole: boolean,
): { delimiter: string; end: number } | null {
  const match = /^(?:"sep=([!-~\t ])"|sep=([!-~\t ]))(\r\n|\n|\r)/i.exec(bytes.toString('latin1', 0, 10));
  if (match === null || (bytes.length === match[0].length && !isWhole)) return null;
  return { delimiter: (match[1] ?? match[2]) as string, end: match[0].length };
}

/**
 * Returns the common delimiter that is most frequent outside quotes in the first record, or `,`.
 */
export function frequentDelimiter(bytes: Buffer): string {
  const counts = new Uint32Array(256);
  let isQuoted = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (isQuoted) continue;
    else if (byte === LF || byte === CR) break;
    else counts[byte] = (counts[byte] as number) + 1;
  }
  const count = (delimiter: string) => counts[delimiter.charCodeAt(0)] as number;
  return commonDelimiters.reduce<string>((best, each) => (count(each) > count(best) ? each : best), ',');
}

/** A dialect, and how well it splits records whose column names are unknown. */
export interface Cut {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/**
 * Minimum points of a cut. With fewer points, records have only one cell, varying numbers of cells,
 * or hardly any cell of a known kind.
 */
const leastPoints = 0.4;
/** A cut counts as equally likely if it has more than this share of the best cut's points. */
const clearShare = 0.95;

/**
 * Returns the dialects that split most records into the same number of cells (at least two) of
 * known kinds. The best dialect is first.
 */
export function findCuts(sample: CsvSample, dialects: readonly CsvDialect[]): Cut[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= leastPoints).toSorted((a, b) => b.points - a.points);
}

/** @throws InputError `invalid_field` if a different cut is equally likely */
export function bestCut([best, ...others]: readonly Cut[]): Cut | null {
  if (best === undefined) return null;
  const equal = others.find(
    (each) => each.points > clearShare * best.points && isOther(each.score, best.score),
  );
  if (equal === undefined) return best;
  const one = JSON.stringify(best.dialect.delimiter);
  const two = JSON.stringify(equal.dialect.delimiter);
  const message = `The records can be cut at ${one} as well as at ${two}; say which with delimiter`;
  throw inputError('invalid_field', message, 'delimiter');
}

function isOther(a: Score, b: Score): boolean {
  return a.width !== b.width || JSON.stringify(a.records) !== JSON.stringify(b.records);
}
