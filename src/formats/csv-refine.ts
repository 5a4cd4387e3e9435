import { inputError } from '../base/errors.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Measure, Place, Score } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';

/** Returns true if the measure of another dialect is better than the plain one's. */
type IsBetter = (other: Measure, plain: Measure) => boolean;

/**
 * Adds traits that the header does not show, if every record that they cut differently is
 * well-formed.
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
 * Yields dialects with `'` as the quote. Quotes around all values are not part of them, even if the
 * plain dialect loses no record. Under header names in quotes, this dialect only has to fit more
 * records: the records that it harms have such quotes inside, and are refused. A file with `"`
 * around cells has no other quotes.
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
 * Yields the dialect with backslash escapes, unless a backslash that escapes nothing may be part of
 * a value.
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

/** Widens the delimiter by the blanks beside every one, or repeats it if it is always doubled. */
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
    // The header has neither the shorter delimiter nor a further blank.
    const isWhole = header.every((cell) => !cell.includes(delimiter) && cell.trim() === cell);
    if (!isWhole || header.length < 2 || !sample.isHeader(header)) continue;
    const result = measure(dialect, header);
    if (result.good > 0 && result.good >= plain.good && result.bad.size <= plain.bad.size) return dialect;
  }
  return base;
}

/** Returns true if names have `"` around them that the dialect reads as part of the names. */
export function hasOtherQuotes({ quote }: CsvDialect, { cells }: Place): boolean {
  return quote === "'" && cells.some((cell) => /^\s*"|"\s*$/.test(cell));
}

/** Returns true if at least `least` records are mended and none is harmed. */
function mends(other: Measure, plain: Measure, least: number): boolean {
  for (const start of other.bad) if (!plain.bad.has(start)) return false;
  return plain.bad.size - other.bad.size >= least && other.good >= plain.good;
}

/** Delimiters, the preferred one first if several are equally frequent in a header. */
export const commonDelimiters = [',', ';', '\t', '|'] as const;

export const delimiters = [
  ...commonDelimiters,
  ...['^', '~', ':', '\x01', '\x1f', '~|~', '|~|', '^|^', '||', '::', ';;', '^^', '~~', '\t\t'],
  // The blank after the delimiter prevents a cut before a quote.
  ...[', ', '; ', '| ', ' | ', ' ', 'blanks'],
] as const;

/** Delimiters that separate records from prose even if no column name is known. */
export const tellingDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];

const QUOTE = 34;

/** Reads Excel's delimiter line, such as `sep=;`. */
export function readSeparatorLine(
  bytes: Buffer,
  isWhole: boolean,
): { delimiter: string; end: number } | null {
  const match = /^(?:"sep=([!-~\t ])"|sep=([!-~\t ]))(\r\n|\n|\r)/i.exec(bytes.toString('latin1', 0, 10));
  if (match === null || (bytes.length === match[0].length && !isWhole)) return null;
  return { delimiter: (match[1] ?? match[2]) as string, end: match[0].length };
}

/** Returns the most frequent common delimiter outside quotes in the first record, or `,`. */
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

/** A dialect and how well it cuts records whose names are unknown. */
export interface Cut {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/** Least points of a cut. Fewer mean records of one cell, or of varying numbers of cells. */
const leastPoints = 0.4;
/** Share of the best points above which another cut is equally likely. */
const clearShare = 0.95;

/** Returns the dialects that cut records evenly into several cells of known kinds, best first. */
export function findCuts(sample: CsvSample, dialects: readonly CsvDialect[]): Cut[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= leastPoints).toSorted((a, b) => b.points - a.points);
}

/** Returns the best cut, or `null`. @throws InputError `invalid_field` if another is as good. */
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
