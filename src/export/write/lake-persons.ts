import { sql } from 'kysely';
import { ARCHIVE_SEGMENT_BATCH_GROUPS, MAX_KNOWN_PERSONS } from '../../domain/limits.ts';
import { columnOf, type Database } from '../../postgres/database.ts';
import { type Filter, inSegments, leftOut, nameTest } from '../filter.ts';
import { type Hits, textsOf } from './lake-hits.ts';

/** Returns `null` if the export wants everybody. */
export function openPersons(db: Database, filter: Filter): Persons | null {
  const asks =
    filter.segment !== null ||
    filter.excludedSegments.length > 0 ||
    filter.request.exclusions.some(({ kind }) => kind === 'user');
  return asks ? new Persons(db, filter) : null;
}

/** The users of the lake's events that an export wants. */
export class Persons {
  /** Groups for which persons are looked up together. */
  readonly ahead: number;
  readonly #db: Database;
  readonly #filter: Filter;
  readonly #isWanted: (person: string) => boolean;
  /** Whether the export wants the user. */
  readonly #known = new Map<string, boolean>();

  constructor(db: Database, filter: Filter) {
    this.#db = db;
    this.#filter = filter;
    const { userIds, exclusions } = filter.request;
    const chosen = new Set(userIds);
    const isLeftOut = nameTest(leftOut(exclusions, 'user'));
    this.#isWanted = (person) => (chosen.size === 0 || chosen.has(person)) && !isLeftOut(person);
    this.ahead = this.#asksSegments ? ARCHIVE_SEGMENT_BATCH_GROUPS : 1;
  }

  get #asksSegments(): boolean {
    return this.#filter.segment !== null || this.#filter.excludedSegments.length > 0;
  }

  /** Returns the hits that are left. */
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
    const wanted = unknown.filter(this.#isWanted);
    const kept = new Set(this.#asksSegments ? await this.#findMembers(wanted) : wanted);
    for (const id of unknown) this.#known.set(id, kept.has(id));
  }

  #findMembers(persons: readonly string[]): Promise<string[]> {
    return columnOf<string>(this.#db)`
      select given.id
      from unnest(${[...persons]}::text[]) as given (id)
      where ${sql.join(inSegments(this.#filter, 'given.id'), sql` and `)}`;
  }

  #apply(hits: Hits): Hits {
    const { memory, starts, ends, places } = textsOf(hits, 'user_id');
    const wanted = new Map<number, boolean>();
    const rows = hits.rows.filter((row) => {
      const place = places[row] as number;
      const isWanted =
        wanted.get(place) ?? this.#known.get(memory.toString('utf8', starts[place], ends[place])) === true;
      wanted.set(place, isWanted);
      return isWanted;
    });
    return { ...hits, rows };
  }
}
