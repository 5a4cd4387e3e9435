import {
  byEventKind,
  type Entity,
  idColumn,
  type LoadEntity,
  propertyEntities,
  type RecordKind,
} from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import {
  type CellList,
  kind as cellKind,
  ofEvent,
  ofProfile,
  ofStatedProfile,
  type RecordCells,
  role,
} from './cells.ts';
import { kindProblem, takesKind } from './event-checks.ts';
import { EventRow } from './event-row.ts';
import { entityOf, kindOf, readTime } from './fields.ts';
import type { KnownName } from './known-names.ts';
import type { PropertyTypes } from './property-types.ts';
import { neitherId, removesProfile } from './reasons.ts';
import { REMOVES, type RowBuffer, UNCOUNTED } from './row-buffer.ts';
import { RowText } from './row-text.ts';
import type { Rows } from './rows.ts';

interface RecordRow {
  /** Writes a row after the rows in the buffer. If the record is refused, returns the reason. */
  compose(cells: RecordCells): Reason | null;
  end(cells: RecordCells, record: number): void;
}

export class RowWriter {
  readonly #entity: LoadEntity;
  readonly #rows: Rows;
  readonly #profiles: Readonly<Record<Entity, ProfileRow>>;
  /** Rows of records that state their kind. */
  readonly #byKind: Readonly<Record<RecordKind, RecordRow>>;

  constructor(entity: LoadEntity, rows: Rows) {
    this.#entity = entity;
    this.#rows = rows;
    this.#profiles = {
      users: new ProfileRow('users', ofProfile, rows),
      companies: new ProfileRow('companies', ofProfile, rows),
    };
    this.#byKind = {
      identify_user: new ProfileRow('users', ofStatedProfile, rows),
      identify_company: new ProfileRow('companies', ofStatedProfile, rows),
      ...byEventKind((kind) => new EventRow(kind, rows)),
    };
  }

  /** Reason why a record cannot become a row. `record` is its number in the chunk. */
  check(cells: RecordCells, record: number): Reason | null {
    const row = this.#rowOf(cells, record);
    return 'code' in row ? row : row.compose(cells);
  }

  /** Checks the record like `check`, and adds the row. */
  write(cells: RecordCells, record: number): Reason | null {
    const row = this.#rowOf(cells, record);
    if ('code' in row) return row;
    const reason = row.compose(cells);
    if (reason === null) row.end(cells, record);
    return reason;
  }

  /** Stores the types of a record's properties, without writing a row for the record. */
  sample(cells: RecordCells, entity: Entity): void {
    this.#profiles[entity].sample(cells);
  }

  /** Completes the types of the properties. Must be called after each chunk of a CSV file. */
  finishCsv({ names }: CellList): void {
    for (const entity of propertyEntities)
      this.#rows.types[entity].finishCsv(names, entity === 'events' ? ofEvent : ofProfile);
  }

  #rowOf(cells: RecordCells, record: number): RecordRow | Reason {
    if (cells.entity !== null) return this.#profiles[cells.entity];
    if (cells.hasKind || cells.has(role.kind)) return this.#rowOfKind(cells, record);
    const entity = this.#entity === 'auto' ? entityOf(cells) : this.#entity;
    return entity === null ? neitherId : this.#profiles[entity];
  }

  #rowOfKind(cells: RecordCells, record: number): RecordRow | Reason {
    const kind = kindOf(cells);
    const isCounted = (cells.flags & UNCOUNTED) === 0;
    if (kind !== null && isCounted) this.#rows.kinds.set(record, kind);
    if (kind !== null && (!isCounted || takesKind(this.#entity, kind))) return this.#byKind[kind];
    const cell = cells.fields[role.kind] ?? -1;
    return kindProblem(this.#entity, cell === -1 ? '' : cells.own.text(cell));
  }
}

const rowOverhead = 128;

export class ProfileRow {
  readonly #entity: Entity;
  readonly #shape: Uint8Array;
  readonly #rows: Rows;
  readonly #id: number;
  readonly #buffer: RowBuffer;
  readonly #types: PropertyTypes;
  readonly #text = new RowText();
  #keyEnd = 0;
  #propertyEnd = 0;
  #leavesCompany = false;

  constructor(entity: Entity, shape: Uint8Array, rows: Rows) {
    this.#entity = entity;
    this.#shape = shape;
    this.#rows = rows;
    this.#buffer = rows[entity];
    this.#types = rows.types[entity];
    this.#id = entity === 'users' ? role.userId : role.companyId;
  }

  compose(cells: RecordCells): Reason | null {
    if (cells.has(role.removed) && this.#isTombstone(cells)) return removesProfile;
    const text = this.#text;
    const buffer = this.#buffer;
    const refusal = this.#judge(cells);
    if (refusal !== null) return refusal;
    buffer.reserve(cells.size + rowOverhead);
    text.begin(buffer.bytes, buffer.at);
    const problem = this.#timeProblem(cells) ?? text.addRequired(cells, this.#id, idColumn[this.#entity]);
    if (problem !== null) return problem;
    this.#keyEnd = text.at;
    text.addTab();
    text.addProperties(cells, this.#shape, '', this.#rows.keepsExisting);
    this.#propertyEnd = text.at - 1;
    text.addTab();
    return this.#addCompany(cells) ?? cells.problem;
  }

  /** See `RecordRow`. */
  end(cells: RecordCells, record: number): void {
    const { at, flags } = this.#text;
    const all = flags | cells.flags | (this.#leavesCompany ? REMOVES : 0);
    this.#buffer.endRow(this.#keyEnd, this.#propertyEnd, at, record, all);
    this.#types.addRecord(cells, this.#shape);
    this.#rows.stage?.count(cells);
  }

  /** Stores the types of a record's properties, without writing a row for the record. */
  sample(cells: RecordCells): void {
    this.#judge(cells);
    this.#types.addRecord(cells, this.#shape);
  }

  #judge(cells: RecordCells): Reason | null {
    return this.#rows.stage?.judgeCells(this.#entity, cells, this.#shape, null) ?? null;
  }

  /** If a record of a profile states its kind, its time is checked but not stored. */
  #timeProblem(cells: RecordCells): Reason | null {
    if (this.#shape !== ofStatedProfile) return null;
    const time = readTime(cells, this.#rows.times);
    return time !== null && 'code' in time ? time : null;
  }

  /** `company_id: null` in JSON removes the company. An empty cell in CSV changes nothing. */
  #addCompany(cells: RecordCells): Reason | null {
    this.#leavesCompany = false;
    if (this.#entity === 'users') {
      if (cells.has(role.companyId)) return this.#text.addId(cells, role.companyId, 'company_id');
      const isNull = (cells.fields[role.companyId] ?? -1) !== -1 && !cells.own.isCsv;
      this.#leavesCompany = isNull && !this.#rows.keepsExisting;
    }
    if (!this.#leavesCompany) this.#text.addNull();
    return null;
  }

  /** True if the record contains only an id and `removed: true`. Exports write such records. */
  #isTombstone(cells: RecordCells): boolean {
    const { own, metadata } = cells;
    const cell = cells.fields[role.removed] ?? -1;
    const isText = own.isCsv || own.kinds[cell] === cellKind.boolean;
    if (!isText || own.text(cell).toLowerCase() !== 'true') return false;
    if (this.#entity === 'users' && cells.has(role.companyId)) return false;
    return !hasProperty(own, this.#shape) && !hasProperty(metadata, this.#shape);
  }
}

function hasProperty(list: CellList, shape: Uint8Array): boolean {
  for (let cell = 0; cell < list.count; cell++) {
    const { role: cellRole } = list.names[cell] as KnownName;
    if (shape[cellRole] === 1 && cellRole !== role.removed && !list.isNothing(cell)) return true;
  }
  return false;
}
