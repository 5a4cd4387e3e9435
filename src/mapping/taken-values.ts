import { isDeepStrictEqual } from 'node:util';
import { type Entity, entities } from '../domain/entity.ts';
import { Fault } from '../domain/errors.ts';
import type { TakenValue, UniqueProperty } from '../domain/rules.ts';
import type { ProfileRow } from './row-buffer.ts';

interface Rows {
  profiles(entity: Entity): Iterable<ProfileRow>;
}

/**
 * The records of a chunk whose values other profiles have. They are known when the chunk was merged; it is then rolled back, and read again
 * without them.
 */
export class TakenValues {
  readonly #records = {
    users: new Map<number, UniqueProperty[]>(),
    companies: new Map<number, UniqueProperty[]>(),
  };

  /** So often values turned out to be taken. */
  rounds = 0;

  /** Returns the properties of the record whose values are taken. */
  of(entity: Entity, record: number): readonly UniqueProperty[] {
    return this.#records[entity].get(record) ?? [];
  }

  /** Finds the records that bring the values, in the rows that were merged. */
  add(rows: Rows, values: readonly TakenValue[]): void {
    const left = new Set(values);
    for (const entity of entities) {
      const byId = new Map<string, TakenValue[]>();
      for (const value of values)
        if (value.entity === entity)
          for (const id of value.ids) byId.set(id, [...(byId.get(id) ?? []), value]);
      if (byId.size === 0) continue;
      for (const { record, key, properties } of rows.profiles(entity)) {
        for (const value of byId.get(key) ?? []) {
          if (!hasValue(properties, value)) continue;
          this.#records[entity].set(record, [...this.of(entity, record), value]);
          left.delete(value);
        }
      }
    }
    if (left.size > 0) throw new Fault(`no record of the chunk brings ${left.size} values that are taken`);
  }
}

/** Tells whether properties in JSON have the value, as PostgreSQL compares them: there is no -0. */
export function hasValue(json: string, { property, value }: TakenValue): boolean {
  const [properties, taken] = [json, value].map((text) =>
    JSON.parse(text, (_name, each) => (each === 0 ? 0 : each)),
  );
  return Object.hasOwn(properties, property) && isDeepStrictEqual(properties[property], taken);
}

/** Lists what rows say of profiles that may have the properties. */
export function* profilesIn(rows: Rows, unique: readonly UniqueProperty[]) {
  for (const entity of entities) {
    if (!unique.some((each) => each.entity === entity)) continue;
    for (const { key, properties } of rows.profiles(entity)) yield { entity, key, properties };
  }
}
