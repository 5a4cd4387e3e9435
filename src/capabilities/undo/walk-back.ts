/*
 * Decides what an undo does to a profile by one rule: each value is the last one set by an author
 * that still counts after the undo. Before all logged changes it is the value of that time.
 * Existence is one more value, which every change sets. A removal sets all values. Only what the
 * undone loads changed is put back.
 */
import type { Entity } from '../../domain/entity.ts';

/** Number of a load. `null`: a single record, a deletion or an operator. */
type Author = number | null;

interface State {
  /** Text of a jsonb object. Values are texts with every digit. */
  readonly properties: string;
  readonly company: string | null;
  /** The load that last wrote it, and its transaction. */
  readonly made: Author;
  readonly position: number;
}

/** A change, and the state before it. `properties` is `null` if that was erased. */
export interface LoggedChange extends Omit<State, 'properties'> {
  readonly properties: State['properties'] | null;
  readonly by: Author;
  readonly removed: boolean;
  readonly firstSeen: string | null;
}

/** The current profile, after its changes. `others`: untouched users belong to the company. */
export interface LoggedEnd {
  readonly entity: Entity;
  readonly id: string;
  readonly now: State | null;
  readonly others: boolean;
}

export interface Reversal {
  readonly does: 'nothing' | 'restore' | 'remove' | 'bring back';
  readonly properties: ReadonlyMap<string, string>;
  readonly company: string | null;
  readonly firstSeen: string | null;
  /** Properties changed since by somebody else. `company_id` for the company. */
  readonly kept: readonly string[];
}

interface Value {
  now: string | null;
  wanted: string | null;
  /** A load of the undo has changed it. */
  isUndone: boolean;
  /** Somebody else who counts has changed it since. */
  isKept: boolean;
}

const unset = (): Value => ({ now: null, wanted: null, isUndone: false, isKept: false });

/** PostgreSQL's JSON cannot contain this character, so no property has the name. */
const company = '\0company';

const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},]/g;

/** Returns the values of an object as texts, as PostgreSQL writes it. */
function memberTexts(json: string): Map<string, string> {
  const texts = new Map<string, string>();
  let depth = 0;
  let name: string | null = null;
  let from = 0;
  for (const found of json.matchAll(token)) {
    const [text] = found;
    const isEnd = text === ']' || text === '}';
    if (text === '[' || text === '{') depth += 1;
    else if (isEnd && depth > 1) depth -= 1;
    else if (depth === 1 && name === null && !isEnd) {
      name = JSON.parse(text) as string;
      from = found.index + text.length + ': '.length;
    } else if (depth === 1 && name !== null && (isEnd || text === ',')) {
      texts.set(name, json.slice(from, found.index));
      name = null;
    }
  }
  return texts;
}

const resultOf = ({ isUndone, wanted, now }: Value): string | null => (isUndone ? wanted : now);

export interface UndoneLoads {
  /** Loads that cease to count. */
  readonly loads: ReadonlySet<number>;
  /** Loads ever undone. The log has all that they wrote. */
  readonly known: ReadonlySet<number>;
  /** These loads and their undos. Their changes do not count. */
  readonly out: ReadonlySet<number>;
  /** Known loads by the transactions of their chunks. */
  readonly madeAt: ReadonlyMap<string, number>;
}

/** Takes the changes of a profile in order, then its current state. */
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

  end({ now, others }: Pick<LoggedEnd, 'now' | 'others'>): Reversal {
    if (now !== null) this.#arrive(now);
    else if (this.#existence.now !== null) this.#leave(null);
    const isThere = this.#existence.now !== null;
    const exists = resultOf(this.#existence) !== null || (others && isThere);
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

  #arrive({ properties, made, position, ...state }: State): void {
    const { known, madeAt } = this.#undone;
    const maker = made ?? madeAt.get(String(position)) ?? null;
    const values = memberTexts(properties);
    if (state.company !== null) values.set(company, state.company);
    // A known load made what it wrote before the first change.
    const isGiven = !(this.#isBegun || (maker !== null && known.has(maker)));
    this.#isBegun = true;
    if (isGiven) {
      for (const [name, now] of values) this.#values.set(name, { ...unset(), now, wanted: now });
      this.#existence = { ...unset(), now: '', wanted: '' };
      return;
    }
    const by = this.#existence.now === null ? maker : this.#by;
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
    return by === null || !this.#undone.out.has(by);
  }
}
