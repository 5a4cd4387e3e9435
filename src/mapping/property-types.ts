import { type DataType, dataTypeOf, resemblesIsoDateBytes, widen } from '../domain/data-type.ts';
import { SAMPLED_ROWS } from '../domain/limits.ts';
import { type CellList, kind } from './cells.ts';
import { fromByteString } from './json-text.ts';

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
export class PropertyTypes {
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

  /** By name. Null where no value was inspected. */
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
