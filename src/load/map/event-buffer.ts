import { hash } from 'node:crypto';
import { byEventKind, type Entity, type EventKind, eventKinds } from '../../domain/entity.ts';
import { fromByteString, unescapeCopy } from '../../formats/json-text.ts';
import { doubled, eventKey, givenEventHash, KeyHashes, KeyTable } from './key-table.ts';

/*
 * Event rows in one reused buffer, as COPY text:
 *     environment TAB user TAB id TAB kind TAB name TAB company or \N TAB source TAB time TAB
 *     {metadata} NEWLINE
 * An id is unique per user. Therefore, user and id are adjacent. Together, they are the key of a
 * row.
 * If a record has no id, its event gets a content id: the first 72 bits of the SHA-256 of its row,
 * in base64url. In the row that is hashed, 12 digits replace the id. They are the number of
 * identical rows before this one (the occurrence). If the record has no time, zeros replace the
 * time. The same file must always get the same ids, so this layout must never change.
 * `crypto.hash` takes 0.5 µs for a row of 200 bytes. `createHash` takes more than twice as long,
 * and so does SHA-256 in JavaScript.
 */
const initialBytes = 4 * 1024 * 1024;
const initialRows = 16 * 1024;
const TAB = 9;
const LF = 10;
const ZERO = 48;

/** Number of cells between the user and the company: id, kind and name. */
const cellsBeforeCompany = 3;
const noCompany = '\\N';

/**
 * Number of characters in a content id. Each character represents 6 bits. 72 bits are enough,
 * because a content id only has to distinguish events of one user at one instant.
 */
const contentIdChars = 12;
const base64url = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
export const instantChars = '2026-11-20T12:34:56.123456Z'.length;

/** Flag of a row whose record specifies the id (a given id). */
const GIVEN = 1;
/** Flag of a row whose record specifies no time. */
const UNTIMED = 2;
/** In the flags of a row, the number of its event kind begins at this bit. */
const KIND_SHIFT = 2;

/**
 * Row that the caller has written after `EventBuffer.startRow`. Its positions are positions in the
 * buffer.
 */
export interface WrittenEvent {
  readonly kind: EventKind;
  /**
   * True if the record specifies the id. Otherwise, `reserveId` has reserved space for a content
   * id.
   */
  readonly hasId: boolean;
  readonly idEnd: number;
  readonly nameStart: number;
  readonly nameEnd: number;
  /** Position of the time. If the record specifies no time, the bytes there have no meaning. */
  readonly timeStart: number;
  /** Milliseconds since 1970. `null` if the record specifies no time. */
  readonly ms: number | null;
}

interface EventCount {
  readonly rows: number;
  readonly repeated: number;
}

export interface EventOrigin {
  readonly environmentId: number;
  /** Time of events that do not specify a time, in the format of `Instant`. */
  readonly acceptedAt: string;
}

/**
 * Counts equal events of a file. `next` must be called for each row in file order. It returns the
 * number of earlier rows with the same key: the user and a given id, or the content id of the first
 * occurrence.
 */
export interface IdCounter {
  next(key: string, isGiven: boolean, record: number): number;
}

export type RecordFilter = (record: number) => boolean;
const all: RecordFilter = () => true;

/** Events of a chunk in order, one row per record. */
export class EventBuffer {
  bytes: Buffer = Buffer.alloc(0);
  at = 0;
  #origin: EventOrigin = { environmentId: 0, acceptedAt: '' };
  #counter: IdCounter | null = null;
  #prefix: Buffer = Buffer.alloc(0);
  /**
   * Finds rows with the same key. If the record has no id, the key of its row is the content id of
   * the first occurrence.
   */
  readonly #keys = new KeyTable();
  readonly #names = new KeyTable();
  readonly #months = new Set<number>();
  #monthStart = 0;
  #monthEnd = 0;
  #repeated = 0;
  /**
   * Number of rows with a content id and a time. The primary key of `events` makes them unique, so
   * they need no row in `event_ids`.
   */
  #timedContents = 0;
  /** One value per row. `#heads`: the first row with the same key. */
  #timeStarts = new Int32Array(initialRows);
  #ends = new Int32Array(initialRows);
  #records = new Int32Array(initialRows);
  #flags = new Int32Array(initialRows);
  #heads = new Int32Array(initialRows);
  /**
   * Counts for the first row of each key. `#contents`: rows with the same content. `#givens`: rows
   * with the same given id.
   */
  #contents = new Int32Array(initialRows);
  #givens = new Int32Array(initialRows);
  /** Hashes of the keys of rows that have a content id. */
  #hashHighs = new Int32Array(initialRows);
  #hashLows = new Int32Array(initialRows);

  get rows(): number {
    return this.#keys.rows;
  }

  get repeated(): number {
    return this.#repeated;
  }

  /** Start of each month that contains an event, in milliseconds since 1970. */
  get months(): ReadonlySet<number> {
    return this.#months;
  }

  *users(): Generator<string> {
    for (let row = 0; row < this.rows; row++) {
      const start = this.#startOf(row) + this.#prefix.length;
      yield this.#byteString(start, this.bytes.indexOf(TAB, start));
    }
  }

  /** Returns the distinct users and companies of all rows, as they appear in the COPY text. */
  referencedIds(): Readonly<Record<Entity, Set<string>>> {
    const users = new Set<string>();
    const companies = new Set<string>();
    for (let row = 0; row < this.rows; row++) {
      const start = this.#startOf(row) + this.#prefix.length;
      let end = this.bytes.indexOf(TAB, start);
      users.add(this.#byteString(start, end));
      for (let cell = 0; cell < cellsBeforeCompany; cell++) end = this.bytes.indexOf(TAB, end + 1);
      const company = this.#byteString(end + 1, this.bytes.indexOf(TAB, end + 1));
      if (company !== noCompany) companies.add(company);
    }
    return { users, companies };
  }

  get names(): ReadonlySet<string> {
    const names = new Set<string>();
    for (let row = 0; row < this.#names.rows; row++) {
      if (!this.#names.isHead(row)) continue;
      const text = this.#byteString(this.#names.start(row), this.#names.end(row));
      names.add(fromByteString(unescapeCopy(text)));
    }
    return names;
  }

  /**
   * Empties the buffer. With `counter`, the occurrence of an event also counts equal events in
   * other chunks.
   */
  reset(origin: EventOrigin, counter: IdCounter | null = null): void {
    this.#origin = origin;
    this.#counter = counter;
    this.#prefix = Buffer.from(`${origin.environmentId}\t`);
    this.#keys.reset();
    this.#names.reset();
    this.#months.clear();
    this.#monthStart = 0;
    this.#monthEnd = 0;
    this.#repeated = 0;
    this.#timedContents = 0;
    this.at = 0;
    if (this.bytes.length > initialBytes * 4) this.bytes = Buffer.allocUnsafe(initialBytes);
  }

  /**
   * Starts a row. The caller writes at most `length` bytes into it, including a given id. Returns
   * the position at which the caller must write the user.
   */
  startRow(length: number): number {
    this.#reserve(this.#prefix.length + contentIdChars + instantChars + length);
    return this.at + this.#prefix.copy(this.bytes, this.at);
  }

  /** Reserves space for a content id at `at`. Returns the position after that space. */
  reserveId(at: number): number {
    this.bytes.fill(ZERO, at, at + contentIdChars);
    return at + contentIdChars;
  }

  endRow(row: WrittenEvent, end: number, record: number): void {
    const number = this.rows;
    if (number === this.#ends.length) this.#growRows();
    const { hasId, timeStart, ms } = row;
    if (ms === null) this.bytes.fill(ZERO, timeStart, timeStart + instantChars);
    this.#contents[number] = 0;
    this.#givens[number] = 0;
    if (!hasId && ms !== null) this.#timedContents++;
    if (hasId) this.#enterGivenId(row.idEnd, record);
    else this.#enterContentId(row.idEnd, end, record);
    this.#heads[number] = this.#keys.head;
    if (ms === null) this.bytes.write(this.#origin.acceptedAt, timeStart, 'latin1');
    this.#addMonth(ms ?? Date.parse(this.#origin.acceptedAt));
    this.#names.add(this.bytes, row.nameStart, row.nameEnd);
    this.#timeStarts[number] = timeStart;
    this.#ends[number] = end + 1;
    this.#records[number] = record;
    this.#flags[number] =
      (eventKinds.indexOf(row.kind) << KIND_SHIFT) | (hasId ? GIVEN : 0) | (ms === null ? UNTIMED : 0);
    this.bytes[end] = LF;
    this.at = end + 1;
  }

  #enterGivenId(idEnd: number, record: number): void {
    const keyStart = this.at + this.#prefix.length;
    this.#keys.add(this.bytes, keyStart, idEnd);
    const { head } = this.#keys;
    const count = this.#givens[head] ?? 0;
    this.#givens[head] = count + 1;
    if (count > 0) this.#repeated++;
    this.#counter?.next(this.#byteString(keyStart, idEnd), true, record);
  }

  #enterContentId(idEnd: number, end: number, record: number): void {
    const idStart = idEnd - contentIdChars;
    const digest = this.#writeContentId(idStart, end);
    const row = this.rows;
    this.#hashHighs[row] = int32(digest, 0);
    this.#hashLows[row] = int32(digest, 4) & -4;
    this.#keys.add(this.bytes, idStart, idEnd);
    const { head } = this.#keys;
    const contents = this.#contents[head] ?? 0;
    const occurrence = this.#counter?.next(this.#byteString(idStart, idEnd), false, record) ?? contents;
    this.#contents[head] = contents + 1;
    if (occurrence === 0) return;
    this.bytes.write(String(occurrence).padStart(contentIdChars, '0'), idStart, 'latin1');
    this.#writeContentId(idStart, end);
  }

  recordOf(row: number): number {
    return this.#records[row] ?? -1;
  }

  line(row: number): Buffer {
    return this.bytes.subarray(this.#startOf(row), this.#ends[row]);
  }

  kindOf(row: number): EventKind {
    return eventKinds[(this.#flags[row] ?? 0) >> KIND_SHIFT] ?? 'track';
  }

  records(kind: EventKind): number[] {
    const records: number[] = [];
    for (let row = 0; row < this.rows; row++) if (this.kindOf(row) === kind) records.push(this.recordOf(row));
    return records;
  }

  /**
   * Counts rows by kind. `repeated` is the number of rows that `text` omits because they repeat a
   * given id.
   */
  countByKind(includes: RecordFilter = all): Readonly<Record<EventKind, EventCount>> {
    const counts = byEventKind(() => ({ rows: 0, repeated: 0 }));
    for (let row = 0; row < this.rows; row++)
      if (includes(this.recordOf(row))) counts[this.kindOf(row)].rows++;
    for (const kind of eventKinds) counts[kind].repeated = counts[kind].rows;
    for (const row of this.#firstRows(includes)) counts[this.kindOf(row)].repeated--;
    return counts;
  }

  /** Returns COPY text without rows that repeat a given id. Valid until `reset`. */
  text(includes: RecordFilter = all): Buffer {
    if (includes === all && this.#repeated === 0) return this.bytes.subarray(0, this.at);
    return Buffer.concat(
      this.#firstRows(includes).map((row) => this.bytes.subarray(this.#startOf(row), this.#ends[row])),
    );
  }

  /**
   * Returns COPY text for `event_ids`: one line for each event that the primary key of `events`
   * does not make unique. These are events with a given id, and events whose record has no time.
   * Columns: `environment_id user_id event_id inserted_at`.
   */
  idText(includes: RecordFilter = all): Buffer {
    return this.#idLines(includes, () => newline);
  }

  /**
   * Returns the lines of `idText` with an additional column. If the record of the event has an id,
   * the column contains the hash of its key (see `eventKey`). Otherwise, it contains \N.
   */
  hashedIdText(includes: RecordFilter = all): Buffer {
    return this.#idLines(includes, (row) =>
      Buffer.from(this.#isGiven(row) ? `\t${eventKey(this.#givenKeyOf(row), true)}\n` : '\t\\N\n'),
    );
  }

  #idLines(includes: RecordFilter, end: (row: number) => Buffer): Buffer {
    if (this.#timedContents === this.rows) return noBytes;
    const rows = this.#firstRows(includes).filter(
      (row) => ((this.#flags[row] ?? 0) & (GIVEN | UNTIMED)) !== 0,
    );
    return Buffer.concat(
      rows.flatMap((row) => {
        const time = this.#timeStarts[row] ?? 0;
        const key = this.bytes.subarray(this.#startOf(row), this.#keys.end(row));
        return [key, tab, this.bytes.subarray(time, time + instantChars), end(row)];
      }),
    );
  }

  /**
   * Returns the hashes of the keys of all rows in `text` (see `eventKey`), as a bigint[] in binary
   * format.
   */
  keyHashes(): Buffer {
    return this.#hashesOf(this.#firstRows(all));
  }

  contentHashes(includes: RecordFilter = all): Buffer {
    return this.#hashesOf(this.#firstRows(includes).filter((row) => !this.#isGiven(row)));
  }

  #hashesOf(rows: readonly number[]): Buffer {
    const hashes = new KeyHashes(rows.length, 0);
    for (const row of rows) {
      if (this.#isGiven(row)) hashes.addHash(...givenEventHash(this.#givenKeyOf(row)));
      else hashes.addHash(this.#hashHighs[row] ?? 0, this.#hashLows[row] ?? 0);
    }
    return hashes.array;
  }

  #givenKeyOf(row: number): string {
    return this.#byteString(this.#keys.start(row), this.#keys.end(row));
  }

  #isGiven(row: number): boolean {
    return ((this.#flags[row] ?? 0) & GIVEN) !== 0;
  }

  /** Returns the rows of the included records, without repeats of a given id. */
  #firstRows(includes: RecordFilter): number[] {
    const heads = new Set<number>();
    const rows: number[] = [];
    for (let row = 0; row < this.rows; row++) {
      if (!includes(this.recordOf(row))) continue;
      const head = this.#heads[row] ?? row;
      if (((this.#flags[row] ?? 0) & GIVEN) !== 0) {
        if (heads.has(head)) continue;
        heads.add(head);
      }
      rows.push(row);
    }
    return rows;
  }

  #startOf(row: number): number {
    return row === 0 ? 0 : (this.#ends[row - 1] ?? 0);
  }

  /**
   * Computes the content id of the current row, which ends at `end`, and writes it to `idStart`.
   * Returns the whole SHA-256.
   */
  #writeContentId(idStart: number, end: number): string {
    const digest = hash('sha256', this.bytes.subarray(this.at, end), 'binary');
    for (let from = 0, to = idStart; to < idStart + contentIdChars; from += 3, to += 4) {
      const bits = int32(digest, from);
      this.bytes[to] = base64url[bits >>> 26] ?? 0;
      this.bytes[to + 1] = base64url[(bits >>> 20) & 63] ?? 0;
      this.bytes[to + 2] = base64url[(bits >>> 14) & 63] ?? 0;
      this.bytes[to + 3] = base64url[(bits >>> 8) & 63] ?? 0;
    }
    return digest;
  }

  #byteString(start: number, end: number): string {
    return this.bytes.toString('latin1', start, end);
  }

  #addMonth(ms: number): void {
    if (ms >= this.#monthStart && ms < this.#monthEnd) return;
    const date = new Date(ms);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    this.#monthStart = Date.UTC(year, month);
    this.#monthEnd = Date.UTC(year, month + 1);
    this.#months.add(this.#monthStart);
  }

  #reserve(length: number): void {
    if (this.at + length <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(initialBytes, this.bytes.length * 2, this.at + length));
    this.bytes.copy(grown, 0, 0, this.at);
    this.bytes = grown;
  }

  #growRows(): void {
    this.#timeStarts = doubled(this.#timeStarts);
    this.#ends = doubled(this.#ends);
    this.#records = doubled(this.#records);
    this.#flags = doubled(this.#flags);
    this.#heads = doubled(this.#heads);
    this.#contents = doubled(this.#contents);
    this.#givens = doubled(this.#givens);
    this.#hashHighs = doubled(this.#hashHighs);
    this.#hashLows = doubled(this.#hashLows);
  }
}

const [tab, newline, noBytes] = [Buffer.from('\t'), Buffer.from('\n'), Buffer.alloc(0)];

/** Reads 32 bits in big-endian order. */
function int32(bytes: string, at: number): number {
  return (
    (bytes.charCodeAt(at) << 24) |
    (bytes.charCodeAt(at + 1) << 16) |
    (bytes.charCodeAt(at + 2) << 8) |
    bytes.charCodeAt(at + 3)
  );
}
