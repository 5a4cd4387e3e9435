/*
 * Learns names of properties and events from records, up to a maximum, for the lookups.
 */
import type { Logger } from 'pino';
import { Fault } from '../base/errors.ts';
import { MAX_LISTED_NAMES } from '../base/limits.ts';
import type { DataType } from '../domain/data-type.ts';
import type { NameKind } from '../domain/entity.ts';
import type { Database } from '../postgres/database.ts';
import { readNames, type TypedName, writeNames } from './property-store.ts';

/** Maximum number of names in memory. Each name takes about 100 bytes. */
const maxRememberedNames = 200_000;

type Names = Readonly<Record<NameKind, KnownNames>>;

/**
 * Stores and remembers names and types, so that a known name needs no statement. Names are
 * committed before their records. Otherwise, a chunk would wait for another chunk that adds the
 * same name. A name without records is harmless.
 */
export class KnownProperties {
  readonly #log: Logger;
  readonly #maxRemembered: number;
  readonly #environments = new Map<number, Names>();
  readonly #reported = new Set<number>();

  constructor(log: Logger, maxRemembered = maxRememberedNames) {
    this.#log = log;
    this.#maxRemembered = maxRemembered;
  }

  /** True if `learn` would write nothing. */
  knows(environmentId: number, kind: NameKind, name: string, type: DataType | null): boolean {
    return this.#environments.get(environmentId)?.[kind].covers(name, type) ?? false;
  }

  /**
   * Stores new names until the list is full, and widens stored types. A new name of type `null` is
   * a `string`.
   */
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

  /** Remembers nothing from a statement that fails. */
  async #learn(
    db: Database,
    environmentId: number,
    kind: NameKind,
    names: readonly TypedName<DataType | null>[],
  ): Promise<void> {
    if (db.isTransaction)
      throw new Fault('names are learned outside of the transaction that writes their data');
    // The loop repeats only for a chunk with more names than the list can contain.
    for (let from = 0; from < names.length; from += MAX_LISTED_NAMES) {
      const batch = names
        .slice(from, from + MAX_LISTED_NAMES)
        .filter(({ name, type }) => !this.knows(environmentId, kind, name, type));
      if (batch.length === 0) continue;
      const stored = await writeNames(db, environmentId, kind, batch);
      const environment = this.#remembering(environmentId);
      for (const name of stored) environment[kind].remember(name);
      if (stored.length < batch.length)
        await this.#lookWhetherFull(db, environmentId, kind, environment[kind]);
    }
    this.#forgetSome(environmentId);
  }

  async #lookWhetherFull(
    db: Database,
    environmentId: number,
    kind: NameKind,
    names: KnownNames,
  ): Promise<void> {
    const stored = await readNames(db, environmentId, kind);
    for (const name of stored) names.remember(name);
    if (stored.length < MAX_LISTED_NAMES) return;
    names.isFull = true;
    if (this.#reported.has(environmentId)) return;
    this.#reported.add(environmentId);
    this.#log.warn(
      { environment_id: environmentId, names_of: kind, limit: MAX_LISTED_NAMES },
      'the list of names is full: further names are stored with their data, but not listed',
    );
  }

  #remembering(environmentId: number): Names {
    const names = this.#environments.get(environmentId) ?? {
      users: new KnownNames(),
      companies: new KnownNames(),
      events: new KnownNames(),
      event_names: new KnownNames(),
    };
    this.#environments.delete(environmentId);
    this.#environments.set(environmentId, names);
    return names;
  }

  /**
   * Forgets whole environments until few enough names remain. Begins with the environment that has
   * had no new name for the longest time.
   */
  #forgetSome(except: number): void {
    let remembered = 0;
    for (const names of this.#environments.values()) remembered += sizeOf(names);
    for (const [environmentId, names] of this.#environments) {
      if (remembered <= this.#maxRemembered) return;
      if (environmentId === except) continue;
      this.#environments.delete(environmentId);
      remembered -= sizeOf(names);
    }
  }
}

function sizeOf(names: Names): number {
  return Object.values(names).reduce((size, each) => size + each.size, 0);
}

/** Remembered names of one kind. The database may have more names, and wider types. */
class KnownNames {
  readonly #types = new Map<string, DataType>();
  isFull = false;

  get size(): number {
    return this.#types.size;
  }

  /** True if nothing has to be written. `type` is `null` if the records have no value. */
  covers(name: string, type: DataType | null): boolean {
    const stored = this.#types.get(name);
    if (stored === undefined) return this.isFull;
    return stored === type || stored === 'string' || type === null;
  }

  remember({ name, type }: TypedName): void {
    this.#types.set(name, type);
  }
}
