import { MAX_ID_BYTES } from '../../base/limits.ts';
import { type DataType, dataTypeOf, resemblesIsoDateBytes, widen } from '../../domain/data-type.ts';
import { type Entity, type RecordKind, recordKinds } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reason, Reject } from '../../domain/reject.ts';
import {
  copyCells,
  escapeCopy,
  fromByteString,
  toByteString,
  unescapeCopy,
} from '../../formats/json-text.ts';
import { SAMPLED_ROWS } from '../limits.ts';
import { textArray } from './binary-array.ts';
import { type CellList, kind } from './cells.ts';
import { EventBuffer, type EventOrigin, type IdCounter } from './event-buffer.ts';
import { EventTimes } from './event-checks.ts';
import { doubled } from './key-table.ts';
import { RecordDigests } from './record-digests.ts';
import { type RefusedBefore, refusedBefore } from './refused-before.ts';
import { type ProfileRow, RowBuffer, UNCOUNTED } from './row-buffer.ts';
import type { RecordStage } from './seam.ts';
import { UnchangedRecords } from './unchanged-records.ts';

/*
 * Mapping of records to rows or rejects. `column-plan.ts` decides what a column means, and the
 * readers `csv-rows.ts` and `ndjson-rows.ts` fill the buffers of COPY text. A plain CSV cell
 * becomes neither a string nor an object, and no record throws.
 */

const OPEN_BRACE = '\t{';
const CLOSE_BRACE = '}\t';

/** The rows and rejects of a chunk. Every chunk of a reader reuses it. */
export class Rows {
  readonly records = new RecordIndex();
  readonly kinds = new RecordKinds();
  readonly digests = new RecordDigests(this.records, this.kinds);
  readonly unchanged = new UnchangedRecords(this.digests);
  readonly users = new RowBuffer(this.digests);
  readonly companies = new RowBuffer(this.digests);
  readonly events = new EventBuffer();
  readonly types = {
    users: new PropertyTypes(),
    companies: new PropertyTypes(),
    events: new PropertyTypes(),
  };
  /** Allowed times of events. */
  readonly times = new EventTimes();
  /** Stored values win. Nulls are left out then, since they remove nothing. */
  #keepsExisting = false;
  /** `null` if no capability judges records. */
  stage: RecordStage | null = null;
  rejects: Reject[] = [];
  /** Records to refuse without reading them. */
  #refused: RefusedRecords = noRecords;
  /** Properties that were left out because their name is empty. */
  dropped = 0;
  bytes: Buffer = Buffer.alloc(0);

  get keepsExisting(): boolean {
    return this.#keepsExisting;
  }

  set keepsExisting(keeps: boolean) {
    this.#keepsExisting = keeps;
    this.users.keepsFirst = keeps;
    this.companies.keepsFirst = keeps;
  }

  /** See `RowBuffer.reset` for `stamp`. */
  reset({ stamp = null, origin = noOrigin, counter = null, refused = noRecords }: ChunkScope = {}): void {
    this.#refused = refused;
    this.records.reset();
    this.digests.close();
    this.unchanged.reset();
    this.users.reset(stamp);
    this.companies.reset();
    this.events.reset(origin, counter);
    this.kinds.reset();
    this.times.reset(origin.acceptedAt);
    this.stage?.reset();
    for (const types of Object.values(this.types)) types.reset();
    this.users.shrink();
    this.companies.shrink();
    this.rejects = [];
    this.dropped = 0;
  }

  release(): void {
    this.bytes = Buffer.alloc(0);
    this.digests.close();
    this.unchanged.reset();
  }

  refusalOf(record: number): Reason | null {
    const refused = this.#refused.get(record);
    if (refused === undefined) return null;
    if (refused.kind !== null) this.kinds.set(record, refused.kind);
    return refused.reason;
  }

  /** Returns records of refused `users`. `wrong`: users of rejects. Call before `complete`. */
  recordsOf(users: ReadonlyMap<string, Reason>, wrong: ReadonlyMap<number, string>): RefusedRecords {
    const found = new Map<number, { kind: RecordKind | null; reason: Reason }>();
    const look = (id: string, record: number): void => {
      const reason = users.get(id);
      if (reason !== undefined) found.set(record, { kind: this.kinds.of(record), reason });
    };
    for (const [record, id] of wrong) look(id, record);
    for (const { key, record } of this.profiles('users')) look(key, record);
    let row = 0;
    for (const user of this.events.users())
      look(fromByteString(unescapeCopy(user)), this.events.recordOf(row++));
    return found;
  }

  *profiles(entity: Entity): Generator<ProfileRow> {
    const rows = this[entity];
    for (let row = 0; row < rows.rows; row++) {
      const [key, properties, company] = copyCells(rows.content(row)) as [string, string, string | null];
      const [record, flags] = [rows.recordOf(row), rows.flagsOf(row)];
      yield { record, key, properties, company, flags };
    }
  }

  /**
   * Call it once, when all rows are there. A repeated user becomes one row with one company: the
   * last, or with `keepsExisting` the first. The others must exist too.
   */
  complete(): void {
    if (this.users.repeated === 0) return;
    for (const rows of this.users.groups()) {
      if (rows.length === 1) continue;
      const companies = rows.map((row) => this.users.companyOf(row));
      const isNamed = (company: string | null) => company !== null;
      const kept = this.#keepsExisting ? companies.find(isNamed) : companies.findLast(isNamed);
      for (const [index, company] of companies.entries()) {
        if (company === null || company === '' || company === kept) continue;
        this.add('companies', company, '', null, UNCOUNTED, this.users.recordOf(rows[index] ?? 0));
      }
    }
  }

  /** Such a record gets no digest, since the digest would hide what was dropped. */
  writeWithout(properties: number, record: number, write: () => Reason | null): Reason | null {
    if (properties > 0) this.digests.refuse(record);
    const reason = write();
    if (reason === null) this.dropped += properties;
    return reason;
  }

  /** Returns the users of all rows and `others`, as a binary text[]. */
  userIds(others: Iterable<string> = []): Buffer {
    const ids = new Set(this.users.keys());
    for (const id of others) ids.add(escapeCopy(toByteString(id)));
    for (const user of this.events.users()) ids.add(user);
    return textArray(Array.from(ids, unescapeCopy));
  }

  rejectRecord(record: number, message: string, chunk: ChunkRange): Reject {
    return this.records.reject(
      record,
      { code: 'refused_by_database', message, column: null },
      chunk,
      this.bytes,
    );
  }

  /**
   * Adds a row of byte strings that are escaped for COPY. `properties` lack the braces of the
   * object. A `company` of `null` leaves the company as it is, and '' removes it.
   */
  add(
    entity: Entity,
    key: string,
    properties: string,
    company: string | null,
    flags: number,
    record: number,
  ): void {
    if ((flags & UNCOUNTED) !== 0) this.digests.refuse(record);
    const out = this[entity];
    const last = company ?? '\\N';
    out.reserve(key.length + properties.length + last.length + 16);
    const start = out.at;
    const keyEnd = start + key.length;
    const propertyEnd = keyEnd + OPEN_BRACE.length + properties.length;
    const at = start + out.bytes.write(key + OPEN_BRACE + properties + CLOSE_BRACE + last, start, 'latin1');
    out.at = at;
    out.endRow(start, keyEnd, propertyEnd, at, record, flags);
  }
}

export interface ChunkScope {
  readonly stamp?: Buffer | null;
  readonly origin?: EventOrigin;
  /** Counts the events of several chunks together. */
  readonly counter?: IdCounter | null;
  readonly refused?: RefusedRecords;
}

/** Reasons of records that are refused whatever they contain, and their kinds. */
type RefusedRecords = ReadonlyMap<number, { readonly kind: RecordKind | null; readonly reason: Reason }>;

const noBytes = new Uint8Array(0);
const noRecords: RefusedRecords = new Map();

const noOrigin: EventOrigin = { environmentId: 0, acceptedAt: '1970-01-01T00:00:00.000000Z' };

/** The kinds of records. Costs nothing if none states its kind. */
class RecordKinds {
  #kinds = new Uint8Array(0);
  #some = false;

  get some(): boolean {
    return this.#some;
  }

  reset(): void {
    if (this.#some) this.#kinds.fill(0);
    this.#some = false;
  }

  set(record: number, kind: RecordKind): void {
    if (record >= this.#kinds.length) {
      const grown = new Uint8Array(Math.max(16 * 1024, 2 * record));
      grown.set(this.#kinds);
      this.#kinds = grown;
    }
    this.#some = true;
    this.#kinds[record] = recordKinds.indexOf(kind) + 1;
  }

  of(record: number): RecordKind | null {
    return recordKinds[(this.#kinds[record] ?? 0) - 1] ?? null;
  }
}

export class RecordIndex {
  count = 0;
  starts = new Int32Array(16 * 1024);
  ends = new Int32Array(16 * 1024);
  lines = new Int32Array(16 * 1024);

  reset(): void {
    this.count = 0;
  }

  /** Returns the record's number in the chunk, from 0. */
  add(start: number, end: number, line: number): number {
    const record = this.count++;
    if (record === this.starts.length) {
      this.starts = doubled(this.starts);
      this.ends = doubled(this.ends);
      this.lines = doubled(this.lines);
    }
    this.starts[record] = start;
    this.ends[record] = end;
    this.lines[record] = line;
    return record;
  }

  reject(record: number, reason: Reason | RefusedBefore, chunk: ChunkRange, bytes: Buffer): Reject {
    const { starts, ends, lines } = this;
    const start = starts[record] ?? 0;
    const end = ends[record] ?? start;
    const { code, message, column, raw } =
      'raw' in reason ? reason : refusedBefore(reason, bytes.subarray(start, end));
    return {
      code,
      message,
      column,
      row: chunk.firstRow + record,
      line: chunk.firstLine + (lines[record] ?? 0),
      byteOffset: chunk.byteStart + start,
      raw: reason.isSecret === true ? noBytes : raw,
    };
  }
}

export function idLengthProblem(bytes: number, column: string): Reason | null {
  if (bytes === 0) return { code: 'missing_id', message: `${column} is empty`, column };
  if (bytes <= MAX_ID_BYTES) return null;
  return {
    code: 'id_too_long',
    message: `${column} has ${bytes} bytes; at most ${MAX_ID_BYTES} are allowed`,
    column,
  };
}

/** `text` may be a byte string. */
export function textProblem(text: string, column: string): Reason | null {
  if (text.includes('\0')) return { code: 'nul_character', message: `${column} holds U+0000`, column };
  if (text.isWellFormed()) return null;
  return { code: 'lone_surrogate', message: `${column} holds half a surrogate pair`, column };
}

export function missingId(column: string): Reason {
  return { code: 'missing_id', message: `${column} is missing`, column };
}

export function notAnId(column: string): Reason {
  return { code: 'invalid_id', message: `${column} must be a string or a whole number`, column };
}

class Member {
  readonly name: string;
  /** `null` while all values were null. */
  type: DataType | null = null;
  /** Values that a full check found to be dates. */
  dates = 0;
  next: Member = this;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Properties of one entity in a chunk, and their types. Records of a file mostly have the same
 * names in the same order, so the next name is guessed first. Names are byte strings.
 */
class PropertyTypes {
  readonly #members = new Map<string, Member>();
  /** Columns with cells that were not noted. */
  readonly #columns = new Set<string>();
  /** At first a member whose empty name no property has. */
  #last = new Member('');

  reset(): void {
    this.#members.clear();
    this.#columns.clear();
    this.#last = new Member('');
  }

  addColumn(name: string): void {
    this.#columns.add(name);
  }

  note(name: string, type: DataType | null): void {
    widenBy(this.#next(name), type);
  }

  /** Runs for every property of a record. */
  noteCell(name: string, list: CellList, cell: number): void {
    const member = this.#next(name);
    // Nothing widens a string.
    if (member.type === 'string') return;
    const is = list.kinds[cell] ?? 0;
    if (is === kind.text) {
      const { bytes } = list;
      const [start, end] = [list.starts[cell] ?? 0, list.ends[cell] ?? 0];
      // Checking every date would cost more than all the rest.
      if (member.dates >= SAMPLED_ROWS && resemblesIsoDateBytes(bytes, start, end)) return;
      widenBy(member, dataTypeOf(bytes.toString('latin1', start, end)));
    } else widenBy(member, is < kind.number ? dataTypeOf(list.text(cell)) : (typesOfKinds[is] ?? null));
  }

  /** `null` where no value was seen. */
  types(): ReadonlyMap<string, DataType | null> {
    const types = new Map<string, DataType | null>();
    for (const name of this.#columns) types.set(fromByteString(name), null);
    for (const { name, type } of this.#members.values())
      if (type !== null) types.set(fromByteString(name), type);
    return types;
  }

  #next(name: string): Member {
    let member = this.#last.next;
    if (member.name !== name) member = this.#find(name);
    this.#last = member;
    return member;
  }

  #find(name: string): Member {
    let member = this.#members.get(name);
    if (member === undefined) {
      member = new Member(name);
      this.#members.set(name, member);
    }
    this.#last.next = member;
    return member;
  }
}

const typesOfKinds: Readonly<Record<number, DataType>> = {
  [kind.number]: 'numeric',
  [kind.boolean]: 'boolean',
  [kind.container]: 'string',
};

function widenBy(member: Member, type: DataType | null): void {
  if (type === 'date') member.dates++;
  if (type !== null) member.type = member.type === null ? type : widen(member.type, type);
}
