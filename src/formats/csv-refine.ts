import { inputError } from '../base/errors.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Measure, Place, Score } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';

type IsBetter = (other: Measure, plain: Measure) => boolean;

/**
 * Detects longer delimiters, single quotes and backslash escapes in the records after the header.
 * Changes the dialect only if the records then fit at least as well.
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
 * Tries `'` as the quote, and refuses it if `"` encloses a cell. If `'` encloses a name, the
 * dialect is better if it fits more records than `base`. In all other cases, the dialect must break
 * no record. The dialect must also correct a record, or `'` must enclose every value.
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
        return (
          corrects(other, plain, 1) || (corrects(other, plain, 0) && other.quoted >= 2 && other.bare === 0)
        );
      },
    ];
  }
}

/**
 * Tries a backslash as the escape. The dialect is refused if a backslash precedes a character that
 * needs no escape, because such a backslash may be part of a value.
 */
function* backslashes(
  { bytes }: CsvSample,
  base: CsvDialect,
  _: Place,
  source: SourceOptions,
): Generator<[CsvDialect, IsBetter]> {
  const isOpen = source.escape === undefined && base.escape !== '\\' && base.quote !== '';
  if (!isOpen || !bytes.includes(`\\${base.quote}`)) return;
  yield [{ ...base, escape: '\\' }, (other, plain) => other.oddEscapes === 0 && corrects(other, plain, 1)];
}

/**
 * Tries the delimiter doubled, with a blank after it, and between two blanks. Returns the first
 * dialect that fits the records at least as well as `base`, otherwise `base`.
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
    const isWhole = header.every((cell) => !cell.includes(delimiter) && cell.trim() === cell);
    if (!isWhole || header.length < 2 || !sample.isHeader(header)) continue;
    const result = measure(dialect, header);
    if (result.good > 0 && result.good >= plain.good && result.bad.size <= plain.bad.size) return dialect;
  }
  return base;
}

/** True if names are enclosed in `"`, which the dialect treats as part of the names. */
export function hasOtherQuotes({ quote }: CsvDialect, { cells }: Place): boolean {
  return quote === "'" && cells.some((cell) => /^\s*"|"\s*$/.test(cell));
}

/** Returns true if `other` corrects at least `minCount` records of `plain` and breaks none. */
function corrects(other: Measure, plain: Measure, minCount: number): boolean {
  for (const start of other.bad) if (!plain.bad.has(start)) return false;
  return plain.bad.size - other.bad.size >= minCount && other.good >= plain.good;
}

/**
 * Common delimiters. If several of them are equally frequent in a header, the first in this list is
 * chosen.
 */
export const commonDelimiters = [',', ';', '\t', '|'] as const;

export const delimiters = [
  ...commonDelimiters,
  ...['^', '~', ':', '\x01', '\x1f', '~|~', '|~|', '^|^', '||', '::', ';;', '^^', '~~', '\t\t'],
  // Delimiters with blanks, which are part of the delimiter. If a blank began the next cell, a
  // quote after the blank would not open the cell.
  ...[', ', '; ', '| ', ' | ', ' ', 'blanks'],
] as const;

/**
 * Delimiters that are tried if no column name is known. Only these delimiters distinguish records
 * from prose reliably enough.
 */
export const distinctiveDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];

const QUOTE = 34;

/** Reads the line with which Excel names the delimiter, such as `sep=;`. */
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

/**
 * A dialect and its score. Scores are used if column names are unknown. `points` measures how
 * uniformly the dialect splits the records.
 */
export interface ScoredDialect {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/**
 * Minimum points of a possible dialect. A dialect with fewer points splits records into one cell
 * each, into varying numbers of cells, or into cells that hardly ever have a known kind.
 */
const minPoints = 0.4;
/** A dialect with more than this share of the best dialect's points is equally likely. */
const clearShare = 0.95;

/**
 * Returns dialects that split most records into equally many cells (at least two) of known kinds,
 * best first.
 */
export function scoreDialects(sample: CsvSample, dialects: readonly CsvDialect[]): ScoredDialect[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= minPoints).toSorted((a, b) => b.points - a.points);
}

/**
 * Returns the first of the dialects, or `null` if there is none.
 * @throws InputError `invalid_field` if a dialect that splits the records differently is equally
 * likely
 */
export function bestDialect([best, ...others]: readonly ScoredDialect[]): ScoredDialect | null {
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
