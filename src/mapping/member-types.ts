import { type DataType, dataTypeOf } from '../domain/data-type.ts';
import { resemblesIsoDate } from '../domain/iso-date.ts';
import { SAMPLED_ROWS } from '../domain/limits.ts';
import { markedNumber } from './json-text.ts';

class Member {
  readonly name: string;
  /** Null while all its values were null. */
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
 * The names of members of JSON objects, and of what type their values are. Records of one file bear mostly the same
 * names in the same order, so the next name is guessed before it is looked for.
 */
export class MemberTypes {
  readonly #members = new Map<string, Member>();
  /** The one noted last; before the first, one whose name no property can have. */
  #last = new Member('');

  reset(): void {
    this.#members.clear();
    this.#last = new Member('');
  }

  /** Asked of every property of every record. `marked`: numbers may be, see `ParsedJson`. */
  note(name: string, value: unknown, marked: boolean): void {
    let member = this.#last.next;
    if (member.name !== name) member = this.#find(name);
    this.#last = member;
    // Nothing widens a string.
    if (member.type === 'string') return;
    // A close look at every date would cost more than all the rest of this.
    if (member.dates >= SAMPLED_ROWS && typeof value === 'string' && resemblesIsoDate(value)) return;
    const type = marked && markedNumber(value) !== null ? 'numeric' : dataTypeOf(value);
    if (type === 'date') member.dates++;
    if (type === null || type === member.type) return;
    member.type = member.type === null ? type : 'string';
  }

  /** Those that had a value. */
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
