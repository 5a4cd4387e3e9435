import { inputError } from '../../base/errors.ts';
import { KiB, MAX_HEADER_BYTES, MiB } from '../../base/limits.ts';
import type { CsvForm } from '../../formats/csv-dialect.ts';
import {
  type CsvHeader,
  type CsvReading,
  headerTooLong,
  readCsvHeader,
  skipLines,
} from '../../formats/csv-header.ts';
import { type CsvBeginning, type CsvHints, type Sniffed, sniffCsv } from '../../formats/csv-sniff.ts';
import { CR, LF } from '../../formats/record-scanner.ts';

export const MAX_BLANK_BYTES = 64 * KiB;
const DIALECT_SAMPLE_BYTES = MiB;

/** Reads the lines before the first record of a CSV. */
export class CsvOpening {
  header: CsvHeader | null = null;
  headerLine: number | null = null;
  readonly notes: string[] = [];
  /** Dialect of the CSV. Set together with `header`. */
  form: CsvForm | null = null;

  /** Beginning of the file. Set if the caller must detect the dialect and pass it to `learn`. */
  sample: CsvBeginning | null = null;

  readonly #hints: CsvHints;
  readonly #sniffedBytes: number;
  #reading: CsvReading | null = null;
  #learned: Sniffed | null = null;
  /** Lines that are still to be skipped. */
  #skipLines: number;
  #blankBytes = 0;
  /** Line on which the next bytes start. */
  #line = 1;

  /** If the beginning exceeds `sniffedBytes`, the caller must detect the dialect (see `sample`). */
  constructor(hints: CsvHints, sniffedBytes = Number.POSITIVE_INFINITY) {
    this.#hints = hints;
    this.#sniffedBytes = sniffedBytes;
    this.#skipLines = hints.source.skipRows ?? 0;
  }

  /**
   * Returns the numbers of consumed bytes and lines. The caller must pass the remaining bytes
   * again, followed by the next bytes. `header` is set when the next byte belongs to a record.
   * @throws InputError for an unusable header, or if the dialect is unclear
   */
  read(bytes: Buffer, final: boolean): { end: number; lines: number } {
    const firstLine = this.#line;
    const end = this.#read(bytes, final);
    return { end, lines: this.#line - firstLine };
  }

  #read(bytes: Buffer, final: boolean): number {
    const skipped = skipLines(bytes, this.#skipLines, final);
    this.#skipLines -= skipped.lines;
    this.#line += skipped.lines;
    if (skipped.isOpen) return skipped.end;
    const { end, isDone } = this.#readBlank(bytes.subarray(skipped.end), final);
    const start = skipped.end + end;
    return isDone ? start + this.#readHeader(bytes.subarray(start), final) : start;
  }

  #readBlank(bytes: Buffer, final: boolean): { end: number; isDone: boolean } {
    const blank = skipLines(bytes, null, final);
    this.#blankBytes += blank.end;
    this.#line += blank.lines;
    const pending = blank.isOpen ? bytes.length - blank.end : 0;
    if (this.#blankBytes + pending > MAX_BLANK_BYTES) {
      const message = `More than ${MAX_BLANK_BYTES} blank bytes stand before the header`;
      throw inputError('invalid_field', message, `line ${this.#line}`);
    }
    return { end: blank.end, isDone: !blank.isOpen };
  }

  learn(sniffed: Sniffed): void {
    this.sample = null;
    this.#learned = sniffed;
  }

  #sniff(bytes: Buffer, isWhole: boolean): Sniffed | null {
    const sample = { bytes, isWhole, hints: this.#hints };
    if (bytes.length <= this.#sniffedBytes) return sniffCsv(sample);
    this.sample = sample;
    return null;
  }

  #readHeader(bytes: Buffer, final: boolean): number {
    let start = 0;
    if (this.#reading === null) {
      if (!final && bytes.length < DIALECT_SAMPLE_BYTES) return 0;
      // Only bytes that could be a table should reach a sandbox.
      if (bytes.length > MAX_HEADER_BYTES) requireLineEnd(bytes.subarray(0, MAX_HEADER_BYTES + 1));
      const sniffed = this.#learned ?? this.#sniff(bytes, final);
      if (sniffed === null) return 0;
      this.#reading = sniffed.reading;
      this.notes.push(...sniffed.notes, ...this.#describePassed(sniffed));
      this.#line += sniffed.lines;
      start = sniffed.start;
    }
    const header = readCsvHeader(bytes.subarray(start), final, this.#reading);
    if (header === null) return start;
    this.header = this.#withApostrophes(header.header);
    this.form = this.#reading;
    this.notes.push(...header.notes);
    if (this.#reading.headerRows > 0) this.headerLine = this.#line;
    this.#line += header.lines;
    return start + header.end;
  }

  /** The option `apostrophes` takes precedence over what the header indicates. */
  #withApostrophes({ defused, ...header }: CsvHeader): CsvHeader {
    const { apostrophes } = this.#hints.source;
    if (apostrophes === 'remove') return { ...header, defused: true };
    return apostrophes === 'keep' || defused === undefined ? header : { ...header, defused };
  }

  #describePassed(sniffed: Sniffed): string[] {
    const separatorLines = sniffed.hasSeparatorLine ? 1 : 0;
    const first = this.#line + separatorLines;
    const lines = sniffed.lines - separatorLines;
    if (lines === 0) return [];
    const range = lines === 1 ? `Line ${first} stands` : `Lines ${first} to ${first + lines - 1} stand`;
    return [`${range} before the header and ${lines === 1 ? 'was' : 'were'} passed over.`];
  }
}

function requireLineEnd(bytes: Buffer): void {
  if (!bytes.includes(LF) && !bytes.includes(CR)) throw headerTooLong();
}
