import { inputError } from '../domain/errors.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { CsvDialect } from './csv-dialect.ts';
import type { CsvSample, Measure, Place, Score } from './csv-sample.ts';
import { CR, LF } from './record-scanner.ts';

/** If so many records, and such a share of them, have a quote inside a cell and none has quotes around one, quotes mean nothing. */
const leastStrayQuotes = 3;
const leastStrayShare = 0.02;
/** So many lines behind the header make `#` the mark of a comment. */
const leastComments = 2;
/** A file differs from what its header shows in two traits at most. */
const maxTraits = 2;

/** Another way to cut the records, and the records that it must mend to be believed. */
interface Variant {
  readonly dialect: CsvDialect;
  readonly least: (plain: Measure, variant: Measure) => number;
}

/**
 * Adds to the dialect what its header does not show: quotes, escapes, comments, blanks after the delimiter. A trait is believed if
 * every record that it cuts in another way becomes well-formed.
 */
export function refineDialect(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  source: SourceOptions,
): CsvDialect {
  const isPadded = source.ragged === 'pad';
  const measure = (dialect: CsvDialect, from: Place) =>
    sample.measure(dialect, from.end, from.cells.length, isPadded);
  let dialect = base;
  if (source.delimiter === undefined) dialect = widenDelimiter(sample, base, place, measure);
  let found = measure(dialect, place);
  const quoted = findQuotes(sample, dialect, place, source, found, measure);
  if (quoted !== null) {
    dialect = quoted;
    found = measure(dialect, place);
  }
  for (let trait = 0; trait < maxTraits && found.bad.size > 0; trait++) {
    const better = variants(sample, dialect, source)
      .map(({ dialect: other, least }) => ({ dialect: other, least, measured: measure(other, place) }))
      .find((each) => mends(each.measured, found, each.least(found, each.measured)));
    if (better === undefined) break;
    dialect = better.dialect;
    found = better.measured;
  }
  return dialect;
}

/**
 * Returns the dialect with ' for a quote if it stands around all that the records hold: read in any other way, the file would lose
 * no record, but each cell would keep its quotes. Or if it stands around names of the header, and more records can be read with it
 * than without; the records that it harms have such quotes inside, and are refused.
 */
function findQuotes(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  source: SourceOptions,
  plain: Measure,
  measure: (dialect: CsvDialect, place: Place) => Measure,
): CsvDialect | null {
  if (source.quote !== undefined || base.quote !== '"' || plain.quoted > 0) return null;
  if (!sample.bytes.includes("'")) return null;
  for (const mark of source.escape === undefined ? ["'", '\\'] : [source.escape]) {
    const dialect = { ...base, quote: "'", escape: mark };
    const found = measure(dialect, place);
    const isProper = mark !== '\\' || found.oddEscapes === 0;
    if (isProper && hasQuotedNames(place) && found.good > plain.good) return dialect;
    if (mends(found, plain, 0) && sample.isQuoted(dialect, place)) return dialect;
  }
  return null;
}

function hasQuotedNames({ cells }: Place): boolean {
  return cells.some((cell) => /^\s*'.+'\s*$/s.test(cell));
}

/** Returns the dialect with the blanks that stand beside every delimiter, or with the delimiter repeated if it is everywhere. */
function widenDelimiter(
  sample: CsvSample,
  base: CsvDialect,
  place: Place,
  measure: (dialect: CsvDialect, place: Place) => Measure,
): CsvDialect {
  const { delimiter } = base;
  if (delimiter.length !== 1 || delimiter === ' ') return base;
  const plain = measure(base, place);
  for (const wider of [delimiter.repeat(2), `${delimiter} `, ` ${delimiter} `]) {
    if (!sample.bytes.includes(wider)) continue;
    const dialect = { ...base, delimiter: wider };
    const header = sample.recordAt(dialect, place.start);
    if (!sample.isHeader(header)) continue;
    // Nothing of the shorter delimiter is left in the header, and no further blank.
    const isWhole = header.every((cell) => !cell.includes(delimiter) && cell.trim() === cell);
    if (!isWhole || header.length < 2) continue;
    const found = measure(dialect, { ...place, cells: header });
    if (found.good > 0 && found.good >= plain.good && found.bad.size <= plain.bad.size) return dialect;
  }
  return base;
}

/** Tells whether the header has " around its names, and the dialect takes them for part of these. */
export function hasOtherQuotes({ quote }: CsvDialect, { cells }: Place): boolean {
  return quote === "'" && cells.some((cell) => /^\s*"|"\s*$/.test(cell));
}

function variants(sample: CsvSample, base: CsvDialect, source: SourceOptions): Variant[] {
  const { bytes } = sample;
  const isOpen = source.quote === undefined;
  const found: Variant[] = [];
  if (isOpen && base.quote === '"' && bytes.includes("'")) {
    const mark = source.escape ?? "'";
    // A file that has `"` round its cells has no other quotes.
    const least = (plain: Measure) => (plain.quoted === 0 ? 1 : Number.POSITIVE_INFINITY);
    found.push({ dialect: { ...base, quote: "'", escape: mark }, least });
  }
  if (
    source.escape === undefined &&
    base.escape !== '\\' &&
    base.quote !== '' &&
    bytes.includes(`\\${base.quote}`)
  )
    found.push({ dialect: { ...base, escape: '\\' }, least: properEscapes });
  if (source.comment === undefined && base.comment === '' && bytes.includes('#')) {
    const least = ({ goodHashes, badHashes }: Measure) =>
      goodHashes === 0 && badHashes >= leastComments ? leastComments : Number.POSITIVE_INFINITY;
    found.push({ dialect: { ...base, comment: '#' }, least });
  }
  if (isOpen && base.quote === '"' && !hasOpeningQuote(bytes, base.delimiter)) {
    const least = (plain: Measure) => {
      const share = leastStrayShare * (plain.good + plain.bad.size);
      return plain.quoted === 0 ? Math.max(leastStrayQuotes, share) : Number.POSITIVE_INFINITY;
    };
    found.push({ dialect: { ...base, quote: '', escape: '' }, least });
  }
  return found;
}

/** Tells whether a quote stands where a cell may start: then quotes mean something, however wrongly they are placed. */
function hasOpeningQuote(bytes: Buffer, delimiter: string): boolean {
  const last = delimiter === 'blanks' ? ' ' : delimiter.slice(-1);
  const before = new Set([...Buffer.from(last), LF, CR]);
  for (let at = bytes.indexOf('"'); at >= 0; at = bytes.indexOf('"', at + 1)) {
    if (at === 0 || before.has(bytes[at - 1] ?? LF)) return true;
  }
  return false;
}

/** Requires that no backslash stands before what needs none: it may be part of a value, which would lose it. */
function properEscapes(_: Measure, { oddEscapes }: Measure): number {
  return oddEscapes === 0 ? 1 : Number.POSITIVE_INFINITY;
}

/** Tells whether so many records are mended and none is harmed. */
function mends(variant: Measure, plain: Measure, least: number): boolean {
  for (const start of variant.bad) if (!plain.bad.has(start)) return false;
  const mended = plain.bad.size - variant.bad.size;
  return mended >= least && variant.good >= plain.good;
}

/** The usual delimiters, in order of preference for a header in which several are equally frequent. */
export const commonDelimiters = [',', ';', '\t', '|'] as const;

/** All delimiters that are looked for between names. */
export const delimiters = [
  ...commonDelimiters,
  ...['^', '~', ':', '\x01', '\x1f', '~|~', '|~|', '^|^', '||', '::', ';;', '^^', '~~', '\t\t'],
  // A quote behind the blank keeps the shorter one from being cut at.
  ...[', ', '; ', '| ', ' | ', ' ', 'blanks'],
] as const;

/** The delimiters that tell records from texts even if no name is known. */
export const tellingDelimiters: readonly string[] = [...commonDelimiters, '^', '~', '||', ' ', 'blanks'];

const QUOTE = 34;

/** Reads the line by which Excel learns the delimiter: `sep=;`. */
export function readSeparatorLine(
  bytes: Buffer,
  isWhole: boolean,
): { delimiter: string; end: number } | null {
  const found = /^(?:"sep=([!-~\t ])"|sep=([!-~\t ]))(\r\n|\n|\r)/i.exec(bytes.toString('latin1', 0, 10));
  if (found === null || (bytes.length === found[0].length && !isWhole)) return null;
  return { delimiter: (found[1] ?? found[2]) as string, end: found[0].length };
}

/** Returns the most frequent of the usual delimiters in the first record, outside quotes; `,` for a single column. */
export function frequentDelimiter(bytes: Buffer): string {
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
  return commonDelimiters.reduce<string>((best, each) => (count(each) > count(best) ? each : best), ',');
}

/** A dialect, and how well it cuts the records if no names tell. */
export interface Cut {
  readonly dialect: CsvDialect;
  readonly score: Score;
  readonly points: number;
}

/** A cut with fewer points is none: it gives records of one cell, or of any number. */
const leastPoints = 0.4;
/** Another cut with more than this share of the best one's points is as likely. */
const clearShare = 0.95;

/** Returns the dialects that cut records into several cells, evenly and into cells of known kinds, the best first. */
export function findCuts(sample: CsvSample, dialects: readonly CsvDialect[]): Cut[] {
  const scored = dialects.map((dialect) => {
    const score = sample.score(dialect);
    return { dialect, score, points: score.width > 1 ? score.share ** 2 * (0.3 + 0.7 * score.known) : 0 };
  });
  return scored.filter((each) => each.points >= leastPoints).toSorted((a, b) => b.points - a.points);
}

/**
 * Returns the first of the cuts, or `null`.
 * @throws InputError `invalid_field` if another one is as good.
 */
export function bestCut([best, ...others]: readonly Cut[]): Cut | null {
  if (best === undefined) return null;
  const equal = others.find(
    (each) => each.points > clearShare * best.points && isOther(each.score, best.score),
  );
  if (equal === undefined) return best;
  const [one, two] = [best, equal].map(({ dialect }) => JSON.stringify(dialect.delimiter));
  const message = `The records can be cut at ${one} as well as at ${two}; say which with delimiter`;
  throw inputError('invalid_field', message, 'delimiter');
}

function isOther(a: Score, b: Score): boolean {
  return a.width !== b.width || JSON.stringify(a.records) !== JSON.stringify(b.records);
}
