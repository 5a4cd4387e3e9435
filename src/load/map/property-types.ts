import { type DataType, dataTypeOf, resemblesIsoDateBytes, widen } from '../../domain/data-type.ts';
import { fromByteString } from '../../formats/json-text.ts';
import { SAMPLED_ROWS } from '../limits.ts';
import { type CellList, kind, type RecordCells } from './cells.ts';
import type { KnownName } from './known-names.ts';

class Member {
  readonly name: string;
  /** Type of all values so far. `null` until the property has a value other than null. */
  type: DataType | null = null;
  /** Number of values that a complete check has found to be dates. */
  dates = 0;
  next: Member = this;

  constructor(name: string) {
    this.name = name;
  }
}

/**
 * Types of one entity's properties in a chunk. Names are byte strings. Most records have the same
 * names in the same order, so the expected name is compared first.
 */
export class PropertyTypes {
  readonly #members = new Map<string, Member>();
  /** Columns that may have cells in records after the sample. */
  readonly #columns = new Set<string>();
  #records = 0;
  /** Member that was found last. No property has an empty name. */
  #last = new Member('');

  reset(): void {
    this.#members.clear();
    this.#columns.clear();
    this.#records = 0;
    this.#last = new Member('');
  }

  note(name: string, type: DataType | null): void {
    widenBy(this.#next(name), type);
  }

  /** Examines the cells of CSV columns only in sampled records, but `metadata` in all records. */
  addRecord({ own, metadata }: RecordCells, shape: Uint8Array): void {
    if (!own.isCsv || this.#records++ < SAMPLED_ROWS) this.#addList(own, shape);
    this.#addList(metadata, shape);
  }

  /**
   * Notes all columns if there are records after the sample, because these records may have cells
   * in any column.
   */
  finishCsv(columns: readonly KnownName[], shape: Uint8Array): void {
    if (this.#records <= SAMPLED_ROWS) return;
    for (const { role, text } of columns) if (shape[role] === 1) this.#columns.add(text);
  }

  #addList(list: CellList, shape: Uint8Array): void {
    for (let cell = 0; cell < list.count; cell++) {
      const name = list.names[cell];
      if (name === undefined || shape[name.role] === 0) continue;
      if (!list.isCsv || !list.isNothing(cell)) this.#addCell(name.text, list, cell);
    }
  }

  /** This method must be fast, because it is called for every property of every record. */
  #addCell(name: string, list: CellList, cell: number): void {
    const member = this.#next(name);
    // String is the widest type, so later values cannot change it.
    if (member.type === 'string') return;
    const cellKind = list.kinds[cell] ?? 0;
    if (cellKind === kind.text) {
      const { bytes } = list;
      const [start, end] = [list.starts[cell] ?? 0, list.ends[cell] ?? 0];
      // A complete check of every date would take longer than all other work.
      if (member.dates >= SAMPLED_ROWS && resemblesIsoDateBytes(bytes, start, end)) return;
      widenBy(member, dataTypeOf(bytes.toString('latin1', start, end)));
    } else
      widenBy(
        member,
        cellKind < kind.number ? dataTypeOf(list.text(cell)) : (typesOfKinds[cellKind] ?? null),
      );
  }

  /** Type of each property. `null` if no value of the property was examined. */
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
