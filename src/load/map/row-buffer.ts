import { KeyOrder } from './key-order.ts';
import { doubled, KeyHashes, KeyTable } from './key-table.ts';
import { DIGEST_CHARS, type RecordDigests } from './record-digests.ts';

/**
 * Rows of profiles in one reused buffer, as COPY text:
 *     key TAB {properties as JSON} TAB company or \N TAB digest or \N TAB removes TAB is_counted
 *     NEWLINE
 * No object is created per row. Strings are byte strings: latin1 with one character per byte of
 * UTF-8. They need no decoding, because all special characters of COPY, CSV and JSON are ASCII.
 * `finish` combines rows with the same key into one row. A name can occur in that row several
 * times. jsonb then keeps the last value.
 */
const initialBytes = 4 * 1024 * 1024;
const initialRows = 16 * 1024;
const LF = 10;
const TAB = 9;
const T = 116;
const F = 102;
const BACKSLASH = 92;
const CAPITAL_N = 78;

/** The row removes a property or the user's company. */
export const REMOVES = 1;
/** A property is an object or an array. */
export const NESTED = 4;
/** An additional row, such as a company in a user's record, which the tally does not count. */
export const UNCOUNTED = 2;

export interface RowContent {
  readonly record: number;
  readonly key: string;
  readonly properties: string;
  /** Company of the user. `null` keeps the stored company, and '' removes it. */
  readonly company: string | null;
  readonly flags: number;
}

export class RowBuffer {
  bytes: Buffer = Buffer.allocUnsafe(initialBytes);
  at = 0;
  /** Number of rows that the tally counts. */
  counted = 0;
  removes = false;
  nested = false;
  /** True if the first row of a key takes precedence in `finish`, not the last row. */
  #keepsFirst = false;
  /** Text that replaces everything after the digest in each row. See `reset`. */
  #stamp: Buffer | null = null;
  readonly #digests: RecordDigests;
  readonly #keys = new KeyTable();
  readonly #companies = new KeyTable();
  readonly #order = new KeyOrder();
  /**
   * These arrays have one value per row. `#propertyEnds` contains the positions of the closing
   * braces.
   */
  #propertyEnds = new Int32Array(initialRows);
  #companyEnds = new Int32Array(initialRows);
  #records = new Int32Array(initialRows);
  #flags = new Int32Array(initialRows);

  constructor(digests: RecordDigests) {
    this.#digests = digests;
  }

  get rows(): number {
    return this.#keys.rows;
  }

  get repeated(): number {
    return this.#keys.repeated;
  }

  /**
   * `stamp` contains the last columns of the profile table. It replaces the flags, so that rows can
   * be copied directly into that table. It begins with a TAB and ends with a newline.
   */
  reset(stamp: Buffer | null = null, keepsFirst = false): void {
    this.#stamp = stamp;
    this.#keepsFirst = keepsFirst;
    this.at = 0;
    this.#keys.reset();
    this.counted = 0;
    this.removes = false;
    this.nested = false;
  }

  reserve(length: number): void {
    if (this.at + length <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.at + length));
    this.bytes.copy(grown, 0, 0, this.at);
    this.bytes = grown;
  }

  /** Releases memory after an unusually large chunk. */
  shrink(): void {
    if (this.bytes.length <= initialBytes * 4) return;
    this.bytes = Buffer.allocUnsafe(initialBytes);
  }

  /**
   * Adds the row that the caller has written from `at` on: key, TAB, `{`, properties, `}`, TAB and
   * company.
   */
  endRow(keyEnd: number, propertyEnd: number, companyEnd: number, record: number, flags: number): void {
    const row = this.#keys.add(this.bytes, this.at, keyEnd);
    this.at = companyEnd;
    if (row === this.#records.length) this.#growRows();
    this.#propertyEnds[row] = propertyEnd;
    this.#companyEnds[row] = companyEnd;
    this.#records[row] = record;
    this.#flags[row] = flags;
    if ((flags & UNCOUNTED) !== 0) this.#digests.exclude(record);
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
    if ((flags & UNCOUNTED) === 0 && this.#digests.hasDigest(record)) {
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

  content(row: number): Buffer {
    return this.#slice(this.#keys.start(row), this.#companyEnds[row]);
  }

  flagsOf(row: number): number {
    return this.#flags[row] ?? 0;
  }

  hasSome(has: (bytes: Buffer, start: number, end: number) => boolean): boolean {
    for (let row = 0; row < this.rows; row++) {
      if (this.#keys.isHead(row) && has(this.bytes, this.#keys.start(row), this.#keys.end(row))) return true;
    }
    return false;
  }

  *keys(): Generator<string> {
    for (let row = 0; row < this.rows; row++)
      if (this.#keys.isHead(row))
        yield this.bytes.toString('latin1', this.#keys.start(row), this.#keys.end(row));
  }

  recordOf(row: number): number {
    return this.#records[row] ?? -1;
  }

  /**
   * Returns the company of a row as it appears in the COPY text, or `null` if the row does not
   * change the company.
   */
  companyOf(row: number): string | null {
    const company = this.#slice((this.#propertyEnds[row] ?? 0) + 2, this.#companyEnds[row]);
    return company.equals(noCompany) ? null : company.toString('latin1');
  }

  records(): number[] {
    return [...new Set(this.#records.subarray(0, this.rows))];
  }

  groups(includes: (record: number) => boolean = () => true): number[][] {
    const groups: number[][] = [];
    for (let head = 0; head < this.rows; head++) {
      if (!this.#keys.isHead(head)) continue;
      const group = this.#keys.chain(head).filter((row) => includes(this.recordOf(row)));
      if (group.length > 0) groups.push(group);
    }
    return groups;
  }

  /** Returns the distinct companies of all rows, as they appear in the COPY text. */
  companies(): string[] {
    const table = this.#companies;
    table.reset();
    for (let row = 0; row < this.rows; row++) {
      const start = (this.#propertyEnds[row] ?? 0) + 2;
      const end = this.#companyEnds[row] ?? 0;
      const isNone =
        end - start === 2 && this.bytes[start] === BACKSLASH && this.bytes[start + 1] === CAPITAL_N;
      if (end > start && !isNone) table.add(this.bytes, start, end);
    }
    const companies: string[] = [];
    for (let row = 0; row < table.rows; row++)
      if (table.isHead(row)) companies.push(this.bytes.toString('latin1', table.start(row), table.end(row)));
    return companies;
  }

  /**
   * Hashes of the distinct keys, as a bigint[] in binary format. `flags` replaces the two lowest
   * bits of each hash.
   */
  keyHashes(flags: number): Buffer {
    const hashes = new KeyHashes(this.rows - this.repeated, flags);
    for (let row = 0; row < this.rows; row++) {
      if (this.#keys.isHead(row)) hashes.add(this.bytes, this.#keys.start(row), this.#keys.end(row));
    }
    return hashes.array;
  }

  countedAmong(includes: (record: number) => boolean): number {
    let counted = 0;
    for (let row = 0; row < this.rows; row++) {
      if (((this.#flags[row] ?? 0) & UNCOUNTED) === 0 && includes(this.recordOf(row))) counted++;
    }
    return counted;
  }

  /** One row per key, as COPY text. Valid until `reset`. */
  finish(): Buffer {
    if (this.repeated === 0) return this.bytes.subarray(0, this.at);
    return this.text(this.groups());
  }

  /** The rows of `finish`, approximately in the order of their keys. */
  finishInOrder(): Buffer {
    const order = this.#order.of(this.bytes, this.#keys);
    if (order === null) return this.finish();
    if (this.repeated === 0) return this.#gather(order);
    const heads = [...order].filter((row) => this.#keys.isHead(row));
    return this.text(heads.map((head) => this.#keys.chain(head)));
  }

  /**
   * Copies the rows in `order` to the space after the last row. A copy within one buffer creates no
   * object.
   */
  #gather(order: Uint32Array): Buffer {
    this.reserve(this.at);
    const { bytes } = this;
    let at = this.at;
    for (const row of order) {
      const start = this.#keys.start(row);
      const end = this.#endOf(row);
      bytes.copyWithin(at, start, end);
      at += end - start;
    }
    return bytes.subarray(this.at, at);
  }

  #endOf(row: number): number {
    return row + 1 < this.rows ? this.#keys.start(row + 1) : this.at;
  }

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
    let hasProperties = false;
    for (const row of this.#keepsFirst ? rows.toReversed() : rows) {
      const properties = this.#slice(this.#keys.end(row) + 2, this.#propertyEnds[row]);
      if (properties.length > 0) {
        if (hasProperties) parts.push(comma);
        parts.push(properties);
        hasProperties = true;
      }
      const rowCompany = this.#slice((this.#propertyEnds[row] ?? 0) + 2, this.#companyEnds[row]);
      if (!rowCompany.equals(noCompany)) company = rowCompany;
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
/**
 * A row that was combined from several records has no digest, because it differs from each of these
 * records.
 */
const noDigest = Buffer.from('\t\\N');
const comma = Buffer.from(',');
const brace = Buffer.from('}\t');
