import type { Entity } from '../domain/entity.ts';
import { doubled } from './key-table.ts';
import { REMOVES, type RowBuffer, SENT_FLAGS, UNCOUNTED } from './row-buffer.ts';

/*
 * Profile rows that say since when they hold, on their way into the database, as the text that COPY reads:
 *
 *     key TAB record TAB time or \N TAB {properties as JSON} TAB company or \N TAB flags NEWLINE
 *
 * Not folded by key, as those of `RowBuffer` are: which of a key's rows counts is decided property by property, by time
 * and then by the order of the file, and only Postgres knows the times of what is stored.
 */
const TAB = 9;
const initialBytes = 64 * 1024;
const initialRows = 1024;
/** A buffer that an unusually large chunk has grown beyond this is given back. */
const keptBytes = 16 * 1024 * 1024;

/** The dated rows of a chunk. If any row of a profile is dated, all of the chunk are here, those without a time too. */
export class DatedBuffer {
  readonly users = new DatedRows();
  readonly companies = new DatedRows();

  get rows(): number {
    return this.users.rows + this.companies.rows;
  }

  reset(): void {
    this.users.reset();
    this.companies.reset();
  }

  /**
   * Adds a row of record `record`. All texts are byte strings, already escaped for COPY. `at` is an instant as `Instant`
   * writes it; null: the row holds since its load was accepted. `properties` is the inside of a JSON object; `company`
   * null leaves the company as it is and '' removes it; `flags` as in `RowBuffer`.
   */
  add(
    entity: Entity,
    key: string,
    at: string | null,
    properties: string,
    company: string | null,
    flags: number,
    record: number,
  ): void {
    const rest = `\t{${properties}}\t${company ?? '\\N'}\t${flags & SENT_FLAGS}\n`;
    this[entity].add(`${key}\t${record}\t${at ?? '\\N'}${rest}`, record, flags);
  }

  /** Adds the rows of `buffer`, as rows without a time. */
  addUndated(entity: Entity, buffer: RowBuffer): void {
    for (let row = 0; row < buffer.rows; row++) {
      const content = buffer.content(row).toString('latin1');
      const keyEnd = content.indexOf('\t');
      const record = buffer.recordOf(row);
      const flags = buffer.flagsOf(row);
      const line = `${content.slice(0, keyEnd)}\t${record}\t\\N${content.slice(keyEnd)}\t${flags & SENT_FLAGS}\n`;
      this[entity].add(line, record, flags);
    }
  }
}

export class DatedRows {
  rows = 0;
  removes = false;
  /** Rows that stand for a record. */
  counted = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Per row: where its line ends, its record, its flags. */
  #ends = new Int32Array(initialRows);
  #records = new Int32Array(initialRows);
  #flags = new Uint8Array(initialRows);

  reset(): void {
    this.rows = 0;
    this.removes = false;
    this.counted = 0;
    this.#at = 0;
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.alloc(0);
  }

  /** `line` is a byte string. */
  add(line: string, record: number, flags: number): void {
    const row = this.rows++;
    if (row === this.#ends.length) this.#growRows();
    this.#reserve(line.length);
    this.#at += this.#bytes.write(line, this.#at, 'latin1');
    this.#ends[row] = this.#at;
    this.#records[row] = record;
    this.#flags[row] = flags;
    if ((flags & REMOVES) !== 0) this.removes = true;
    if ((flags & UNCOUNTED) === 0) this.counted++;
  }

  /** The records that rows came from, each once, in order. */
  records(): number[] {
    return [...new Set(this.#records.subarray(0, this.rows))].sort((a, b) => a - b);
  }

  /** The keys as they stand in the COPY text. */
  *keys(): Generator<string> {
    for (let row = 0; row < this.rows; row++) {
      const line = this.line(row);
      yield line.toString('latin1', 0, line.indexOf(TAB));
    }
  }

  /** The record that row `row` came from. */
  recordOf(row: number): number {
    return this.#records[row] ?? -1;
  }

  /** Row `row` as COPY reads it. */
  line(row: number): Buffer {
    return this.#bytes.subarray(row === 0 ? 0 : this.#ends[row - 1], this.#ends[row]);
  }

  /** Counts the rows of some records that stand for a record. */
  countedAmong(includes: (record: number) => boolean): number {
    let counted = 0;
    for (let row = 0; row < this.rows; row++) {
      if (((this.#flags[row] ?? 0) & UNCOUNTED) === 0 && includes(this.#records[row] ?? -1)) counted++;
    }
    return counted;
  }

  /** The COPY text of all rows, or of those of some records. Valid until the next `reset`. */
  text(includes?: (record: number) => boolean): Buffer {
    if (includes === undefined) return this.#bytes.subarray(0, this.#at);
    const lines: Buffer[] = [];
    for (let row = 0; row < this.rows; row++) {
      if (!includes(this.#records[row] ?? -1)) continue;
      lines.push(this.line(row));
    }
    return Buffer.concat(lines);
  }

  #reserve(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(initialBytes, this.#bytes.length * 2, this.#at + length));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }

  #growRows(): void {
    this.#ends = doubled(this.#ends);
    this.#records = doubled(this.#records);
    const flags = new Uint8Array(this.#flags.length * 2);
    flags.set(this.#flags);
    this.#flags = flags;
  }
}
