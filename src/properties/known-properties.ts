/*
 * Properties: what the data has shown, as against what an operator defines. Names and types of properties
 * and names of events are learned as records arrive, up to a bound for each environment, and listed by the
 * look-ups of the API.
 */
import type { Logger } from 'pino';
import type { DataType } from '../domain/data-type.ts';
import type { PropertyEntity } from '../domain/entity.ts';
import { Fault } from '../domain/errors.ts';
import { MAX_LISTED_NAMES } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import {
  eventNames,
  type HeldName,
  type NamesOf,
  propertiesOf,
  type WantedName,
} from '../postgres/stores/properties.ts';

/** Names, of whatever environment, that one process remembers: some 100 bytes each. */
const maxRememberedNames = 200_000;

type Kind = PropertyEntity | 'event_names';

const tables: Readonly<Record<Kind, NamesOf>> = {
  users: propertiesOf('users'),
  companies: propertiesOf('companies'),
  events: propertiesOf('events'),
  event_names: eventNames,
};

/**
 * What the data has shown: the names and types of properties, and the names of events, for all that brings data in. It
 * remembers what Postgres holds, so that names that are known cost a look into a Map and no statement.
 *
 * Names are learned before the data that bears them is committed: a name without data does no harm, data without a name
 * would not be found. And outside of its transaction: what is remembered must be committed, and nobody should wait for
 * the row of a name until a chunk is through.
 */
export class KnownProperties {
  readonly #log: Logger;
  readonly #maxRemembered: number;
  readonly #known = new Map<number, Readonly<Record<Kind, KnownNames>>>();
  readonly #reported = new Set<number>();

  constructor(log: Logger, maxRemembered = maxRememberedNames) {
    this.#log = log;
    this.#maxRemembered = maxRemembered;
  }

  knowsProperty(environmentId: number, entity: PropertyEntity, key: string, type: DataType): boolean {
    return this.#covers(environmentId, entity, key, type);
  }

  knowsEventName(environmentId: number, name: string): boolean {
    return this.#covers(environmentId, 'event_names', name, null);
  }

  /**
   * Returns when the properties are listed (as far as there is room), each with a type that covers the given one.
   * A type of null is for a property whose values nobody looked at: if it is new, it becomes `string`.
   */
  async learnProperties(
    db: Database,
    environmentId: number,
    entity: PropertyEntity,
    types: ReadonlyMap<string, DataType | null>,
  ): Promise<void> {
    const names: WantedName[] = [];
    for (const [name, type] of types) {
      if (!this.#covers(environmentId, entity, name, type)) names.push({ name, type });
    }
    if (names.length > 0) await this.#learn(db, environmentId, entity, names);
  }

  /** Returns when these names of events are listed, as far as there is room. */
  async learnEventNames(db: Database, environmentId: number, names: Iterable<string>): Promise<void> {
    const unknown = new Set<string>();
    for (const name of names) if (!this.knowsEventName(environmentId, name)) unknown.add(name);
    const wanted = Array.from(unknown, (name) => ({ name, type: null }));
    if (wanted.length > 0) await this.#learn(db, environmentId, 'event_names', wanted);
  }

  #covers(environmentId: number, kind: Kind, name: string, type: DataType | null): boolean {
    return this.#known.get(environmentId)?.[kind].covers(name, type) ?? false;
  }

  /** Writes what is new and remembers what is there then: nothing if a statement fails. */
  async #learn(db: Database, environmentId: number, kind: Kind, names: readonly WantedName[]): Promise<void> {
    if (db.isTransaction)
      throw new Fault('names are learned outside of the transaction that writes their data');
    // A single statement, except for chunks with more names than are listed.
    for (let from = 0; from < names.length; from += MAX_LISTED_NAMES) {
      const batch = names
        .slice(from, from + MAX_LISTED_NAMES)
        .filter(({ name, type }) => !this.#covers(environmentId, kind, name, type));
      if (batch.length === 0) continue;
      const held = await tables[kind].write(db, environmentId, batch);
      const known = this.#remembering(environmentId);
      for (const name of held) known[kind].remember(name);
      if (held.length < batch.length) await this.#lookWhetherFull(db, environmentId, kind, known[kind]);
    }
    this.#forgetSome(environmentId);
  }

  /** Notes that a list is full, so that unknown names are ignored without asking again. */
  async #lookWhetherFull(db: Database, environmentId: number, kind: Kind, known: KnownNames): Promise<void> {
    const held = await tables[kind].readAll(db, environmentId);
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

  #remembering(environmentId: number): Readonly<Record<Kind, KnownNames>> {
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

function sizeOf(known: Readonly<Record<Kind, KnownNames>>): number {
  return Object.values(known).reduce((size, names) => size + names.size, 0);
}

/** A hint of the names that PostgreSQL holds of one kind; it may hold more, and wider types. */
export class KnownNames {
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

  remember({ name, type }: HeldName): void {
    this.#types.set(name, type);
  }
}
