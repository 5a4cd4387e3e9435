import type { Entity } from '../domain/entity.ts';
import type { Yield, Yields } from '../domain/load.ts';
import type { DatedBuffer } from './dated-buffer.ts';
import type { RowBuffer } from './row-buffer.ts';

/** The rows of a chunk, of which this reads the profiles. */
interface Rows extends Readonly<Record<Entity, RowBuffer>> {
  readonly dated: DatedBuffer;
}

/** Stands for the company of a user among the names of its properties, none of which may be so. */
const companyName = '\0company';

/** Names that records set or remove, each with the place of the last record that does. */
type Places = Map<string, number>;

/**
 * What records of files say of the keys of an amendment's rows, each with its place: the number of its row in the file of the parent, or
 * Infinity for all that was loaded after that. Keys are as COPY text has them.
 */
export class LaterHistory {
  readonly #places: Readonly<Record<Entity, ReadonlyMap<string, Places>>>;
  readonly #placeOf: (record: number) => number;
  readonly #since: string;

  /**
   * `keys`: of profiles that are stored. `placeOf`: the row of the parent that a record of the amendment mends. `since`: see `Yields`.
   */
  constructor(
    keys: Readonly<Record<Entity, Iterable<string>>>,
    placeOf: (record: number) => number,
    since: string,
  ) {
    const empty = (of: Iterable<string>) => new Map([...of].map((key): [string, Places] => [key, new Map()]));
    this.#places = { users: empty(keys.users), companies: empty(keys.companies) };
    this.#placeOf = placeOf;
    this.#since = since;
  }

  get isEmpty(): boolean {
    return this.#places.users.size + this.#places.companies.size === 0;
  }

  /** Adds records of a file, in any order; `placeOf` gives null for one that counts for nothing. */
  add(rows: Rows, placeOf: (record: number) => number | null): void {
    for (const entity of ['users', 'companies'] as const) {
      const known = this.#places[entity];
      if (known.size === 0) continue;
      forEachUndated(rows, entity, ({ key, record, properties, company }) => {
        const places = known.get(key);
        const place = places === undefined ? null : placeOf(record);
        if (places !== undefined && place !== null) enter(places, properties, company, place);
      });
    }
  }

  /** Removes from the amendment's rows whatever later ones decide. `includes` tells the records that count. */
  yields(rows: Rows, entity: Entity, includes: ((record: number) => boolean) | null): Yields {
    return { since: this.#since, later: this.#later(rows, entity, includes) };
  }

  #later(rows: Rows, entity: Entity, includes: ((record: number) => boolean) | null): readonly Yield[] {
    const known = this.#places[entity];
    const own = new Map<string, Places>();
    if (known.size === 0) return [];
    forEachUndated(rows, entity, ({ key, record, properties, company }) => {
      if (!known.has(key) || includes?.(record) === false) return;
      const places = own.get(key) ?? new Map<string, number>();
      own.set(key, places);
      enter(places, properties, company, this.#placeOf(record));
    });
    return [...own].flatMap(([key, places]) => {
      const later = [...places].flatMap(([name, place]) =>
        (known.get(key)?.get(name) ?? 0) > place ? [name] : [],
      );
      if (later.length === 0) return [];
      const names = later.filter((name) => name !== companyName);
      return [{ key: plainText(key), names, company: names.length < later.length }];
    });
  }
}

function enter(places: Places, properties: string, company: string, place: number): void {
  const names = properties === '{}' ? [] : Object.keys(JSON.parse(plainText(properties)) as object);
  if (company !== '\\N') names.push(companyName);
  for (const name of names) places.set(name, Math.max(places.get(name) ?? 0, place));
}

/** A row of a profile, in COPY text. */
interface ProfileRow {
  readonly key: string;
  readonly record: number;
  readonly properties: string;
  readonly company: string;
}

/** All rows that do not say since when they hold. */
export function forEachUndated(rows: Rows, entity: Entity, visit: (row: ProfileRow) => void): void {
  const { dated } = rows;
  for (let row = 0; row < dated[entity].rows; row++) {
    const line = dated[entity].line(row).toString('latin1');
    const [key = '', record, at, properties = '{}', company = '\\N'] = line.split('\t');
    if (at === '\\N') visit({ key, record: Number(record), properties, company });
  }
  if (dated.rows > 0) return;
  const buffer = rows[entity];
  for (let row = 0; row < buffer.rows; row++) {
    const [key = '', properties = '{}', company = '\\N'] = buffer.content(row).toString('latin1').split('\t');
    visit({ key, record: buffer.recordOf(row), properties, company });
  }
}

const meant: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v' };

/** Decodes COPY text given as a byte string. */
export function plainText(text: string): string {
  const bytes = text.includes('\\')
    ? text.replace(/\\(.)/gs, (_, letter: string) => meant[letter] ?? letter)
    : text;
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
