import type { Catalogue } from '../catalogue/catalogue.ts';
import { type DataType, dataTypeOf, widen } from '../domain/data-type.ts';
import type { Entity } from '../domain/entity.ts';
import { markedNumber } from '../mapping/json-text.ts';
import type { Database } from '../postgres/database.ts';
import type { Properties } from './records.ts';

/** Collects the properties of a window that the catalogue does not know; nearly always none. */
export class NewProperties {
  readonly #catalogue: Catalogue;
  readonly #found = new Map<string, Found>();

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  /** Looks at the properties of one record; returns whether one of them is null. */
  look(environmentId: number, entity: Entity, properties: Properties): boolean {
    let removes = false;
    for (const name in properties) {
      const value = properties[name];
      if (value === null) {
        removes = true;
        continue;
      }
      const type = markedNumber(value) === null ? dataTypeOf(value) : 'numeric';
      if (type === null || this.#catalogue.knowsProperty(environmentId, entity, name, type)) continue;
      this.#add(environmentId, entity, name, type);
    }
    return removes;
  }

  /** Tells the catalogue. Before the records are committed, so that none is ever there without its properties. */
  async note(db: Database): Promise<void> {
    for (const { environmentId, entity, types } of this.#found.values()) {
      await this.#catalogue.noteProperties(db, environmentId, entity, types);
    }
  }

  #add(environmentId: number, entity: Entity, name: string, type: DataType): void {
    const key = `${environmentId} ${entity}`;
    const found = this.#found.get(key) ?? { environmentId, entity, types: new Map() };
    this.#found.set(key, found);
    const known = found.types.get(name);
    found.types.set(name, known === undefined ? type : widen(known, type));
  }
}

interface Found {
  readonly environmentId: number;
  readonly entity: Entity;
  readonly types: Map<string, DataType>;
}
