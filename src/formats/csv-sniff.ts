/*
 * Detects the dialect of a CSV from its first bytes. The caller's options take precedence. RFC 4180
 * with the most frequent delimiter of the first record is kept if its header has an id column and
 * fits the records. Another dialect is chosen if only its header has an id column, or if it fits
 * more records and breaks none.
 */

import { inputError } from '../base/errors.ts';
import { named, say, using } from '../base/sentence.ts';
import { positionOf } from '../domain/column-map.ts';
import type { SourceOptions } from '../domain/source.ts';
import { findNames, needsPositions, startsWithData } from './csv-cell-kinds.ts';
import type { CsvDialect } from './csv-dialect.ts';
import { type CsvReading, isNamed, isNumbered, namesId } from './csv-header.ts';
import {
  bestDialect,
  commonDelimiters,
  delimiters,
  distinctiveDelimiters,
  frequentDelimiter,
  hasOtherQuotes,
  readSeparatorLine,
  refineDialect,
  type ScoredDialect,
  scoreDialects,
} from './csv-refine.ts';
import { CsvSample, type Measure, type Place } from './csv-sample.ts';

/** Minimum share and minimum number of the records that another dialect must fit. */
const leastShare = 0.9;
const leastRecords = 2;
/** Number of records that are needed to infer the usual content of a column. */
const leastRegular = 10;
/** A ruler such as `---+---` is searched for in this many bytes after the header. */
const maxRulerBytes = 4_096;

export interface CsvHints {
  readonly source: SourceOptions;
  readonly map: Readonly<Record<string, string>>;
}

/** Beginning of a CSV, without leading blank lines and lines to skip. */
export interface CsvBeginning {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
  readonly hints: CsvHints;
}

/** `start` is the position of the header, or of the first record if there is no header. */
export interface Sniffed {
  readonly reading: CsvReading;
  readonly start: number;
  /** Lines before `start`. */
  readonly lines: number;
  /** True if the first of these lines is Excel's `sep=` line, which `notes` then mentions. */
  readonly hasSeparatorLine: boolean;
  readonly notes: readonly string[];
}

interface Candidate {
  readonly dialect: CsvDialect;
  readonly place: Place;
}

/**
 * Detects the dialect and the header of a CSV file.
 * @throws InputError `invalid_field` if several dialects or headers are equally likely. The error
 * names the option that decides.
 */
export function sniffCsv({ bytes, isWhole, hints }: CsvBeginning): Sniffed {
  const separator = readSeparatorLine(bytes, isWhole);
  if (separator === null) return new Sniffer(bytes, isWhole, hints).sniff();
  const { delimiter = separator.delimiter } = hints.source;
  const rest = bytes.subarray(separator.end);
  const sniffed = new Sniffer(rest, isWhole, { ...hints, source: { ...hints.source, delimiter } }).sniff();
  const notes = [`The first line, sep=${separator.delimiter}, was passed over.`, ...sniffed.notes];
  return {
    ...sniffed,
    start: sniffed.start + separator.end,
    lines: sniffed.lines + 1,
    hasSeparatorLine: true,
    notes,
  };
}

class Sniffer {
  readonly #sample: CsvSample;
  readonly #hints: CsvHints;
  readonly #rows: number;

  constructor(bytes: Buffer, isWhole: boolean, hints: CsvHints) {
    this.#sample = new CsvSample(bytes, isWhole, hints.map);
    this.#hints = hints;
    this.#rows = hints.source.headerRows ?? 1;
  }

  sniff(): Sniffed {
    const { header } = this.#hints.source;
    if (header === 'none') return this.#headless(this.#bestDialect());
    if (header !== undefined) return this.#withHeaderAt(header);
    const plain = this.#plain();
    const place = this.#sample.findFirst(plain, this.#rows);
    if (this.#mapsPositions() && !namesId(place?.cells ?? [])) return this.#byPosition(plain, place);
    if (place !== null) return this.#withNamed({ dialect: plain, place });
    const candidates = this.#namedCandidates();
    const [best] = candidates.filter((each) => !each.place.isDoubtful);
    if (best !== undefined) return this.#withNamed(best);
    const [doubtful] = candidates;
    if (doubtful !== undefined) throw this.#doubtfulHeader(doubtful.place);
    return this.#withUnknownHeader(plain);
  }

  #plain(): CsvDialect {
    const { delimiter } = this.#hints.source;
    return this.#dialect(delimiter ?? frequentDelimiter(this.#sample.bytes), '"');
  }

  #dialect(delimiter: string, quote: string): CsvDialect {
    const { source } = this.#hints;
    const mark = source.quote ?? quote;
    return {
      delimiter,
      quote: mark,
      escape: source.escape ?? mark,
      comment: source.comment ?? '',
      nulls: source.nulls ?? [],
    };
  }

  #dialects(among: readonly string[]): CsvDialect[] {
    const { delimiter, quote } = this.#hints.source;
    const { bytes } = this.#sample;
    const present = among.filter((each) => bytes.includes(each === 'blanks' ? ' ' : each));
    const candidates = delimiter === undefined ? present : [delimiter];
    const quotes = quote === undefined ? ['"', ...(bytes.includes("'") ? ["'"] : [])] : [quote];
    return quotes.flatMap((mark) => candidates.map((each) => this.#dialect(each, mark)));
  }

  /** If a backslash precedes a quote in the sample, dialects with backslash escapes are added. */
  #escapedDialects(): CsvDialect[] {
    const isOpen = this.#hints.source.escape === undefined;
    return this.#dialects(delimiters).flatMap((dialect) => {
      const mayEscape = isOpen && dialect.quote !== '' && this.#sample.bytes.includes(`\\${dialect.quote}`);
      return mayEscape ? [dialect, { ...dialect, escape: '\\' }] : [dialect];
    });
  }

  /** Returns the dialects whose header has an id column and fits the records best. */
  #namedCandidates(): Candidate[] {
    const rows = this.#hints.source.headerRows === undefined ? [1, 2, 3] : [this.#rows];
    for (const count of rows) {
      const candidates = this.#escapedDialects().flatMap((dialect) => {
        const place = this.#sample.findHeader(dialect, count);
        return place === null || hasOtherQuotes(dialect, place) ? [] : [{ dialect, place }];
      });
      const fitting = candidates.map((each) => ({ ...each, share: this.#share(each) }));
      // If two dialects fit equally well, the dialect with fewer columns comes first, because the
      // other dialect splits inside the delimiter.
      const sorted = fitting.toSorted(
        (a, b) => b.share - a.share || a.place.cells.length - b.place.cells.length,
      );
      const [best] = sorted;
      // A worse candidate is left out even if its header is less doubtful.
      const isAsGood = ({ share, place }: Candidate & { readonly share: number }) =>
        share === best?.share && place.cells.length === best.place.cells.length;
      if (best !== undefined) return sorted.filter(isAsGood);
    }
    return [];
  }

  /**
   * Returns the result for a candidate whose column names are known.
   * @throws InputError if most records do not fit, but another delimiter splits nearly all into
   * equally many cells
   */
  #withNamed(candidate: Candidate): Sniffed {
    const { dialect, place } = candidate;
    const isOpen = this.#hints.source.delimiter === undefined && 2 * this.#share(candidate) < 1;
    const others = isOpen ? commonDelimiters.filter((each) => !dialect.delimiter.includes(each)) : [];
    const other = others.find((delimiter) => {
      const { width, share, records } = this.#sample.score({ ...dialect, delimiter }, place.end);
      return width > 1 && share >= leastShare && records.length >= leastRecords;
    });
    if (other === undefined) return this.#withHeader(candidate);
    const current = JSON.stringify(dialect.delimiter);
    const better = JSON.stringify(other);
    const message = `The header names an id if its delimiter is ${current}, but most records do not fit that, and nearly all are alike at ${better}. Write both with the same delimiter, or say with delimiter that it is ${current}`;
    throw inputError('invalid_field', message, 'delimiter');
  }

  #share({ dialect, place }: Candidate): number {
    const { good, bad } = this.#measure(dialect, place);
    return good / Math.max(1, good + bad.size);
  }

  #measure(dialect: CsvDialect, { end, cells }: Place): Measure {
    return this.#sample.measure(dialect, end, cells.length, this.#hints.source.ragged === 'pad');
  }

  #withHeader({ dialect, place }: Candidate): Sniffed {
    const { source } = this.#hints;
    if (source.comment === undefined) this.#refuseRuler(place);
    this.#refuseSpareCells(dialect, place);
    const { cells } = place;
    const refined = refineDialect(this.#sample, dialect, place, source);
    const notes =
      place.rows === 1 ? [] : [`${place.rows} records make the header; their names are joined by blanks.`];
    const sniffed = this.#sniffed(refined, place, notes);
    const { good, exact, lastEmpty } = this.#sample.measure(refined, place.end, cells.length, false);
    if (source.ragged === undefined && good > 0 && exact === 0) throw shortHeader(cells.length);
    const isLastEmpty = exact >= leastRegular && 2 * lastEmpty > exact;
    const reading = {
      ...sniffed.reading,
      ...(isLastEmpty && { lastColumn: 'empty' as const }),
    };
    return { ...sniffed, reading };
  }

  /**
   * Refuses a header that has more delimiters than its records.
   * @throws InputError if the header has more delimiters than any record.
   */
  #refuseSpareCells(dialect: CsvDialect, { cells, end }: Place): void {
    const namedCells = cells.filter(isNamed).length;
    if (namedCells === cells.length || namedCells === 0) return;
    if (this.#sample.measure(dialect, end, cells.length, false).good > 0) return;
    const { good, bad } = this.#sample.measure(dialect, end, namedCells, false);
    if (bad.size === 0 && good >= leastRecords) throw inputError('invalid_field', spareCells, 'header');
  }

  /**
   * Refuses a table drawn for human readers (Markdown, `mysql`, psql, sqlcmd): its cells are
   * padded, and its ruler is not a record.
   * @throws InputError `invalid_field`
   */
  #refuseRuler({ end }: Place): void {
    const line = this.#sample.bytes.toString('latin1', end, end + maxRulerBytes).split(/[\r\n]/, 1)[0] ?? '';
    if (!/^[-=+:|,;\s]+$/.test(line) || !/---|===/.test(line)) return;
    const message =
      'The line below the header is a ruler, so this is a table drawn for reading, whose cells may be padded with blanks: ask the program that wrote it for CSV, or say with comment how such lines begin, and cells are taken as they are';
    throw inputError('invalid_field', message, 'comment');
  }

  #sniffed(
    dialect: CsvDialect,
    place: Pick<Place, 'start' | 'lines' | 'rows'>,
    notes: readonly string[],
    columns = 0,
  ): Sniffed {
    const { source } = this.#hints;
    const reading = {
      dialect,
      ragged: source.ragged ?? 'refuse',
      headerRows: place.rows,
      columns,
      ...(source.types !== undefined && { types: source.types }),
    };
    return { reading, start: place.start, lines: place.lines, hasSeparatorLine: false, notes };
  }

  #withHeaderAt(number: number): Sniffed {
    const candidates = this.#escapedDialects().flatMap((dialect) => {
      const place = this.#sample.findRecord(dialect, number, this.#rows);
      return place === null ? [] : [{ dialect, place }];
    });
    const withHeader = candidates.filter((each) => this.#sample.isHeader(each.place.cells));
    const eligible =
      withHeader.length > 0
        ? withHeader
        : candidates.filter(
            (each) =>
              commonDelimiters.some((d) => d === each.dialect.delimiter) ||
              this.#hints.source.delimiter !== undefined,
          );
    const [best] = eligible
      .map((each) => ({ ...each, share: this.#share(each) }))
      .toSorted((a, b) => b.share - a.share);
    if (best !== undefined) return this.#withHeader(best);
    const message = `The file has fewer than ${number + this.#rows - 1} records within what is looked at`;
    throw inputError('invalid_field', message, 'header');
  }

  #mapsPositions(): boolean {
    const names = Object.keys(this.#hints.map);
    return names.length > 0 && names.every((name) => /^(?:column_)?[1-9]\d{0,4}$/.test(name));
  }

  /** Numbers in the first record may be positions in a header, or values. */
  #byPosition(plain: CsvDialect, place: Place | null): Sniffed {
    const best = this.#bestDialect();
    const { score } = best;
    if (startsWithData(score.records, score.width)) return this.#headless(best);
    const positions = Object.keys(this.#hints.map).map((name) => positionOf(name));
    if (place !== null && (isNumbered(place.cells) || needsPositions(score.records, score.width, positions)))
      return this.#withHeader({ dialect: plain, place });
    const message = say`map names columns by their positions, and the first record may be a header; say ${named('header', 'none')} if it is data, otherwise ${named('header', '1')}, and map names, or column_1, column_2, …`;
    throw inputError('invalid_field', message, 'header');
  }

  #headless({ dialect: base, score: { width } }: ScoredDialect): Sniffed {
    const cells = Array.from({ length: width }, () => '');
    const place = { start: 0, lines: 0, end: 0, rows: 0, cells, isDoubtful: false };
    const source = { delimiter: base.delimiter, ...this.#hints.source };
    const dialect = refineDialect(this.#sample, base, place, source);
    const note = 'The file has no header; its columns are named by position.';
    return this.#sniffed(dialect, place, [note], width);
  }

  #bestDialect(): ScoredDialect {
    const best = bestDialect(scoreDialects(this.#sample, this.#dialects(distinctiveDelimiters)));
    const dialect = this.#plain();
    return best ?? { dialect, score: this.#sample.score(dialect), points: 0 };
  }

  /**
   * Chooses a header for the error about a missing id, which lists its columns. The header is the
   * first record if at least half of the records fit it. Otherwise, it is the first record of
   * possible names in the likeliest dialect.
   */
  #withUnknownHeader(plain: CsvDialect): Sniffed {
    const first = this.#sample.findRecord(plain, 1, this.#rows);
    const isTable =
      first !== null && first.cells.length > 1 && 2 * this.#share({ dialect: plain, place: first }) >= 1;
    // A malformed first record is chosen, so that the error describes it.
    const [best] =
      isTable || first?.cells.length === 0
        ? []
        : scoreDialects(this.#sample, this.#dialects(distinctiveDelimiters));
    const index = best === undefined ? -1 : findNames(best.score.records, best.score.width);
    if (best !== undefined && index >= 0 && index + 1 < best.score.records.length) {
      const place = this.#sample.findRecord(best.dialect, index + 1, 1);
      if (place !== null) return this.#withHeader({ dialect: best.dialect, place });
    }
    return this.#sniffed(plain, first ?? { start: 0, lines: 0, rows: this.#rows }, []);
  }

  #doubtfulHeader({ lines }: Place): Error {
    const message = say`Line ${lines + 1} names an id column, but records stand before it that look like its own; say which one is the header with ${named('header', '1')}, 2, …`;
    return inputError('invalid_field', message, 'header');
  }
}

function shortHeader(columns: number): Error {
  const message = say`Every record has an empty cell behind the ${columns} columns of the header. Either each line ends with a delimiter, or the header lacks one and values would be stored under the wrong names. If the header is right, say ${named('ragged', 'pad')}`;
  return inputError('invalid_field', message, 'header');
}

const spareCells = say`The header has cells without a name for which no record has a cell. Remove its surplus delimiters, or skip it with ${named('header', 'none')} and ${named('skip_rows', '1')}, and name each column ${using('map', '1=user_id')}`;
