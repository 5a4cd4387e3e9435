import { MAX_OPERATOR_FILE_PROBLEMS } from '../domain/limits.ts';
import type { Position } from './source.ts';

/** Something that is wrong with a file. */
export interface FileProblem extends Position {
  /** `segments[2].title`; empty for the file as a whole. */
  readonly path: string;
  /** A sentence that begins with the path: what is wrong and, where it is not plain, what to do. */
  readonly message: string;
}

/** What is noted while a file is read. */
export class Problems {
  readonly #found: FileProblem[] = [];
  #count = 0;

  /** In the order of the file; of a great many, the first that were met. */
  get found(): readonly FileProblem[] {
    return this.#found.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  /** How many there are, those beyond the limit included. */
  get count(): number {
    return this.#count;
  }

  /** `what` goes on from the path: `must be text`. */
  note({ line, column }: Position, path: string, what: string): void {
    this.#count++;
    if (this.#found.length >= MAX_OPERATOR_FILE_PROBLEMS) return;
    this.#found.push({ line, column, path, message: `${path === '' ? 'the file' : path} ${what}` });
  }
}
