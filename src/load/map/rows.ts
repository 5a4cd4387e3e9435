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
 * Mapping: records to rows or rejects. `column-plan.ts` decides what a column means, `csv-rows.ts` and
 * `ndjson-rows.ts` read the records of a chunk, `row-buffer.ts` holds the rows as the text that COPY reads. No string or object is made of
 * a plain CSV cell; every record ends as a row or as a reject, never as an error.
 */

const OPEN_BRACE = '\t{';
const CLOSE_BRACE = '}\t';

/** The result of a chunk: rows per entity, and what was refused. It is reused from chunk to chunk. */
export class Rows {
  readonly records = new RecordIndex();
  readonly kinds = new RecordKinds();
  readonly digests = new RecordDigests(this.records, this.kinds);
  /** Records that are passed over. */
  readonly unchanged = new UnchangedRecords(this.digests);
  readonly users = new RowBuffer(this.digests);
  readonly companies = new RowBuffer(this.digests);
  readonly events = new EventBuffer();
  /** The types of the rows' properties. */
  readonly types = {
    users: new PropertyTypes(),
    companies: new PropertyTypes(),
    events: new PropertyTypes(),
  };
  /** When events may be. */
  readonly times = new EventTimes();
  /** See `RowBuffer.keepsFirst`; nulls are left out, since they remove nothing. */
  #keepsExisting = false;
  /** Judges the records; null: nothing does. */
  stage: RecordStage | null = null;
  rejects: Reject[] = [];
  /** They are refused unread. */
  #refused: RefusedRecords = noRecords;
  /** Properties without a name, which were left out. */
  dropped = 0;
  /** The chunk's bytes, to quote refused records from. */
  bytes: Buffer = Buffer.alloc(0);

  get keepsExisting(): boolean {
    return this.#keepsExisting;
  }

  set keepsExisting(keeps: boolean) {
    this.#keepsExisting = keeps;
    this.users.keepsFirst = keeps;
    this.companies.keepsFirst = keeps;
  }

  /** With a `stamp`, the rows of users are for their table itself; see `RowBuffer.reset`. */
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

  /** Forgets the chunk's bytes. */
  release(): void {
    this.bytes = Buffer.alloc(0);
    this.digests.close();
    this.unchanged.reset();
  }

  /** Returns why the record is refused whatever it holds, or null. */
  refusalOf(record: number): Reason | null {
    const refused = this.#refused.get(record);
    if (refused === undefined) return null;
    if (refused.kind !== null) this.kinds.set(record, refused.kind);
    return refused.reason;
  }

  /**
   * Returns the records of the users who are refused, as `reset` takes them; `wrong` are the users of those that are no rows. Call it
   * before `complete`.
   */
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

  /** The rows of profiles, in order. */
  *profiles(entity: Entity): Generator<ProfileRow> {
    const rows = this[entity];
    for (let row = 0; row < rows.rows; row++) {
      const [key, properties, company] = copyCells(rows.content(row)) as [string, string, string | null];
      const [record, flags] = [rows.recordOf(row), rows.flagsOf(row)];
      yield { record, key, properties, company, flags };
    }
  }

  /**
   * Call it once, when all rows are there. A user who comes several times is one row with one company, the last or, with
   * `keepsExisting`, the first. The other companies were named too, and so must exist.
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

  /** Writes a record of which properties were left out. Its digest would say that there were none. */
  writeWithout(properties: number, record: number, write: () => Reason | null): Reason | null {
    if (properties > 0) this.digests.refuse(record);
    const reason = write();
    if (reason === null) this.dropped += properties;
    return reason;
  }

  /** The ids of users whom rows name, and of others, as a text[]. */
  userIds(others: Iterable<string> = []): Buffer {
    const ids = new Set(this.users.keys());
    for (const id of others) ids.add(escapeCopy(toByteString(id)));
    for (const user of this.events.users()) ids.add(user);
    return textArray(Array.from(ids, unescapeCopy));
  }

  /** A record that the database refused after it had passed all checks. */
  rejectRecord(record: number, message: string, chunk: ChunkRange): Reject {
    return this.records.reject(
      record,
      { code: 'refused_by_database', message, column: null },
      chunk,
      this.bytes,
    );
  }

  /**
   * Adds a row. All texts are byte strings, already escaped for COPY. `properties` is the inside of a JSON
   * object; `company` null leaves the company as it is and '' removes it; `flags` as in `RowBuffer`.
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
  /** See `RowBuffer.reset`. */
  readonly stamp?: Buffer | null;
  readonly origin?: EventOrigin;
  /** Counts the events of several chunks together. */
  readonly counter?: IdCounter | null;
  /** See `recordsOf`. */
  readonly refused?: RefusedRecords;
}

/** Records that are refused whatever they hold, with the kinds that they name. */
type RefusedRecords = ReadonlyMap<number, { readonly kind: RecordKind | null; readonly reason: Reason }>;

const noBytes = new Uint8Array(0);
const noRecords: RefusedRecords = new Map();

const noOrigin: EventOrigin = { environmentId: 0, acceptedAt: '1970-01-01T00:00:00.000000Z' };

/** The kinds that records name; they cost nothing if none does. */
class RecordKinds {
  #kinds = new Uint8Array(0);
  #some = false;

  /** Returns true if any record of the chunk says what it is. */
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

  /** Returns null if the record does not say it, or says what no kind is. */
  of(record: number): RecordKind | null {
    return recordKinds[(this.#kinds[record] ?? 0) - 1] ?? null;
  }
}

/** The position of each record of a chunk, so that any can be named later without an object per record. */
export class RecordIndex {
  count = 0;
  starts = new Int32Array(16 * 1024);
  ends = new Int32Array(16 * 1024);
  lines = new Int32Array(16 * 1024);

  reset(): void {
    this.count = 0;
  }

  /** Returns the number of the record within its chunk, from 0. */
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

  /** Names record `record` of `chunk`, whose bytes are `bytes`, as refused for `reason`. */
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

/** Why `bytes` bytes of UTF-8 cannot be the id in `column`, or null. */
export function idLengthProblem(bytes: number, column: string): Reason | null {
  if (bytes === 0) return { code: 'missing_id', message: `${column} is empty`, column };
  if (bytes <= MAX_ID_BYTES) return null;
  return {
    code: 'id_too_long',
    message: `${column} has ${bytes} bytes; at most ${MAX_ID_BYTES} are allowed`,
    column,
  };
}

/** Why `text`, which may be a byte string, cannot be stored in `column`, or null. */
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
  /** The type; null while all values were null. */
  type: DataType | null = null;
  /** Values that were found to be dates by a close look. */
  dates = 0;
  /** The member that is likely to come next. */
  next: Member = this;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * The properties that a chunk's records of one entity bear, and of what type their values are. Records of one file bear mostly the same
 * names in the same order, so the next name is guessed before it is looked for. Names are byte strings.
 */
class PropertyTypes {
  readonly #members = new Map<string, Member>();
  /** Columns whose cells were not all looked at. */
  readonly #columns = new Set<string>();
  /** The one noted last; before the first, one whose name no property can have. */
  #last = new Member('');

  reset(): void {
    this.#members.clear();
    this.#columns.clear();
    this.#last = new Member('');
  }

  /** The column is there; what of its cells was not noted is not known. */
  addColumn(name: string): void {
    this.#columns.add(name);
  }

  note(name: string, type: DataType | null): void {
    widenBy(this.#next(name), type);
  }

  /** Notes a property of a record; asked of every one. */
  noteCell(name: string, list: CellList, cell: number): void {
    const member = this.#next(name);
    // Nothing widens a string.
    if (member.type === 'string') return;
    const is = list.kinds[cell] ?? 0;
    if (is === kind.text) {
      const { bytes } = list;
      const [start, end] = [list.starts[cell] ?? 0, list.ends[cell] ?? 0];
      // A close look at every date would cost more than all the rest of this.
      if (member.dates >= SAMPLED_ROWS && resemblesIsoDateBytes(bytes, start, end)) return;
      widenBy(member, dataTypeOf(bytes.toString('latin1', start, end)));
    } else widenBy(member, is < kind.number ? dataTypeOf(list.text(cell)) : (typesOfKinds[is] ?? null));
  }

  /** By name. Null where no value was seen. */
  types(): ReadonlyMap<string, DataType | null> {
    const types = new Map<string, DataType | null>();
    for (const name of this.#columns) types.set(fromByteString(name), null);
    for (const { name, type } of this.#members.values())
      if (type !== null) types.set(fromByteString(name), type);
    return types;
  }

  /** The member of a property that follows the one noted last. */
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
