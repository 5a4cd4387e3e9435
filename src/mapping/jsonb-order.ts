import type { MemberList } from './json-members.ts';
import type { KnownName } from './known-names.ts';

/** Members that are put in order; of more it would cost more than PostgreSQL pays for it. */
const MAX_ORDERED_MEMBERS = 64;

/**
 * The order in which jsonb keeps the members of an object, by length of their names, then by their bytes: given so, it has
 * nothing to sort. Worked out anew only where an object has other names than the one before.
 */
export class JsonbOrder {
  readonly #order = new Int32Array(MAX_ORDERED_MEMBERS);
  readonly #names: KnownName[] = [];

  /** The numbers of the members, as many as there are; null if they are too many. Valid until the next call. */
  of({ count, names }: MemberList): Int32Array | null {
    if (count > MAX_ORDERED_MEMBERS) return null;
    let same = 0;
    while (same < count && names[same] === this.#names[same]) same++;
    if (same === count && count === this.#names.length) return this.#order;
    this.#names.length = 0;
    for (let member = 0; member < count; member++) {
      const name = names[member];
      if (name !== undefined) this.#insert(name, member);
    }
    return this.#order;
  }

  #insert(name: KnownName, member: number): void {
    const order = this.#order;
    let at = member;
    for (; at > 0; at--) {
      const other = this.#names[order[at - 1] ?? 0];
      if (other === undefined || !isBefore(name.text, other.text)) break;
      order[at] = order[at - 1] ?? 0;
    }
    order[at] = member;
    this.#names.push(name);
  }
}

function isBefore(name: string, other: string): boolean {
  return name.length === other.length ? name < other : name.length < other.length;
}
