/*
 * Regular expressions of operators, matched in time linear in the text, whatever both are: an automaton that follows all readings at once
 * and remembers the steps that it has taken (Thompson 1968; https://swtch.com/~rsc/regexp/regexp1.html). The engine of JavaScript goes back
 * instead, and a pattern such as `^(a+)+$` keeps it busy for hours. What a single character may be is left to that engine, so that classes and
 * escapes mean what they mean in JSON Schema. What needs going back, look-around and back-references, is refused.
 */
import { KEPT_PATTERNS, MAX_PATTERN_STATES } from '../domain/limits.ts';

type Node =
  | { readonly is: 'character'; readonly matches: (character: string) => boolean }
  | { readonly is: 'start' | 'end' }
  | { readonly is: 'sequence'; readonly of: readonly Node[] }
  | { readonly is: 'choice'; readonly of: readonly Node[] }
  | { readonly is: 'repeat'; readonly of: Node; readonly least: number; readonly most: number };

class Unsupported extends Error {}

/** Returns why a text is no pattern that can be matched, or null. */
export function patternProblem(pattern: string): string | null {
  try {
    new RegExp(pattern, 'u');
  } catch {
    return 'is not a regular expression';
  }
  try {
    new Pattern(pattern);
    return null;
  } catch (error) {
    if (error instanceof Unsupported) return error.message;
    throw error;
  }
}

const groupStart = /\((?:\?:|\?<[^=!>]+>)?/uy;
const lookAround = /\(\?(?:[=!]|<[=!])/uy;
const unsupportedEscape = /\\(?:[bBk]|[1-9])/uy;
const character =
  /\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u\{[^}]*\}|u.{4}|x.{2}|c.|.)|[^()|]/suy;
const quantifier = /([*+?]|\{(\d+)(,(\d*))?\})\??/uy;

/** Reads a pattern that the engine of JavaScript has found to be one. */
class PatternReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  choice(): Node {
    const of = [this.#sequence()];
    while (this.#text[this.#at] === '|') {
      this.#at++;
      of.push(this.#sequence());
    }
    return { is: 'choice', of };
  }

  #sequence(): Node {
    const of: Node[] = [];
    while (this.#at < this.#text.length && !')|'.includes(this.#text[this.#at] ?? ''))
      of.push(this.#repeated(this.#atom()));
    return { is: 'sequence', of };
  }

  #atom(): Node {
    if (this.#take(lookAround))
      throw new Unsupported('uses look-around, which rules do not support; rewrite it without');
    if (this.#take(unsupportedEscape))
      throw new Unsupported('uses \\b or a back-reference, which rules do not support; rewrite it without');
    if (this.#take(groupStart)) {
      const inner = this.choice();
      this.#at++;
      return inner;
    }
    const text = this.#take(character)?.[0] ?? '';
    if (text === '^') return { is: 'start' };
    if (text === '$') return { is: 'end' };
    const only = new RegExp(`^(?:${text})$`, 'u');
    return { is: 'character', matches: (character) => only.test(character) };
  }

  #repeated(of: Node): Node {
    const found = this.#take(quantifier);
    if (found === null) return of;
    const [, sign = '', least, isRange, most] = found;
    if (least === undefined)
      return { is: 'repeat', of, least: sign === '+' ? 1 : 0, most: sign === '?' ? 1 : Infinity };
    const end = isRange === undefined ? Number(least) : most === '' ? Infinity : Number(most);
    return { is: 'repeat', of, least: Number(least), most: end };
  }

  #take(what: RegExp): RegExpExecArray | null {
    what.lastIndex = this.#at;
    const found = what.exec(this.#text);
    if (found !== null) this.#at = what.lastIndex;
    return found;
  }
}

type Step =
  | { readonly is: 'character'; readonly matches: (character: string) => boolean }
  | { readonly is: 'start' | 'end' | 'match' }
  | { readonly is: 'either'; readonly to: number[] };

/** Places in the program that may be reached, and where the next character leads. */
interface State {
  readonly places: readonly number[];
  readonly matches: boolean;
  readonly matchesAtEnd: boolean;
  /** Nothing that follows can match. */
  readonly isDead: boolean;
  readonly next: (State | undefined)[];
}

const maxStates = 1_000;
const ASCII = 128;

const kept = new Map<string, Pattern>();

/** A pattern that is looked for in texts. */
export class Pattern {
  /** Returns the pattern, with the steps that it remembers: each chunk asks for those of its rules. */
  static of(text: string): Pattern {
    let pattern = kept.get(text);
    if (pattern !== undefined) return pattern;
    if (kept.size === KEPT_PATTERNS) kept.clear();
    pattern = new Pattern(text);
    kept.set(text, pattern);
    return pattern;
  }

  readonly #steps: Step[] = [];
  #states = new Map<string, State>();
  #first: State;

  /** @throws Unsupported for what cannot be matched in linear time. */
  constructor(pattern: string) {
    this.#write(new PatternReader(pattern).choice());
    this.#steps.push({ is: 'match' });
    this.#first = this.#stateOf([0], true);
  }

  test(text: string): boolean {
    let state = this.#first;
    for (const character of text) {
      if (state.matches) return true;
      if (state.isDead) return false;
      state = this.#next(state, character);
    }
    return state.matches || (text === '' ? this.#reaches(state.places, true) : state.matchesAtEnd);
  }

  /** Does the same with bytes of UTF-8. */
  testBytes(bytes: Buffer, start: number, end: number): boolean {
    let state = this.#first;
    for (let at = start; at < end; at++) {
      if (state.matches) return true;
      if (state.isDead) return false;
      const byte = bytes[at] as number;
      if (byte >= ASCII) return this.test(bytes.toString('utf8', start, end));
      state = state.next[byte] ?? this.#next(state, String.fromCharCode(byte));
    }
    return start === end ? this.test('') : state.matches || state.matchesAtEnd;
  }

  #next(state: State, character: string): State {
    const code = character.charCodeAt(0);
    const known = code < ASCII ? state.next[code] : undefined;
    if (known !== undefined) return known;
    const places = [0];
    for (const place of state.places) {
      const step = this.#steps[place];
      if (step?.is === 'character' && step.matches(character)) places.push(place + 1);
    }
    const next = this.#stateOf(places, false);
    if (code < ASCII) state.next[code] = next;
    return next;
  }

  #stateOf(from: readonly number[], isStart: boolean): State {
    const places = this.#closure(from, isStart, false);
    const key = places.join();
    const known = isStart ? undefined : this.#states.get(key);
    if (known !== undefined) return known;
    const matches = places.some((place) => this.#steps[place]?.is === 'match');
    const state: State = {
      places,
      matches,
      matchesAtEnd: matches || this.#reaches(places, false),
      isDead: places.length === 0,
      next: [],
    };
    if (this.#states.size === maxStates) {
      this.#states = new Map();
      this.#first = { ...this.#first, next: [] };
    }
    if (!isStart) this.#states.set(key, state);
    return state;
  }

  #reaches(places: readonly number[], isStart: boolean): boolean {
    return this.#closure(places, isStart, true).some((place) => this.#steps[place]?.is === 'match');
  }

  /** The places from which a character is read, a match among them, or the end of the text if it is not reached yet. */
  #closure(from: readonly number[], isStart: boolean, isEnd: boolean): number[] {
    const seen = new Set<number>();
    const waiting = [...from];
    const places: number[] = [];
    for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
      if (seen.size === seen.add(place).size) continue;
      const step = this.#steps[place] as Step;
      if (step.is === 'either') waiting.push(...step.to);
      else if (step.is === 'start') {
        if (isStart) waiting.push(place + 1);
      } else if (step.is === 'end' && isEnd) waiting.push(place + 1);
      else places.push(place);
    }
    return places.sort((a, b) => a - b);
  }

  /** Appends the steps that read the node. */
  #write(node: Node): void {
    if (this.#steps.length > MAX_PATTERN_STATES) {
      throw new Unsupported(
        `takes more than ${MAX_PATTERN_STATES} steps with all its repetitions; use fewer of them`,
      );
    }
    if (node.is === 'sequence') for (const each of node.of) this.#write(each);
    else if (node.is === 'choice') this.#writeChoice(node.of);
    else if (node.is === 'repeat') this.#writeRepeat(node.of, node.least, node.most);
    else this.#steps.push(node);
  }

  #writeChoice(of: readonly Node[]): void {
    const start = this.#branch();
    const ends = of.map((each) => {
      start.push(this.#steps.length);
      this.#write(each);
      return this.#branch();
    });
    for (const end of ends) end.push(this.#steps.length);
  }

  #writeRepeat(of: Node, least: number, most: number): void {
    for (let count = 0; count < least; count++) this.#writeOnce(of);
    const exits: number[][] = [];
    for (let count = least; count < (most === Infinity ? least + 1 : most); count++) {
      const at = this.#steps.length;
      const exit = this.#branch();
      exit.push(this.#steps.length);
      exits.push(exit);
      this.#write(of);
      if (most === Infinity) this.#branch().push(at);
    }
    for (const exit of exits) exit.push(this.#steps.length);
  }

  /** Takes a step of its own, so that repetitions of nothing come to an end too. */
  #writeOnce(of: Node): void {
    this.#branch().push(this.#steps.length);
    this.#write(of);
  }

  /** Appends a step that leads wherever is added to what it returns. */
  #branch(): number[] {
    const to: number[] = [];
    this.#steps.push({ is: 'either', to });
    return to;
  }
}
