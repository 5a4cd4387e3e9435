import type { DataType } from '../domain/data-type.ts';

/** What Postgres is known to hold of one environment's names of one kind. A hint: it may hold more, and wider types. */
export class KnownNames {
  readonly #types = new Map<string, DataType>();
  /** The catalogue takes no more of them; all it holds are known. */
  isFull = false;

  get size(): number {
    return this.#types.size;
  }

  /** Whether nothing need be written for a value of this type; null if there is none to go by. */
  covers(name: string, type: DataType | null): boolean {
    const known = this.#types.get(name);
    if (known === undefined) return this.isFull;
    return known === type || known === 'string' || type === null;
  }

  remember({ name, type }: HeldName): void {
    this.#types.set(name, type);
  }
}

/** A name as Postgres holds it. */
export interface HeldName {
  readonly name: string;
  /** `string` where no value could change it. */
  readonly type: DataType;
}
