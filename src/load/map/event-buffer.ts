import { byEventKind, type Entity, type EventKind, eventKinds } from '../../domain/entity.ts';
import { fromByteString, unescapeCopy } from '../../formats/json-text.ts';
import {
  contentIdChars,
  eventKey,
  givenEventHash,
  type IdCounter,
  int32,
  writeContentId,
} from './event-keys.ts';
import { doubled, KeyHashes, KeyTable } from './key-table.ts';

/*
 * Event rows in one reused buffer, as COPY text:
 *     environment TAB user TAB id TAB kind TAB name TAB company or \N TAB source TAB time TAB
 *     {metadata} NEWLINE
 * An id is unique per user, so user and id are the key of a row. An event without an id gets a
 * content id: the first 72 bits of the SHA-256 of its row, in base64url. In the hashed row, the id
 * is the number of identical rows before this one (the occurrence), in 12 digits. A missing time is
 * written as zeros. The same file must always get the same ids, so this layout must never change.
 */
const initialBytes = 4 * 1024 * 1024;
const initialRows = 16 * 1024;
const TAB = 9;
const LF = 10;
const ZERO = 48;
/** Id, kind and name. */
const cellsBeforeCompany = 3;
const noCompany = '\\N';
export const instantChars = '2026-11-20T12:34:56.123456Z'.length;

/*
 * Flags of a row. GIVEN: the record specifies the id. UNTIMED: the record specifies no time. The
 * bits from KIND_SHIFT on contain the kind.
 */
const GIVEN = 1;
const UNTIMED = 2;
const KIND_SHIFT = 2;

/** Row that the caller has written after `startRow`. Positions are those in the buffer. */
export interface WrittenEvent {
  readonly kind: EventKind;
  /**
   * True if the record specifies the id. False if `reserveId` has reserved space for a content id.
   */
  readonly hasId: boolean;
  readonly idEnd: number;
  readonly nameStart: number;
  readonly nameEnd: number;
  /** Position of the time. If the record specifies no time, the bytes there have no meaning. */
  readonly timeStart: number;
  /** Time in milliseconds since 1970. `null` if the record specifies no time. */
  readonly ms: number | null;
}

export interface EventOrigin {
  readonly environmentId: number;
  /** The time for events that specify no time, in the format of `Instant`. */
  readonly acceptedAt: string;
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
  /** The key of a row without a given id is the content id of the first occurrence. */
  readonly #keys = new KeyTable();
  readonly #names = new KeyTable();
  readonly #months = new Set<number>();
  #monthStart = 0;
  #monthEnd = 0;
  #repeated = 0;
  /**
   * Number of events that need no row in `event_ids`, because the primary key of `events` makes
   * them unique.
   */
  #timedContents = 0;
  /** These arrays have one value per row. `#heads` contains the first row with the same key. */
  #timeStarts = new Int32Array(initialRows);
  #ends = new Int32Array(initialRows);
  #records = new Int32Array(initialRows);
  #flags = new Int32Array(initialRows);
  #heads = new Int32Array(initialRows);
  /**
   * These arrays have a value for the first row of each key. `#contents` contains the number of
   * rows with the same content, and `#givens` the number of rows with the same given id.
   */
  #contents = new Int32Array(initialRows);
  #givens = new Int32Array(initialRows);
  /** Hashes of the keys of rows that have a content id. */
  #hashHighs = new Int32Array(initialRows);
  #hashLows = new Int32Array(initialRows);

  get rows(): number {
    return this.#keys.rows;
  }

  /** Starts of the months in which the events lie, in milliseconds since 1970. */
  get months(): ReadonlySet<number> {
    return this.#months;
  }

  *users(): Generator<string> {
    for (let row = 0; row < this.rows; row++) {
      const start = this.#startOf(row) + this.#prefix.length;
      yield this.#byteString(start, this.bytes.indexOf(TAB, start));
    }
  }

  /**
   * Returns the ids of the users and companies to which the events refer, as they appear in the
   * COPY text.
   */
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
   * Returns the position at which the caller writes the row, beginning with the user. The caller
   * may write at most `length` bytes.
   */
  startRow(length: number): number {
    this.#reserve(this.#prefix.length + contentIdChars + instantChars + length);
    return this.at + this.#prefix.copy(this.bytes, this.at);
  }

  /** Reserves space for a content id, and returns the position after this space. */
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
    const digest = writeContentId(this.bytes, this.at, end, idStart);
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
    writeContentId(this.bytes, this.at, end, idStart);
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
   * Counts the rows of each kind. `repeated` is the number of rows that `text` omits because they
   * repeat a given id.
   */
  countByKind(
    includes: RecordFilter = all,
  ): Readonly<Record<EventKind, { readonly rows: number; readonly repeated: number }>> {
    const counts = byEventKind(() => ({ rows: 0, repeated: 0 }));
    for (let row = 0; row < this.rows; row++)
      if (includes(this.recordOf(row))) counts[this.kindOf(row)].rows++;
    for (const kind of eventKinds) counts[kind].repeated = counts[kind].rows;
    for (const row of this.#firstRows(includes)) counts[this.kindOf(row)].repeated--;
    return counts;
  }

  /** COPY text without rows that repeat a given id. Valid until `reset`. */
  text(includes: RecordFilter = all): Buffer {
    if (includes === all && this.#repeated === 0) return this.bytes.subarray(0, this.at);
    return Buffer.concat(this.#firstRows(includes).map((row) => this.line(row)));
  }

  /**
   * COPY text for `event_ids`: `environment_id user_id event_id inserted_at` of each event with a
   * given id or without a time. The primary key of `events` does not make these ids unique.
   */
  idText(includes: RecordFilter = all): Buffer {
    return this.#idLines(includes, () => newline);
  }

  /**
   * `idText` with one more column. For a given id, this column contains the hash of the event's key
   * (see `eventKey`), otherwise \N.
   */
  hashedIdText(includes: RecordFilter = all): Buffer {
    return this.#idLines(includes, (row) =>
      Buffer.from(this.#isGiven(row) ? `\t${eventKey(this.#givenKeyOf(row), true)}\n` : '\t\\N\n'),
    );
  }

  #idLines(includes: RecordFilter, end: (row: number) => Buffer): Buffer {
    if (this.#timedContents === this.rows) return noBytes;
    const isListed = (row: number) => ((this.#flags[row] ?? 0) & (GIVEN | UNTIMED)) !== 0;
    const rows = this.#firstRows(includes).filter(isListed);
    return Buffer.concat(
      rows.flatMap((row) => {
        const time = this.#timeStarts[row] ?? 0;
        const key = this.bytes.subarray(this.#startOf(row), this.#keys.end(row));
        return [key, tab, this.bytes.subarray(time, time + instantChars), end(row)];
      }),
    );
  }

  /** Hashes of the keys of all rows in `text` (see `eventKey`), as a bigint[] in binary format. */
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

  /** Returns the rows, except those that repeat a given id. */
  #firstRows(includes: RecordFilter): number[] {
    const heads = new Set<number>();
    const rows: number[] = [];
    for (let row = 0; row < this.rows; row++) {
      if (!includes(this.recordOf(row))) continue;
      const head = this.#heads[row] ?? row;
      if (this.#isGiven(row)) {
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
