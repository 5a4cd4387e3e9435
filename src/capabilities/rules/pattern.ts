/*
 * Matches operators' regular expressions in linear time. JavaScript's engine could be busy with
 * `^(a+)+$` for hours. RE2 supports neither look-around nor back-references.
 */
import { RE2JS, RE2JSException, RE2Set } from 're2js';

/** Maximum number of steps in a pattern, with counted repetitions expanded. */
const MAX_PATTERN_SIZE = 2_000;
/**
 * Maximum work of a match, which is the number of steps in the pattern times the length of the
 * text. The worst case takes about 25 ms.
 */
const MAX_PATTERN_WORK = 1_000_000;
const MAX_PATTERNS = 32;
const PATTERN_MEMORY_BYTES = 128 * 1024;

const surrogate = /\\u[dD][89a-fA-F]/;

export function patternProblem(text: string): string | null {
  if (surrogate.test(text)) return 'has half a character; write \\u{1F600} for \\ud83d\\ude00';
  try {
    const size = sizeOf(text);
    if (size <= MAX_PATTERN_SIZE) return null;
    return `has ${size} steps with all its repetitions, and may have ${MAX_PATTERN_SIZE}; use fewer of them`;
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return `is not a regular expression of RE2, which has no look-around and no back-references: ${error.message}`;
  }
}

function sizeOf(text: string): number {
  return RE2JS.compile(RE2JS.translateRegExp(text)).programSize();
}

const patterns = new Map<string, Pattern>();

export class Pattern {
  /** Returns a shared instance, because each chunk needs the same patterns. */
  static of(text: string): Pattern {
    const existing = patterns.get(text);
    if (existing !== undefined) return existing;
    if (patterns.size === MAX_PATTERNS) patterns.clear();
    const pattern = new Pattern(text);
    patterns.set(text, pattern);
    return pattern;
  }

  /** Maximum length of a text in UTF-16 units. A longer text does not match. */
  readonly maxLength: number;
  /**
   * A set that contains only this pattern. A set is used because RE2 limits memory only for sets.
   */
  readonly #set = new RE2Set(RE2Set.UNANCHORED, 0, PATTERN_MEMORY_BYTES);

  constructor(text: string) {
    this.maxLength = Math.floor(MAX_PATTERN_WORK / sizeOf(text));
    this.#set.add(RE2JS.translateRegExp(text));
    this.#set.compile();
  }

  test(text: string): boolean {
    return text.length <= this.maxLength && this.#set.match(text).length > 0;
  }

  testBytes(bytes: Buffer, start: number, end: number): boolean {
    return this.test(bytes.toString('utf8', start, end));
  }
}
