/*
 * Properties: names and types of properties and names of events, learned from records up to a bound
 * for each environment, and listed by the look-ups of the API.
 */
import type { Logger } from 'pino';
import { Fault } from '../base/errors.ts';
import { MAX_LISTED_NAMES } from '../base/limits.ts';
import type { DataType } from '../domain/data-type.ts';
import type { NameKind } from '../domain/entity.ts';
import type { Database } from '../postgres/database.ts';
import { readNames, type TypedName, writeNames } from './property-store.ts';

/** Names, of whatever environment, that one process remembers: some 100 bytes each. */
const maxRememberedNames = 200_000;

type Known = Readonly<Record<NameKind, KnownNames>>;

/**
 * Learns names and types, and remembers what PostgreSQL has, so that known names need no statement.
 * Names are committed before their data and outside its transaction: a name without data does no
 * harm, and nobody waits for the row of a name until a chunk is done.
 */
export class KnownProperties {
  readonly #log: Logger;
  readonly #maxRemembered: number;
  readonly #known = new Map<number, Known>();
  readonly #reported = new Set<number>();

  constructor(log: Logger, maxRemembered = maxRememberedNames) {
    this.#log = log;
    this.#maxRemembered = maxRemembered;
  }

  /** Tells whether nothing need be written for a value of this type. */
  knows(environmentId: number, kind: NameKind, name: string, type: DataType | null): boolean {
    return this.#known.get(environmentId)?.[kind].covers(name, type) ?? false;
  }

  /** Lists the names, as far as there is room, each with a type that covers the given one; null, of values unseen, is `string` if new. */
  async learn(
    db: Database,
    environmentId: number,
    kind: NameKind,
    types: ReadonlyMap<string, DataType | null>,
  ): Promise<void> {
    const names = Array.from(types, ([name, type]) => ({ name, type })).filter(
      ({ name, type }) => !this.knows(environmentId, kind, name, type),
    );
    if (names.length > 0) await this.#learn(db, environmentId, kind, names);
  }

  /** Writes what is new and remembers what is there then: nothing if a statement fails. */
  async #learn(
    db: Database,
    environmentId: number,
    kind: NameKind,
    names: readonly TypedName<DataType | null>[],
  ): Promise<void> {
    if (db.isTransaction)
      throw new Fault('names are learned outside of the transaction that writes their data');
    // A single statement, except for chunks with more names than are listed.
    for (let from = 0; from < names.length; from += MAX_LISTED_NAMES) {
      const batch = names
        .slice(from, from + MAX_LISTED_NAMES)
        .filter(({ name, type }) => !this.knows(environmentId, kind, name, type));
      if (batch.length === 0) continue;
      const held = await writeNames(db, environmentId, kind, batch);
      const known = this.#remembering(environmentId);
      for (const name of held) known[kind].remember(name);
      if (held.length < batch.length) await this.#lookWhetherFull(db, environmentId, kind, known[kind]);
    }
    this.#forgetSome(environmentId);
  }

  async #lookWhetherFull(
    db: Database,
    environmentId: number,
    kind: NameKind,
    known: KnownNames,
  ): Promise<void> {
    const held = await readNames(db, environmentId, kind);
    for (const name of held) known.remember(name);
    if (held.length < MAX_LISTED_NAMES) return;
    known.isFull = true;
    if (this.#reported.has(environmentId)) return;
    this.#reported.add(environmentId);
    this.#log.warn(
      { environment_id: environmentId, names_of: kind, limit: MAX_LISTED_NAMES },
      'the list of names is full: further names are stored with their data, but not listed',
    );
  }

  #remembering(environmentId: number): Known {
    const known = this.#known.get(environmentId) ?? {
      users: new KnownNames(),
      companies: new KnownNames(),
      events: new KnownNames(),
      event_names: new KnownNames(),
    };
    this.#known.delete(environmentId);
    this.#known.set(environmentId, known);
    return known;
  }

  /** Forgets the environments that have learned nothing for longest. Each costs a statement when it comes again. */
  #forgetSome(except: number): void {
    let remembered = 0;
    for (const known of this.#known.values()) remembered += sizeOf(known);
    for (const [environmentId, known] of this.#known) {
      if (remembered <= this.#maxRemembered) return;
      if (environmentId === except) continue;
      this.#known.delete(environmentId);
      remembered -= sizeOf(known);
    }
  }
}

function sizeOf(known: Known): number {
  return Object.values(known).reduce((size, names) => size + names.size, 0);
}

/** A hint of the names that PostgreSQL holds of one kind; it may hold more, and wider types. */
class KnownNames {
  readonly #types = new Map<string, DataType>();
  isFull = false;

  get size(): number {
    return this.#types.size;
  }

  /** Returns true if nothing need be written for a value of this type; null if there is none to go by. */
  covers(name: string, type: DataType | null): boolean {
    const known = this.#types.get(name);
    if (known === undefined) return this.isFull;
    return known === type || known === 'string' || type === null;
  }

  remember({ name, type }: TypedName): void {
    this.#types.set(name, type);
  }
}
