import type { Problem } from '../../domain/errors.ts';
import { quoteName, suggest } from '../suggest.ts';

/** An option as it was given, in the query or as a form field; one name may come several times. */
export type GivenOption = readonly [name: string, value: string];

/** Of options that are wrong all over nobody reads more. */
const maxProblems = 100;

export function queryOptions(query: unknown): GivenOption[] {
  return Object.entries(query as Record<string, string | string[]>).flatMap(([name, values]) =>
    [values].flat().map((value): GivenOption => [name, value]),
  );
}

/** Reads options one by one, and notes everything that is wrong with them. */
export class OptionValues {
  readonly problems: Problem[] = [];
  readonly #given: readonly GivenOption[];

  constructor(given: readonly GivenOption[], known: readonly string[]) {
    this.#given = given;
    for (const name of new Set(given.map(([each]) => each))) {
      if (known.includes(name)) continue;
      this.refuse(name, `${quoteName(name)} is no option here; ${suggest(name, known)}`);
    }
  }

  all(name: string): string[] {
    return this.#given.filter(([each]) => each === name).map(([, value]) => value);
  }

  /** The option's value as `read` understands it (undefined: not at all), or `fallback` if it was not given. */
  one<T, F>(name: string, rule: string, read: (value: string) => T | undefined, fallback: F): T | F {
    const values = new Set(this.all(name));
    if (values.size > 1) this.refuse(name, `${name} was given more than once, with different values`);
    for (const value of values) {
      const understood = read(value);
      if (understood !== undefined) return understood;
      this.refuse(name, `${name} must be ${rule}`);
    }
    return fallback;
  }

  refuse(name: string, message: string): void {
    if (this.problems.length === maxProblems) return;
    this.problems.push({ code: 'invalid_field', message, details: name.slice(0, 100) });
  }
}
