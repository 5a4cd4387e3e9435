import {
  type DataType,
  dataTypeOf,
  resemblesIsoDate,
  resemblesIsoDateBytes,
  widen,
} from '../domain/data-type.ts';
import { SAMPLED_ROWS } from '../domain/limits.ts';
import type { CsvCells } from './csv-cells.ts';
import { BOOLEAN, CONTAINER, ESCAPED_TEXT, NUMBER, TEXT } from './json-members.ts';
import { fromByteString, markedNumber, type ParsedJson } from './json-text.ts';

/** The properties that a chunk's records of one entity bear, and of what type their values are. */
export class PropertyTypes {
  /** Members of JSON objects, by name as a byte string and as text; see `ParsedJson.decoded`. */
  readonly #byBytes = new MemberTypes();
  readonly #byText = new MemberTypes();
  /** Columns. */
  readonly #columns = new Map<string, DataType | null>();

  reset(): void {
    this.#byBytes.reset();
    this.#byText.reset();
    this.#columns.clear();
  }

  /** Returns where the types of the members of such an object are collected. */
  membersOf({ decoded }: ParsedJson): MemberTypes {
    return decoded ? this.#byText : this.#byBytes;
  }

  /** The same of members whose names are byte strings. */
  get written(): MemberTypes {
    return this.#byBytes;
  }

  /** A type of null: the column is there, and its cells were not looked at. */
  addColumn(name: string, type: DataType | null): void {
    this.#columns.set(name, type);
  }

  /** By name. Null where no value was inspected. */
  types(): ReadonlyMap<string, DataType | null> {
    const types = new Map(this.#columns);
    const add = (name: string, type: DataType) => types.set(name, widen(types.get(name) ?? type, type));
    for (const [name, type] of this.#byText) add(name, type);
    for (const [name, type] of this.#byBytes) add(fromByteString(name), type);
    return types;
  }
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

function noteText(member: Member, text: string): void {
  // A close look at every date would cost more than all the rest of this.
  if (member.dates >= SAMPLED_ROWS && resemblesIsoDate(text)) return;
  widenBy(member, dataTypeOf(text));
}

function widenBy(member: Member, type: DataType | null): void {
  if (type === 'date') member.dates++;
  if (type === null || type === member.type) return;
  member.type = member.type === null ? type : 'string';
}

/**
 * The names of members of JSON objects, and of what type their values are. Records of one file bear mostly the same
 * names in the same order, so the next name is guessed before it is looked for.
 */
class MemberTypes {
  readonly #members = new Map<string, Member>();
  /** The one noted last; before the first, one whose name no property can have. */
  #last = new Member('');

  reset(): void {
    this.#members.clear();
    this.#last = new Member('');
  }

  /** Asked of every property of every record. `marked`: numbers may be, see `ParsedJson`. */
  note(name: string, value: unknown, marked: boolean): void {
    const member = this.#next(name);
    // Nothing widens a string.
    if (member.type === 'string') return;
    if (marked && markedNumber(value) !== null) widenBy(member, 'numeric');
    else if (typeof value === 'string') noteText(member, value);
    else widenBy(member, dataTypeOf(value));
  }

  /** The same of a value that was walked, of `kind`, in bytes [start, end). */
  noteWritten(name: string, kind: number, bytes: Buffer, start: number, end: number): void {
    const member = this.#next(name);
    if (member.type === 'string') return;
    if (kind === TEXT) {
      if (member.dates >= SAMPLED_ROWS && resemblesIsoDateBytes(bytes, start + 1, end - 1)) return;
      widenBy(member, dataTypeOf(bytes.toString('latin1', start + 1, end - 1)));
    } else if (kind === NUMBER) widenBy(member, 'numeric');
    else if (kind === BOOLEAN) widenBy(member, 'boolean');
    else if (kind === CONTAINER) widenBy(member, 'string');
    else if (kind === ESCAPED_TEXT)
      noteText(member, String(JSON.parse(bytes.toString('latin1', start, end))));
  }

  /** The member of a property that follows the one noted last. */
  #next(name: string): Member {
    let member = this.#last.next;
    if (member.name !== name) member = this.#find(name);
    this.#last = member;
    return member;
  }

  /** Yields the properties that had a value. */
  *[Symbol.iterator](): Generator<readonly [string, DataType]> {
    for (const { name, type } of this.#members.values()) if (type !== null) yield [name, type];
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

/**
 * Of what type the columns of a CSV are, by the first rows of a chunk: a column is of dates if all its cells there are
 * dates, empty ones aside, and of strings otherwise. Later rows are not looked at: it would cost something per cell.
 */
export class ColumnTypes {
  readonly #names: readonly string[];
  /** Columns that are properties. */
  readonly #columns: readonly number[];
  /** Per column: null while all its cells were empty. */
  readonly #types: (DataType | null)[];

  /** `names`: of all columns; `columns`: of those that are properties. */
  constructor(names: readonly string[], columns: readonly number[]) {
    this.#names = names;
    this.#columns = columns;
    this.#types = names.map(() => null);
  }

  reset(): void {
    this.#types.fill(null);
  }

  /** Notes the record whose cells were found last. */
  count(cells: CsvCells): void {
    for (const column of this.#columns) {
      if (this.#types[column] === 'string' || cells.isEmpty(column)) continue;
      const type = dataTypeOf(cells.byteString(column)) ?? 'string';
      this.#types[column] = widen(this.#types[column] ?? type, type);
    }
  }

  /**
   * Adds what was found to `types`. `moreFollowed`: columns without a cell may have one in the rows that were not
   * inspected, and are added too, without a type.
   */
  reportTo(types: PropertyTypes, moreFollowed: boolean): void {
    for (const column of this.#columns) {
      const type = this.#types[column] ?? null;
      if (type !== null || moreFollowed) types.addColumn(this.#names[column] ?? '', type);
    }
  }
}
