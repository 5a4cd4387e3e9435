import { KeyOrder } from './key-order.ts';
import { doubled, KeyHashes, KeyTable } from './key-table.ts';
import { DIGEST_CHARS, type RecordDigests } from './record-digests.ts';

/**
 * Rows on their way into the database, written as the text that COPY reads, straight into one reused buffer:
 *
 *     key TAB {properties as JSON} TAB company or \N TAB digest or \N TAB removes TAB is_counted NEWLINE
 *
 * The digest is that of the record, if the row is all that the record says (`RecordDigests`).
 *
 * No object per row exists. Everything is bytes of UTF-8; a JavaScript string, where one is used, holds one
 * byte per character ("byte string", latin1), which keeps it compact and needs no decoding: all characters
 * that COPY, CSV and JSON give a meaning to are ASCII.
 *
 * A key that comes twice is one row in the end: `finish` joins the properties as JSON text with repeated names, of
 * which jsonb keeps the last. With `keepsFirst` it joins them from the last to the first.
 */
const initialBytes = 4 * 1024 * 1024;
const initialRows = 16 * 1024;
const LF = 10;
const TAB = 9;
const T = 116;
const F = 102;
const BACKSLASH = 92;
const CAPITAL_N = 78;

/** The row removes a property or its company. */
export const REMOVES = 1;
/** The row has a property that is an object or an array. */
export const NESTED = 4;
/** The row stands for no record of its own (a company that a user's record describes): not in the tally. */
export const UNCOUNTED = 2;

/** A row of a profile, decoded. */
export interface ProfileRow {
  readonly record: number;
  readonly key: string;
  /** An object as JSON. */
  readonly properties: string;
  /** `null` leaves the company as it is, '' removes it. */
  readonly company: string | null;
  readonly flags: number;
}

export class RowBuffer {
  bytes: Buffer = Buffer.allocUnsafe(initialBytes);
  /** The position of the next byte. */
  at = 0;
  /** Rows that stand for a record. */
  counted = 0;
  removes = false;
  /** True if any property is an object or an array. */
  nested = false;
  /** The first values of a repeated key win, not the last. */
  keepsFirst = false;
  /** The end of every row in place of what follows its digest, with a newline; see `reset`. */
  #stamp: Buffer | null = null;
  readonly #digests: RecordDigests;
  /** The start of each row and its key (the same), the end of its key, and the rows that share a key. */
  readonly #keys = new KeyTable();
  readonly #order = new KeyOrder();
  /** The rows once more, in order of their keys. */
  #ordered: Buffer = Buffer.alloc(0);
  /** Per row: where its properties (braces excluded) and its company end, its record, its flags. */
  #propertyEnds = new Int32Array(initialRows);
  #companyEnds = new Int32Array(initialRows);
  #records = new Int32Array(initialRows);
  #flags = new Int32Array(initialRows);

  constructor(digests: RecordDigests) {
    this.#digests = digests;
  }

  /** Rows written, the later ones of a repeated key included. */
  get rows(): number {
    return this.#keys.rows;
  }

  /** Rows whose key an earlier one of this buffer has. */
  get repeated(): number {
    return this.#keys.repeated;
  }

  /**
   * Empties the buffer. With a `stamp`, rows are for a profile table itself: they end with what is the same for all of
   * them instead of with flags, TAB in front, newline behind.
   */
  reset(stamp: Buffer | null = null): void {
    this.#stamp = stamp;
    this.at = 0;
    this.#keys.reset();
    this.counted = 0;
    this.removes = false;
    this.nested = false;
  }

  /** Makes sure that `length` bytes fit behind `at`. */
  reserve(length: number): void {
    if (this.at + length <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.at + length));
    this.bytes.copy(grown, 0, 0, this.at);
    this.bytes = grown;
  }

  /** Gives back what an unusually large chunk made it grow to. */
  shrink(): void {
    if (this.bytes.length <= initialBytes * 4) return;
    this.bytes = Buffer.allocUnsafe(initialBytes);
    this.#ordered = Buffer.alloc(0);
  }

  /**
   * Ends the row that was written from `start`: key up to `keyEnd`, then TAB `{` properties up to
   * `propertyEnd`, then `}` TAB company up to `companyEnd`. Adds the rest of the line.
   */
  endRow(
    start: number,
    keyEnd: number,
    propertyEnd: number,
    companyEnd: number,
    record: number,
    flags: number,
  ): void {
    const row = this.#keys.add(this.bytes, start, keyEnd);
    if (row === this.#records.length) this.#growRows();
    this.#propertyEnds[row] = propertyEnd;
    this.#companyEnds[row] = companyEnd;
    this.#records[row] = record;
    this.#flags[row] = flags;
    this.#endLine(flags, record);
    if ((flags & REMOVES) !== 0) this.removes = true;
    if ((flags & NESTED) !== 0) this.nested = true;
    if ((flags & UNCOUNTED) === 0) this.counted++;
  }

  #endLine(flags: number, record: number): void {
    const stamp = this.#stamp;
    this.reserve(1 + DIGEST_CHARS + (stamp?.length ?? 5));
    const bytes = this.bytes;
    let at = this.at;
    bytes[at++] = TAB;
    if ((flags & UNCOUNTED) === 0 && this.#digests.isBorne(record)) {
      at = this.#digests.write(record, bytes, at);
    } else {
      bytes[at++] = BACKSLASH;
      bytes[at++] = CAPITAL_N;
    }
    if (stamp !== null) {
      for (let from = 0; from < stamp.length; from++) bytes[at++] = stamp[from] ?? 0;
    } else {
      bytes[at++] = TAB;
      bytes[at++] = (flags & REMOVES) !== 0 ? T : F;
      bytes[at++] = TAB;
      bytes[at++] = (flags & UNCOUNTED) === 0 ? T : F;
      bytes[at++] = LF;
    }
    this.at = at;
  }

  /** Row `row` without its digest and what follows: key TAB {properties} TAB company. */
  content(row: number): Buffer {
    return this.#slice(this.#keys.start(row), this.#companyEnds[row]);
  }

  flagsOf(row: number): number {
    return this.#flags[row] ?? 0;
  }

  /** Returns true if any row has a key that `has` knows. */
  hasSome(has: (bytes: Buffer, start: number, end: number) => boolean): boolean {
    for (let row = 0; row < this.rows; row++) {
      if (this.#keys.isHead(row) && has(this.bytes, this.#keys.start(row), this.#keys.end(row))) return true;
    }
    return false;
  }

  /** The keys, each once, as they stand in the COPY text. */
  *keys(): Generator<string> {
    for (let row = 0; row < this.rows; row++)
      if (this.#keys.isHead(row))
        yield this.bytes.toString('latin1', this.#keys.start(row), this.#keys.end(row));
  }

  /** The record (the caller's number) that row `row` came from. */
  recordOf(row: number): number {
    return this.#records[row] ?? -1;
  }

  /** The company of row `row` as it stands in the COPY text; null if the row leaves the company alone. */
  companyOf(row: number): string | null {
    const company = this.#slice((this.#propertyEnds[row] ?? 0) + 2, this.#companyEnds[row]);
    return company.equals(noCompany) ? null : company.toString('latin1');
  }

  /** The records that rows came from, each once, in order. */
  records(): number[] {
    return [...new Set(this.#records.subarray(0, this.rows))];
  }

  /** The rows of each key, in order: all, or those of some records. */
  groups(includes: (record: number) => boolean = () => true): number[][] {
    const groups: number[][] = [];
    for (let head = 0; head < this.rows; head++) {
      if (!this.#keys.isHead(head)) continue;
      const group = this.#keys.chain(head).filter((row) => includes(this.recordOf(row)));
      if (group.length > 0) groups.push(group);
    }
    return groups;
  }

  /** The distinct companies that rows name, as they stand in the COPY text. */
  companies(): string[] {
    const companies = new Set<string>();
    for (let row = 0; row < this.rows; row++) {
      const company = this.companyOf(row);
      if (company !== null && company !== '') companies.add(company);
    }
    return [...companies];
  }

  /** Hashes of all keys, each once, as PostgreSQL reads a bigint[] in binary; `flags` go into the two low bits. */
  keyHashes(flags: number): Buffer {
    const hashes = new KeyHashes(this.rows - this.repeated, flags);
    for (let row = 0; row < this.rows; row++) {
      if (this.#keys.isHead(row)) hashes.add(this.bytes, this.#keys.start(row), this.#keys.end(row));
    }
    return hashes.array;
  }

  /** Counts the rows of some records that stand for a record. */
  countedAmong(includes: (record: number) => boolean): number {
    let counted = 0;
    for (let row = 0; row < this.rows; row++) {
      if (((this.#flags[row] ?? 0) & UNCOUNTED) === 0 && includes(this.recordOf(row))) counted++;
    }
    return counted;
  }

  /** The COPY text of all rows, each key once. Valid until the next `reset`. */
  finish(): Buffer {
    if (this.repeated === 0) return this.bytes.subarray(0, this.at);
    return this.text(this.groups());
  }

  /** Like `finish`, in about the order of the keys. */
  finishInOrder(): Buffer {
    const order = this.#order.of(this.bytes, this.#keys);
    if (order === null) return this.finish();
    if (this.repeated === 0) return this.#gather(order);
    const heads = [...order].filter((row) => this.#keys.isHead(row));
    return this.text(heads.map((head) => this.#keys.chain(head)));
  }

  #gather(order: Uint32Array): Buffer {
    if (this.#ordered.length < this.at) this.#ordered = Buffer.allocUnsafeSlow(this.bytes.length);
    let at = 0;
    for (const row of order)
      at += this.bytes.copy(this.#ordered, at, this.#keys.start(row), this.#endOf(row));
    return this.#ordered.subarray(0, at);
  }

  /** Rows stand one behind the other. */
  #endOf(row: number): number {
    return row + 1 < this.rows ? this.#keys.start(row + 1) : this.at;
  }

  /** The COPY text of some keys, given by their rows. */
  text(groups: readonly (readonly number[])[]): Buffer {
    return Buffer.concat(groups.map((rows) => (rows.length === 1 ? this.#whole(rows[0]) : this.#join(rows))));
  }

  #whole(row = 0): Buffer {
    return this.#slice(this.#keys.start(row), this.#endOf(row));
  }

  #join(rows: readonly number[]): Buffer {
    const [head = 0] = rows;
    const parts: Buffer[] = [this.#slice(this.#keys.start(head), this.#keys.end(head) + 2)];
    let company: Buffer = noCompany;
    let removes = 0;
    let uncounted = UNCOUNTED;
    let some = false;
    for (const row of this.keepsFirst ? rows.toReversed() : rows) {
      const properties = this.#slice(this.#keys.end(row) + 2, this.#propertyEnds[row]);
      if (properties.length > 0) {
        if (some) parts.push(comma);
        parts.push(properties);
        some = true;
      }
      const own = this.#slice((this.#propertyEnds[row] ?? 0) + 2, this.#companyEnds[row]);
      if (!own.equals(noCompany)) company = own;
      const flags = this.#flags[row] ?? 0;
      removes |= flags & REMOVES;
      uncounted &= flags;
    }
    const end = `\t${removes === 0 ? 'f' : 't'}\t${uncounted === 0 ? 't' : 'f'}\n`;
    parts.push(brace, company, noDigest, this.#stamp ?? Buffer.from(end));
    return Buffer.concat(parts);
  }

  #slice(from = 0, to = 0): Buffer {
    return this.bytes.subarray(from, to);
  }

  #growRows(): void {
    this.#propertyEnds = doubled(this.#propertyEnds);
    this.#companyEnds = doubled(this.#companyEnds);
    this.#records = doubled(this.#records);
    this.#flags = doubled(this.#flags);
  }
}

const noCompany = Buffer.from('\\N');
/** A row of several records has no digest, since none of them has all of it. */
const noDigest = Buffer.from('\t\\N');
const comma = Buffer.from(',');
const brace = Buffer.from('}\t');
