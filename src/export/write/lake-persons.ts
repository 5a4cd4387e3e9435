import { sql } from 'kysely';
import { ARCHIVE_SEGMENT_BATCH_GROUPS, MAX_KNOWN_PERSONS } from '../../domain/limits.ts';
import { columnOf, type Database } from '../../postgres/database.ts';
import { findPersons, hasAliases } from '../../postgres/stores/aliases.ts';
import { type Filter, inSegments, leftOut, nameTest } from '../filter.ts';
import { type Hits, inOrder, mapTexts, textsOf } from './lake-hits.ts';

/** Returns `null` if the export wants everybody, by the ids that the lake has. */
export async function openPersons(db: Database, filter: Filter): Promise<Persons | null> {
  const aliased = await hasAliases(db, filter.environmentId);
  const asks =
    filter.segment !== null ||
    filter.excludedSegments.length > 0 ||
    filter.request.exclusions.some(({ kind }) => kind === 'user');
  return aliased || asks ? new Persons(db, filter, aliased) : null;
}

/** The users of the lake's events, which keep the ids that they had, and which of them an export wants. */
export class Persons {
  /** Groups for which persons are looked up together. */
  readonly ahead: number;
  readonly #db: Database;
  readonly #filter: Filter;
  readonly #aliased: boolean;
  readonly #isWanted: (person: string) => boolean;
  /** By the id of the lake; null: the export leaves the person out. */
  readonly #known = new Map<string, string | null>();

  constructor(db: Database, filter: Filter, aliased: boolean) {
    this.#db = db;
    this.#filter = filter;
    this.#aliased = aliased;
    const { userIds, exclusions } = filter.request;
    const chosen = new Set(userIds);
    const isLeftOut = nameTest(leftOut(exclusions, 'user'));
    this.#isWanted = (person) => (chosen.size === 0 || chosen.has(person)) && !isLeftOut(person);
    this.ahead = this.#asksSegments ? ARCHIVE_SEGMENT_BATCH_GROUPS : 1;
  }

  get #asksSegments(): boolean {
    return this.#filter.segment !== null || this.#filter.excludedSegments.length > 0;
  }

  /** Returns the hits that are left, by the users whom they belong to. */
  async of(all: readonly Hits[]): Promise<Hits[]> {
    const ids = new Set<string>();
    for (const hits of all) {
      const { rows } = hits;
      const users = textsOf(hits, 'user_id');
      const seen = new Uint8Array(users.starts.length);
      for (const row of rows) {
        const place = users.places[row] as number;
        if (seen[place] === 0) ids.add(users.memory.toString('utf8', users.starts[place], users.ends[place]));
        seen[place] = 1;
      }
    }
    await this.#lookUp([...ids]);
    return all.map((hits) => this.#apply(hits)).filter(({ rows }) => rows.length > 0);
  }

  async #lookUp(ids: readonly string[]): Promise<void> {
    if (this.#known.size > MAX_KNOWN_PERSONS) this.#known.clear();
    const unknown = ids.filter((id) => !this.#known.has(id));
    if (unknown.length === 0) return;
    const { environmentId } = this.#filter;
    const aliases = this.#aliased ? await findPersons(this.#db, environmentId, unknown) : new Map();
    const personOf = (id: string): string => aliases.get(id) ?? id;
    const wanted = [...new Set(unknown.map(personOf).filter(this.#isWanted))];
    const kept = new Set(this.#asksSegments ? await this.#findMembers(wanted) : wanted);
    for (const id of unknown) this.#known.set(id, kept.has(personOf(id)) ? personOf(id) : null);
  }

  #findMembers(persons: readonly string[]): Promise<string[]> {
    return columnOf<string>(this.#db)`
      select given.id
      from unnest(${[...persons]}::text[]) as given (id)
      where ${sql.join(inSegments(this.#filter, 'given.id'), sql` and `)}`;
  }

  #apply(hits: Hits): Hits {
    const users = textsOf(hits, 'user_id');
    const { memory, starts, ends, places } = users;
    const persons = new Map<number, string | null>();
    let isSame = true;
    const rows = hits.rows.filter((row) => {
      const place = places[row] as number;
      let person = persons.get(place);
      if (person === undefined) {
        const id = memory.toString('utf8', starts[place], ends[place]);
        person = this.#known.get(id) ?? null;
        persons.set(place, person);
        if (person !== null && person !== id) isSame = false;
      }
      return person !== null;
    });
    if (isSame) return { ...hits, rows };
    const named = mapTexts(users, (id, place) => persons.get(place) ?? id);
    return inOrder({ ...hits, rows, changed: new Map([...hits.changed, ['user_id', named]]) });
  }
}
