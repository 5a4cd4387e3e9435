import type { Logger } from 'pino';
import type { DataType } from '../domain/data-type.ts';
import type { Entity } from '../domain/entity.ts';
import { Fault } from '../domain/errors.ts';
import { MAX_CATALOGUED_NAMES, MAX_REMEMBERED_NAMES } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { eventNames } from './event-names-table.ts';
import { KnownNames } from './known-names.ts';
import type { NameTable, WantedName } from './name-table.ts';
import { propertiesOf } from './properties-table.ts';

type Kind = Entity | 'events';

const tables: Readonly<Record<Kind, NameTable>> = {
  users: propertiesOf('users'),
  companies: propertiesOf('companies'),
  events: eventNames,
};

/**
 * Keeps the lists of property and event names up, for all that brings data in. It remembers what Postgres holds, so that
 * names that are known cost a look into a Map and no statement.
 *
 * Note names before the data that bears them is committed: a name without data does no harm, data without a name would
 * not be found. And note them outside of its transaction: what is remembered must be committed, and nobody should wait
 * for a row of the catalogue until a chunk is through.
 */
export class Catalogue {
  readonly #log: Logger;
  readonly #maxRemembered: number;
  /** By environment, the one that learned last at the end. */
  readonly #known = new Map<number, Readonly<Record<Kind, KnownNames>>>();
  readonly #reported = new Set<number>();

  constructor(log: Logger, maxRemembered = MAX_REMEMBERED_NAMES) {
    this.#log = log;
    this.#maxRemembered = maxRemembered;
  }

  /** Whether noting a property that has a value of this type would do nothing. */
  knowsProperty(environmentId: number, entity: Entity, key: string, type: DataType): boolean {
    return this.#covers(environmentId, entity, key, type);
  }

  /** Whether noting an event of this name would do nothing. */
  knowsEventName(environmentId: number, name: string): boolean {
    return this.#covers(environmentId, 'events', name, null);
  }

  /**
   * Returns when the catalogue lists the properties (as far as it has room), each with a type that covers the given one.
   * A type of null is for a property whose values nobody looked at: if it is new, it becomes `string`.
   */
  async noteProperties(
    db: Database,
    environmentId: number,
    entity: Entity,
    types: ReadonlyMap<string, DataType | null>,
  ): Promise<void> {
    const names: WantedName[] = [];
    for (const [name, type] of types) {
      if (!this.#covers(environmentId, entity, name, type)) names.push({ name, type });
    }
    if (names.length > 0) await this.#learn(db, environmentId, entity, names);
  }

  /** Returns when the catalogue lists these names of events, as far as it has room. */
  async noteEventNames(db: Database, environmentId: number, names: Iterable<string>): Promise<void> {
    const unknown = new Set<string>();
    for (const name of names) if (!this.knowsEventName(environmentId, name)) unknown.add(name);
    const wanted = Array.from(unknown, (name) => ({ name, type: null }));
    if (wanted.length > 0) await this.#learn(db, environmentId, 'events', wanted);
  }

  #covers(environmentId: number, kind: Kind, name: string, type: DataType | null): boolean {
    return this.#known.get(environmentId)?.[kind].covers(name, type) ?? false;
  }

  /** Writes what is new and remembers what is there then: nothing if a statement fails. */
  async #learn(db: Database, environmentId: number, kind: Kind, names: readonly WantedName[]): Promise<void> {
    if (db.isTransaction)
      throw new Fault('names are noted outside of the transaction that writes their data');
    // One statement, but for a chunk that brings more names than the catalogue takes.
    for (let from = 0; from < names.length; from += MAX_CATALOGUED_NAMES) {
      const batch = names
        .slice(from, from + MAX_CATALOGUED_NAMES)
        .filter(({ name, type }) => !this.#covers(environmentId, kind, name, type));
      if (batch.length === 0) continue;
      const held = await tables[kind].write(db, environmentId, batch);
      const known = this.#remembering(environmentId);
      for (const name of held) known[kind].remember(name);
      if (held.length < batch.length) await this.#lookWhetherFull(db, environmentId, kind, known[kind]);
    }
    this.#forgetSome(environmentId);
  }

  /** Of a full catalogue all is remembered: what is unknown then is to be ignored, without asking again. */
  async #lookWhetherFull(db: Database, environmentId: number, kind: Kind, known: KnownNames): Promise<void> {
    const held = await tables[kind].readAll(db, environmentId);
    for (const name of held) known.remember(name);
    if (held.length < MAX_CATALOGUED_NAMES) return;
    known.isFull = true;
    if (this.#reported.has(environmentId)) return;
    this.#reported.add(environmentId);
    this.#log.warn(
      { environment_id: environmentId, names_of: kind, limit: MAX_CATALOGUED_NAMES },
      'the catalogue is full: further names are stored with their data, but not listed',
    );
  }

  /** What is known of an environment, which thereby is the last to be forgotten. */
  #remembering(environmentId: number): Readonly<Record<Kind, KnownNames>> {
    const known = this.#known.get(environmentId) ?? {
      users: new KnownNames(),
      companies: new KnownNames(),
      events: new KnownNames(),
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

function sizeOf({ users, companies, events }: Readonly<Record<Kind, KnownNames>>): number {
  return users.size + companies.size + events.size;
}
