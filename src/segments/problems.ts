import { MAX_SEGMENT_CONDITIONS, MAX_SEGMENT_PROBLEMS } from '../domain/limits.ts';

/** Keys and indexes from the definition down. */
export type Keys = readonly (string | number)[];

export interface SegmentProblem {
  /** For a person: `definition.all[2].greater_than`. */
  readonly path: string;
  /** For a program, such as one that knows the line of each key. */
  readonly keys: Keys;
  readonly message: string;
}

/** What is noted while a definition is read. */
export class Problems {
  readonly #root: string;
  readonly #found: SegmentProblem[] = [];
  #conditions = 0;

  constructor(root: string) {
    this.#root = root;
  }

  get found(): readonly SegmentProblem[] {
    return this.#found;
  }

  /** Reading on would only cost time. */
  get isFull(): boolean {
    return this.#conditions > MAX_SEGMENT_CONDITIONS || this.#found.length >= MAX_SEGMENT_PROBLEMS;
  }

  note(keys: Keys, message: string): void {
    if (this.#found.length >= MAX_SEGMENT_PROBLEMS) return;
    this.#found.push({ path: pathText(this.#root, keys), keys, message });
  }

  countCondition(): void {
    this.#conditions++;
    if (this.#conditions === MAX_SEGMENT_CONDITIONS + 1) {
      this.note([], `has more than ${MAX_SEGMENT_CONDITIONS} conditions`);
    }
  }
}

function pathText(root: string, keys: Keys): string {
  return keys.reduce<string>((path, key) => path + step(key), root);
}

function step(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  return /^[a-z_][a-z0-9_]{0,40}$/i.test(key) ? `.${key}` : `[${shown(key)}]`;
}

/** A value as a message shows it. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  if (typeof value !== 'string') return String(value);
  const start = Array.from(value.slice(0, 100)).slice(0, 40).join('');
  return JSON.stringify(start.length === value.length ? value : `${start}…`);
}
