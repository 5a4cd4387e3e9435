import { Type } from 'typebox';
import { InputError, inputError, type Problem } from '../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../domain/limits.ts';
import { quoteName, suggest } from './suggest.ts';

/** Parameters of what is answered page by page. */
export const pageParameters = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_SIZE,
      default: DEFAULT_PAGE_SIZE,
      description: 'Items on a page, at most; of refused records as many as fit into a megabyte.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ description: 'Where the page begins, unchanged from the page before (`Link`).' }),
  ),
};

/**
 * The parameters of the query of a list, each read by its own rule; what is wrong with any of them is told together. One that
 * nobody reads is wrong too: a filter that is misspelt would list everything. Names that begin with `_` are let through: some
 * clients add them so that no cache answers.
 */
export class PageQuery {
  readonly #known = new Set<string>();
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
    this.#known.add(name);
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

  /** Takes parameters for known that this answer has no use for. */
  allow(...names: readonly string[]): this {
    for (const name of names) this.#known.add(name);
    return this;
  }

  /** @throws InputError with everything found so far, and every parameter that was not read. */
  check(): void {
    for (const name of Object.keys(this.#query)) {
      if (this.#known.has(name) || name.startsWith('_')) continue;
      const message = `There is no parameter ${quoteName(name)} here; ${suggest(name, [...this.#known])}`;
      this.#problems.push({ code: 'invalid_field', message, details: name.slice(0, 100) });
    }
    const [first, ...more] = this.#problems;
    if (first !== undefined) throw new InputError(first, ...more);
  }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Opaque to callers: the job id at which a page ended. */
export function writeJobCursor(jobId: string): string {
  return Buffer.from(jobId).toString('base64url');
}

/** @throws InputError `invalid_cursor`. */
export function readJobCursor(cursor: string): string {
  const jobId = decode(cursor);
  if (uuid.test(jobId)) return jobId;
  throw invalidCursor();
}

/** Opaque to callers: the row at which a page of rejects ended. */
export function writeRowCursor(row: number): string {
  return Buffer.from(String(row)).toString('base64url');
}

/** @throws InputError `invalid_cursor`. */
export function readRowCursor(cursor: string): number {
  const row = decode(cursor);
  if (/^\d{1,15}$/.test(row)) return Number(row);
  throw invalidCursor();
}

function decode(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('latin1');
}

function invalidCursor(): Error {
  return inputError('invalid_cursor', 'A cursor is taken, unchanged, from the page before', 'cursor');
}
