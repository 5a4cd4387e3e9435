import type { Entity, PropertyEntity, RecordKind } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reason, Reject } from '../../domain/reject.ts';
import {
  copyCells,
  escapeCopy,
  fromByteString,
  toByteString,
  unescapeCopy,
} from '../../formats/json-text.ts';
import type { JudgeStage } from '../../ingest/records.ts';
import type { Database } from '../../postgres/database.ts';
import { textArray } from './binary-array.ts';
import type { RecordCells } from './cells.ts';
import { EventBuffer, type EventOrigin } from './event-buffer.ts';
import { EventTimes } from './event-checks.ts';
import type { IdCounter } from './event-keys.ts';
import { PropertyTypes } from './property-types.ts';
import { RecordDigests } from './record-digests.ts';
import { RecordKinds, RecordPlaces } from './record-places.ts';
import { RowBuffer, type RowContent, UNCOUNTED } from './row-buffer.ts';
import { UnchangedRecords } from './unchanged-records.ts';

/*
 * `column-plan.ts` determines the roles of columns. `csv-rows.ts` and `ndjson-rows.ts` fill the
 * buffers of COPY text. For speed, a plain CSV cell becomes neither a string nor an object, and a
 * refused record throws no error.
 */

const OPEN_BRACE = '\t{';
const CLOSE_BRACE = '}\t';

/** Rows and rejects of a chunk. A reader reuses the same object for every chunk. */
export class Rows {
  readonly records = new RecordPlaces();
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
  readonly times = new EventTimes();
  #load: LoadScope = { keepsExisting: false, stage: null };
  #refused: RefusedRecords = noRecords;
  #bytes: Buffer = noBytes;
  #rejects: Reject[] = [];
  #dropped = 0;

  get keepsExisting(): boolean {
    return this.#load.keepsExisting;
  }

  get stage(): RecordStage | null {
    return this.#load.stage;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  get rejects(): readonly Reject[] {
    return this.#rejects;
  }

  /** Number of properties that were omitted because their names were empty. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Prepares for a load. Must be called before its first chunk. */
  startLoad(load: LoadScope): void {
    this.#load = load;
  }

  /** Empties the rows for the next chunk. Must be called before each chunk of the load. */
  reset(chunk: ChunkScope = {}): void {
    const { bytes = noBytes, digestKey = null, stamp = null, refused = noRecords } = chunk;
    const { origin = noOrigin, counter = null } = chunk;
    this.#bytes = bytes;
    this.#refused = refused;
    this.records.reset();
    this.digests.open(bytes, digestKey);
    this.unchanged.reset();
    this.users.reset(stamp, this.keepsExisting);
    this.companies.reset(null, this.keepsExisting);
    this.events.reset(origin, counter);
    this.kinds.reset();
    this.times.reset(origin.acceptedAt);
    this.stage?.reset();
    for (const types of Object.values(this.types)) types.reset();
    this.users.shrink();
    this.companies.shrink();
    this.#rejects = [];
    this.#dropped = 0;
  }

  release(): void {
    this.#bytes = noBytes;
    this.digests.close();
    this.unchanged.reset();
  }

  addReject(reject: Reject): void {
    this.#rejects.push(reject);
  }

  refusalOf(record: number): Reason | null {
    const refused = this.#refused.get(record);
    if (refused === undefined) return null;
    if (refused.kind !== null) this.kinds.set(record, refused.kind);
    return refused.reason;
  }

  /**
   * Records that refer to one of the refused `users`. `wrong` contains the users of records that
   * are already rejects. Must be called before `complete`.
   */
  recordsOf(users: ReadonlyMap<string, Reason>, wrong: ReadonlyMap<number, string>): RefusedRecords {
    const records = new Map<number, { kind: RecordKind | null; reason: Reason }>();
    const note = (id: string, record: number): void => {
      const reason = users.get(id);
      if (reason !== undefined) records.set(record, { kind: this.kinds.of(record), reason });
    };
    for (const [record, id] of wrong) note(id, record);
    for (const { key, record } of this.profiles('users')) note(key, record);
    let row = 0;
    for (const user of this.events.users())
      note(fromByteString(unescapeCopy(user)), this.events.recordOf(row++));
    return records;
  }

  *profiles(entity: Entity): Generator<RowContent> {
    const rows = this[entity];
    for (let row = 0; row < rows.rows; row++) {
      const [key, properties, company] = copyCells(rows.content(row)) as [string, string, string | null];
      const [record, flags] = [rows.recordOf(row), rows.flagsOf(row)];
      yield { record, key, properties, company, flags };
    }
  }

  /**
   * Adds rows for companies that would otherwise not be created. The rows of a user become one row
   * with one company, so the user's other companies need rows of their own. Must be called once,
   * after all rows have been added.
   */
  complete(): void {
    if (this.users.repeated === 0) return;
    for (const rows of this.users.groups()) {
      if (rows.length === 1) continue;
      const companies = rows.map((row) => this.users.companyOf(row));
      const isNamed = (name: string | null) => name !== null;
      const company = this.keepsExisting ? companies.find(isNamed) : companies.findLast(isNamed);
      for (const [index, other] of companies.entries()) {
        if (other === null || other === '' || other === company) continue;
        this.add('companies', other, '', null, UNCOUNTED, this.users.recordOf(rows[index] ?? 0));
      }
    }
  }

  /**
   * Writes a record without the properties whose names are empty. `properties` is their number. A
   * record that loses a property gets no digest. Otherwise, the next load would skip the record
   * without counting the loss.
   */
  writeWithout(properties: number, record: number, write: () => Reason | null): Reason | null {
    if (properties > 0) this.digests.exclude(record);
    const reason = write();
    if (reason === null) this.#dropped += properties;
    return reason;
  }

  /** The ids in `others` and the ids of the users of all rows, as a text[] in binary format. */
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
      this.#bytes,
    );
  }

  /**
   * Adds a row. The byte strings must be escaped for COPY. `properties` is a JSON object without
   * its braces. `company`: `null` keeps the company, '' removes it.
   */
  add(
    entity: Entity,
    key: string,
    properties: string,
    company: string | null,
    flags: number,
    record: number,
  ): void {
    const out = this[entity];
    const last = company ?? '\\N';
    out.reserve(key.length + properties.length + last.length + 16);
    const start = out.at;
    const keyEnd = start + key.length;
    const propertyEnd = keyEnd + OPEN_BRACE.length + properties.length;
    const at = start + out.bytes.write(key + OPEN_BRACE + properties + CLOSE_BRACE + last, start, 'latin1');
    out.endRow(keyEnd, propertyEnd, at, record, flags);
  }
}

interface LoadScope {
  /**
   * True if stored values take precedence. Nulls are then omitted, because they would remove
   * nothing.
   */
  readonly keepsExisting: boolean;
  /** `null` if no capability judges the records of the load. */
  readonly stage: RecordStage | null;
}

export interface ChunkScope {
  readonly bytes?: Buffer;
  /** Default: no digests. */
  readonly digestKey?: Int32Array | null;
  /** See `RowBuffer.reset`. */
  readonly stamp?: Buffer | null;
  readonly origin?: EventOrigin;
  /** Counts equal events in several chunks. */
  readonly counter?: IdCounter | null;
  /** Records to refuse without reading them. */
  readonly refused?: RefusedRecords;
}

/** Refused records, by their number in the chunk. */
type RefusedRecords = ReadonlyMap<number, { readonly kind: RecordKind | null; readonly reason: Reason }>;

const noBytes = Buffer.alloc(0);
const noRecords: RefusedRecords = new Map();

const noOrigin: EventOrigin = { environmentId: 0, acceptedAt: '1970-01-01T00:00:00.000000Z' };

/** Judges the records of a load before they become rows. Counts its findings in each chunk. */
export interface RecordStage extends JudgeStage {
  /** Part of the key for digests. If this part changes, no record counts as unchanged. */
  readonly key: unknown;
  reset(): void;
  /**
   * Returns the reason for refusing the record, or `null`. `shape` specifies which cells are
   * properties. May change the cells. Later steps see the changed values, which are also stored. A
   * repeated call does nothing.
   */
  judgeCells(
    entity: PropertyEntity,
    cells: RecordCells,
    shape: Uint8Array,
    eventName: (() => string) | null,
  ): Reason | null;
  count(cells: RecordCells): void;
  /** Stores the findings. Is called in the transaction of the chunk. */
  keep(db: Database, loadId: number): Promise<void>;
}
