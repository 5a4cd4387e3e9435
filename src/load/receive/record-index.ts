import { CHUNK_RECORDS, MAX_RECORD_BYTES, SCAN_BYTES } from '../../base/limits.ts';
import type { ChunkRange, StoredFormat } from '../../domain/load.ts';
import { type CsvForm, marksOf, plainMarks } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import type { CsvBeginning, CsvHints, Sniffed } from '../../formats/csv-sniff.ts';
import { countLines, createLineScanner, type RecordScanner } from '../../formats/record-scanner.ts';
import { ChunkCutter, type CutterMark } from './chunk-cutter.ts';
import { CsvOpening } from './csv-opening.ts';

const noHints: CsvHints = { source: {}, map: {} };

/**
 * Record in which a cell has no closing quote yet. A later quote that closes the cell makes the
 * record longer (see `#lookForClose`).
 */
interface Doubt {
  readonly start: number;
  readonly line: number;
  readonly mark: CutterMark;
  /** Position in the file up to which the closing quote has been searched for. */
  lookedTo: number;
}

/** Counts the records of a file during its receipt, and cuts it into chunks. */
export class RecordIndex {
  readonly #opening: CsvOpening;
  readonly #window = new Window();
  readonly #cutter: ChunkCutter;
  readonly #maxRecordBytes: number;
  /** Finds the records. `null` until the header of a CSV has been read. */
  #scanner: RecordScanner | null;
  #line = 1;
  #isRewritten = false;
  /** Start of an oversized record whose end is not known yet. Otherwise -1. */
  #oversizedStart = -1;
  #oversizedLine = 0;
  /** Record whose closing quote is searched for. If the quote is found, the record is too large. */
  #doubt: Doubt | null = null;

  /** Length of a byte order mark that has not been skipped yet. */
  #skipBytes: number;
  /** The window is not scanned again until it has this size. */
  #worthLooking = 0;

  constructor(
    format: StoredFormat,
    chunkBytes: number,
    skipBytes: number,
    maxRecordBytes = MAX_RECORD_BYTES,
    hints = noHints,
    chunkRecords = CHUNK_RECORDS,
    sniffedBytes = Number.POSITIVE_INFINITY,
  ) {
    this.#opening = new CsvOpening(hints, sniffedBytes);
    const bounds = { maxBytes: chunkBytes, maxRecords: chunkRecords };
    this.#cutter = new ChunkCutter(bounds, hints.source.skipFooter ?? 0);
    this.#maxRecordBytes = maxRecordBytes;
    this.#scanner = format === 'csv' ? null : createLineScanner(maxRecordBytes);
    this.#skipBytes = skipBytes;
  }

  /**
   * Beginning of the file. Set if the caller must detect the dialect. No byte is then read until
   * `learn` is called.
   */
  get sample(): CsvBeginning | null {
    return this.#opening.sample;
  }

  /** Sets the dialect that the caller has detected. The caller must call `add` or `end` next. */
  learn(sniffed: Sniffed): void {
    this.#opening.learn(sniffed);
    this.#worthLooking = 0;
  }

  /** Header of a CSV. `null` until the header is read, and for NDJSON. */
  get header(): CsvHeader | null {
    return this.#opening.header;
  }

  get form(): CsvForm | null {
    return this.#opening.form;
  }

  get headerLine(): number | null {
    return this.#opening.headerLine;
  }

  get notes(): readonly string[] {
    return this.#opening.notes;
  }

  get rows(): number {
    return this.#cutter.rows;
  }

  get chunks(): readonly ChunkRange[] {
    return this.#cutter.chunks;
  }

  /**
   * Must be called only for a CSV that sluice rewrote. `line` is the line of the first record in
   * the received file.
   */
  open(header: CsvHeader, line: number): void {
    this.#scanner = createCsvScanner(plainMarks(header), this.#maxRecordBytes);
    this.#isRewritten = true;
    this.#line = line;
  }

  /** Adds bytes in steps of SCAN_BYTES. @throws InputError for an unusable header */
  *add(bytes: Buffer): Generator<void> {
    for (let at = 0; at < bytes.length; at += SCAN_BYTES) {
      yield;
      this.#window.append(bytes.subarray(at, at + SCAN_BYTES));
      if (this.#window.bytes.length < this.#worthLooking) continue;
      yield* this.#advance(false);
      // An incomplete record is scanned again only when its size has doubled, so the total time
      // remains linear.
      this.#worthLooking = 2 * this.#window.bytes.length;
    }
  }

  /**
   * Reads the remaining bytes and ends the last chunk. Must be called after the last byte, and
   * again after each `learn`.
   */
  *end(): Generator<void> {
    yield* this.#advance(true);
    this.#cutter.close();
  }

  *#advance(final: boolean): Generator<void> {
    if (this.#skipBytes > 0) {
      if (this.#window.bytes.length < this.#skipBytes) return;
      this.#window.consume(this.#skipBytes);
      this.#skipBytes = 0;
    }
    this.#scanner ??= this.#readHeader(final);
    if (this.#scanner === null) return;
    while (this.#step(this.#scanner, final)) yield;
  }

  #step(scanner: RecordScanner, final: boolean): boolean {
    if (this.#doubt !== null) this.#lookForClose(scanner, this.#doubt, final);
    if (this.#oversizedStart >= 0) return this.#skipOversized(scanner, final);
    return this.#scan(scanner, final);
  }

  #readHeader(final: boolean): RecordScanner | null {
    const { end, lines } = this.#opening.read(this.#window.bytes, final);
    this.#window.consume(end);
    this.#line += lines;
    const { form } = this.#opening;
    return form === null ? null : createCsvScanner(marksOf(form.dialect), this.#maxRecordBytes);
  }

  /** Scans about SCAN_BYTES. Returns true if `#step` must be repeated. */
  #scan(scanner: RecordScanner, final: boolean): boolean {
    const { bytes, position } = this.#window;
    let at = 0;
    let isOpen = false;
    while (at < bytes.length && !isOpen) {
      if (at >= SCAN_BYTES) {
        this.#window.consume(at);
        return true;
      }
      const end = scanner.next(bytes, at, bytes.length, final);
      if (end < 0) break;
      isOpen = scanner.isUnclosed;
      if (isOpen) this.#startDoubt(position + at, position + end, this.#line);
      if (scanner.problem === 'record_too_large') {
        this.#cutter.oversized(position + at, position + end, this.#line);
      } else if (scanner.blank) this.#cutter.blank(position + end);
      else this.#cutter.record(position + at, position + end, this.#line);
      this.#line += this.#isRewritten && !scanner.blank ? 1 : scanner.lines;
      at = end;
    }
    const isOversized = at < bytes.length && !isOpen && scanner.problem === 'record_too_large';
    if (isOversized) this.#startOversized(position + at, this.#line);
    this.#window.consume(isOversized ? scanner.keepFrom : at);
    return isOpen;
  }

  #startOversized(start: number, line: number): void {
    this.#oversizedStart = start;
    this.#oversizedLine = line;
  }

  /**
   * Notes that a closing quote must be searched for. Must be called before the record is counted,
   * because `#lookForClose` may restore the state of this moment.
   */
  #startDoubt(start: number, end: number, line: number): void {
    this.#doubt ??= { start, line, mark: this.#cutter.mark(), lookedTo: end };
  }

  /**
   * Looks for a later quote that closes the cell. All bytes up to this quote are one record, which
   * is too large.
   */
  #lookForClose(scanner: RecordScanner, doubt: Doubt, final: boolean): void {
    const { bytes, position } = this.#window;
    const lowest = this.#oversizedStart >= 0 ? -1 : 0;
    const from = doubt.lookedTo - position;
    const close = from < bytes.length ? scanner.findClose(bytes, lowest, from, bytes.length, final) : -1;
    if (close === -1 && from < bytes.length) doubt.lookedTo = position + scanner.keepFrom;
    if (close !== -1 || final) this.#doubt = null;
    if (close < 0) return;
    this.#cutter.restore(doubt.mark);
    this.#line += countLines(bytes, 0, close);
    this.#startOversized(doubt.start, doubt.line);
    this.#window.consume(close);
  }

  #skipOversized(scanner: RecordScanner, final: boolean): boolean {
    const { bytes, position } = this.#window;
    const end = scanner.skip(bytes, 0, bytes.length, final);
    if (end < 0) {
      this.#window.consume(scanner.keepFrom);
      return false;
    }
    if (scanner.isUnclosed) this.#startDoubt(this.#oversizedStart, position + end, this.#oversizedLine);
    this.#cutter.oversized(this.#oversizedStart, position + end, this.#oversizedLine);
    this.#line += this.#isRewritten ? 1 : scanner.lines;
    this.#oversizedStart = -1;
    this.#window.consume(end);
    return true;
  }
}

/**
 * An incomplete record and the bytes after it. The memory is reused, and grows to twice the longest
 * record plus a read buffer.
 */
class Window {
  /** Position in the file at which `bytes` starts. */
  position = 0;
  /** The bytes of the window, which are valid until the next `append`. */
  bytes = Buffer.alloc(0);
  #memory = Buffer.alloc(0);
  #start = 0;

  append(added: Buffer): void {
    const rest = this.bytes;
    const length = rest.length + added.length;
    // Moves the record to the front if there is not enough space after it, or if it is not longer
    // than the added bytes. A move of so few bytes is cheap, and the memory stays in the CPU cache.
    if (rest.length <= added.length || this.#start + length > this.#memory.length) {
      // Space for twice the record makes moves rare, also for small buffers.
      const room = 2 ** Math.ceil(Math.log2(2 * rest.length + added.length));
      if (room > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(room);
      // `set` copies correctly even if the ranges overlap.
      this.#memory.set(rest, 0);
      this.#start = 0;
    }
    this.#memory.set(added, this.#start + rest.length);
    this.bytes = this.#memory.subarray(this.#start, this.#start + length);
  }

  consume(count: number): void {
    this.position += count;
    this.#start += count;
    this.bytes = this.bytes.subarray(count);
  }
}
