import { InputError, type Problem } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../../domain/limits.ts';

/** The parameters of a query, each read by its own rule; what is wrong with any of them is told together. */
export class PageQuery {
  readonly #query: Readonly<Record<string, string | string[]>>;
  readonly #problems: Problem[] = [];

  constructor(query: unknown) {
    this.#query = query as Record<string, string | string[]>;
  }

  limit(max = MAX_PAGE_SIZE): number {
    const message = `limit is a whole number from 1 to ${max}`;
    return this.read('limit', DEFAULT_PAGE_SIZE, (text) => {
      const limit = Number(text);
      if (/^\d{1,9}$/.test(text) && limit >= 1 && limit <= max) return limit;
      throw new InputError({ code: 'invalid_field', message, details: 'limit' });
    });
  }

  /** Absent and empty are the same: many clients send every parameter they know. */
  read<T, F>(name: string, fallback: F, read: (text: string) => T): T | F {
    const value = this.#query[name];
    if (value === undefined || value === '') return fallback;
    try {
      if (typeof value === 'string') return read(value);
      throw new InputError({
        code: 'invalid_field',
        message: `${name} was given more than once`,
        details: name,
      });
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.#problems.push(...error.problems);
      return fallback;
    }
  }

  /** @throws InputError with everything found so far. */
  check(): void {
    const [first, ...more] = this.#problems;
    if (first !== undefined) throw new InputError(first, ...more);
  }
}
