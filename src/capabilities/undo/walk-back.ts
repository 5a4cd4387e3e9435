/*
 * Decides what an undo does to a profile. A value that the undone loads changed is set to the last
 * value from an author whose changes still count. If there is no such value, it is set to the value
 * before all logged changes. The existence of the profile is also treated as a value. Every change
 * sets this value, and a removal clears all values.
 */
import type { Entity } from '../../domain/entity.ts';

/** Id of a load, or `null` for a single record, a deletion or an operator. */
type Author = number | null;

interface State {
  /** Properties as JSON text, in which numbers keep all their digits. */
  readonly properties: string;
  readonly company: string | null;
  readonly writtenBy: Author;
  /** Transaction of the last write. */
  readonly position: number;
}

/** A change, and the state before the change. `properties` is `null` if that state was erased. */
export interface LoggedChange extends Omit<State, 'properties'> {
  readonly properties: State['properties'] | null;
  readonly by: Author;
  readonly removed: boolean;
  readonly firstSeen: string | null;
}

/**
 * State after all changes. `hasOtherUsers` is true if the company has users that the undo does not
 * change.
 */
export interface LoggedEnd {
  readonly entity: Entity;
  readonly id: string;
  readonly now: State | null;
  readonly hasOtherUsers: boolean;
}

export interface Reversal {
  readonly does: 'nothing' | 'restore' | 'remove' | 'bring back';
  readonly properties: ReadonlyMap<string, string>;
  readonly company: string | null;
  readonly firstSeen: string | null;
  /**
   * Properties that are not restored, because somebody else has changed them. `company_id` means
   * the user's company.
   */
  readonly kept: readonly string[];
}

interface Value {
  now: string | null;
  wanted: string | null;
  /** True if an undone load has changed the value. */
  isUndone: boolean;
  /** True if an author whose changes still count has changed the value since then. */
  isKept: boolean;
}

const unset = (): Value => ({ now: null, wanted: null, isUndone: false, isKept: false });

/** No property can have this name, because PostgreSQL's JSON cannot contain NUL. */
const company = '\0company';

const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},]/g;

/** Members as JSON texts. The object must be in PostgreSQL's format. */
function memberTexts(json: string): Map<string, string> {
  const texts = new Map<string, string>();
  let depth = 0;
  let name: string | null = null;
  let from = 0;
  for (const match of json.matchAll(token)) {
    const [text] = match;
    const isEnd = text === ']' || text === '}';
    if (text === '[' || text === '{') depth += 1;
    else if (isEnd && depth > 1) depth -= 1;
    else if (depth === 1 && name === null && !isEnd) {
      name = JSON.parse(text) as string;
      from = match.index + text.length + ': '.length;
    } else if (depth === 1 && name !== null && (isEnd || text === ',')) {
      texts.set(name, json.slice(from, match.index));
      name = null;
    }
  }
  return texts;
}

const resultOf = ({ isUndone, wanted, now }: Value): string | null => (isUndone ? wanted : now);

export interface UndoneLoads {
  readonly loads: ReadonlySet<number>;
  /** Loads that this undo or an earlier one undoes. The log contains all writes of these loads. */
  readonly allUndone: ReadonlySet<number>;
  /**
   * The loads in `allUndone`, and also the earlier undos. Changes made by these loads and undos are
   * ignored.
   */
  readonly ignoredAuthors: ReadonlySet<number>;
  readonly loadOfPosition: ReadonlyMap<string, number>;
}

/** Takes a profile's changes in order, then its current state. */
export class ProfileWalk {
  readonly #undone: UndoneLoads;
  #values = new Map<string, Value>();
  #existence = unset();
  #isBegun = false;
  #by: Author = null;
  #firstSeen: string | null = null;

  constructor(undone: UndoneLoads) {
    this.#undone = undone;
  }

  take({ by, removed, properties, firstSeen, ...state }: LoggedChange): void {
    if (properties === null) this.#forget();
    else {
      this.#arrive({ ...state, properties });
      if (removed) this.#leave(by);
    }
    this.#by = by;
    this.#firstSeen = firstSeen;
  }

  end({ now, hasOtherUsers }: Pick<LoggedEnd, 'now' | 'hasOtherUsers'>): Reversal {
    if (now !== null) this.#arrive(now);
    else if (this.#existence.now !== null) this.#leave(null);
    const isThere = this.#existence.now !== null;
    const exists = resultOf(this.#existence) !== null || (hasOtherUsers && isThere);
    const properties = new Map<string, string>();
    const kept: string[] = [];
    let isSame = true;
    for (const [name, value] of this.#values) {
      const result = isThere ? resultOf(value) : value.wanted;
      if (result !== null) properties.set(name, result);
      if (result !== value.now) isSame = false;
      else if (value.isKept) kept.push(name === company ? 'company_id' : name);
    }
    const changes = isSame ? 'nothing' : 'restore';
    const lives = isThere ? changes : 'bring back';
    const dies = isThere ? 'remove' : 'nothing';
    const companyId = properties.get(company) ?? null;
    properties.delete(company);
    return {
      does: exists ? lives : dies,
      properties,
      company: companyId,
      firstSeen: this.#firstSeen,
      kept: exists && isThere ? kept.sort() : [],
    };
  }

  #forget(): void {
    this.#values.clear();
    this.#existence = unset();
    this.#isBegun = true;
  }

  #arrive({ properties, writtenBy, position, ...state }: State): void {
    const { allUndone, loadOfPosition } = this.#undone;
    const writer = writtenBy ?? loadOfPosition.get(String(position)) ?? null;
    const values = memberTexts(properties);
    if (state.company !== null) values.set(company, state.company);
    // If no logged load created the profile, its first state is older than the log.
    const isOlder = !(this.#isBegun || (writer !== null && allUndone.has(writer)));
    this.#isBegun = true;
    if (isOlder) {
      for (const [name, now] of values) this.#values.set(name, { ...unset(), now, wanted: now });
      this.#existence = { ...unset(), now: '', wanted: '' };
      return;
    }
    const by = this.#existence.now === null ? writer : this.#by;
    this.#set(this.#existence, '', by);
    for (const name of values.keys()) {
      if (!this.#values.has(name)) this.#values.set(name, unset());
    }
    for (const [name, value] of this.#values) {
      const to = values.get(name) ?? null;
      if (value.now !== to) this.#set(value, to, by);
    }
  }

  #leave(by: Author): void {
    this.#isBegun = true;
    for (const value of [this.#existence, ...this.#values.values()]) {
      this.#set(value, null, by);
      value.isKept = false;
      if (this.#counts(by)) value.isUndone = false;
    }
  }

  #set(value: Value, to: string | null, by: Author): void {
    const counts = this.#counts(by);
    value.now = to;
    if (counts) {
      value.wanted = to;
      value.isKept = value.isUndone;
    } else if (by !== null && this.#undone.loads.has(by))
      Object.assign(value, { isUndone: true, isKept: false });
  }

  #counts(by: Author): boolean {
    return by === null || !this.#undone.ignoredAuthors.has(by);
  }
}
