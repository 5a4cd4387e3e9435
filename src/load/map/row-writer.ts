import {
  byEventKind,
  type Entity,
  type LoadEntity,
  propertyEntities,
  type RecordKind,
} from '../../domain/entity.ts';
import type { Reason } from '../../domain/reject.ts';
import { type CellList, type RecordCells, role } from './cells.ts';
import { kindProblem, takesKind } from './event-checks.ts';
import { EventRow } from './event-row.ts';
import { entityOf, kindOf } from './fields.ts';
import { ProfileRow } from './profile-row.ts';
import { neitherId } from './reasons.ts';
import { UNCOUNTED } from './row-buffer.ts';
import type { Rows } from './rows.ts';
import { ofEvent, ofProfile, ofStatedProfile } from './shapes.ts';

interface RecordRow {
  /**
   * Writes a row after the rows in the buffer. Returns the reason for refusing the record, or
   * `null`.
   */
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

  /**
   * Returns the reason why a record cannot become a row, or `null`. `record` is the number of the
   * record in the chunk.
   */
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

  /**
   * Adds the columns of a CSV file to the properties. Must be called after each chunk of the file.
   */
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
