import type { Static, TSchema } from 'typebox';
import { Default } from 'typebox/value';
import { follow, throwProblems } from '../validation.ts';
import { findProblems, type Keys, published, quoted } from './schema.ts';
import { type FileProblem, FileProblems, type Position, parseSource, type Source } from './source.ts';

export type FileReading<T> =
  | { readonly value: T; readonly problemCount: 0; readonly problems: readonly [] }
  | ({ readonly value: null } & RefusedFile);

export interface RefusedFile {
  readonly problemCount: number;
  /** The first of them, in the order of the file. */
  readonly problems: readonly FileProblem[];
}

/** A kind of file that operators write, in YAML or JSON. */
export interface OperatorFile<S extends TSchema> {
  readonly schema: S;
  /** Says what to write where nothing is meant. */
  readonly emptyCure: string;
  /** Finds what a schema cannot say, whether or not the file fits it otherwise. */
  readonly check: (root: Place) => void;
  /** Finds what else is wrong with a file that is right so far. */
  readonly checkValue?: (root: Place, value: Static<S>) => void;
}

/** Refuses a request if the file in this field of its body has problems. Editors mark the lines in `details`. */
export function throwFileProblems(field: string, problems: readonly FileProblem[]): void {
  throwProblems(
    problems.map(({ line, column, message }) => ({
      code: 'invalid_field',
      message,
      details: `${field}: line ${line}, column ${column}`,
    })),
  );
}

/** Reads a file, fills in what it leaves out, and finds everything that is wrong with it at once. */
export function readOperatorFile<S extends TSchema>(
  bytes: Uint8Array,
  { schema, emptyCure, check, checkValue }: OperatorFile<S>,
): FileReading<Static<S>> {
  const problems = new FileProblems();
  const source = parseSource(bytes, emptyCure, problems);
  // The defaults are filled in in place.
  const value = source && Default(schema, structuredClone(withoutSchemaLink(source.value)));
  if (source !== null) {
    const root = new Place(source, [], problems);
    for (const { keys, what, at } of findProblems(schema, value)) {
      if (at === 'value' && source.isRefused(keys)) continue;
      const place = root.at(at === 'parent' ? keys.slice(0, -1) : keys);
      problems.add(at === 'name' ? place.name : place.position, keys, what);
    }
    check(root);
    if (problems.count === 0) checkValue?.(root, value as Static<S>);
  }
  if (problems.count === 0) return { value: value as Static<S>, problemCount: 0, problems: [] };
  return { value: null, problemCount: problems.count, problems: problems.found };
}

/** With `$schema` a JSON file names its schema to editors. */
function withoutSchemaLink(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== '$schema'));
}

/** A place in a file, whether or not there is something. */
export class Place {
  readonly #source: Source;
  readonly #keys: Keys;
  readonly #problems: FileProblems;

  constructor(source: Source, keys: Keys, problems: FileProblems) {
    this.#source = source;
    this.#keys = keys;
    this.#problems = problems;
  }

  /** Returns the place that the keys lead to from here; numbers may be texts. */
  at(keys: Keys): Place {
    return new Place(this.#source, [...this.#keys, ...keys], this.#problems);
  }

  get isThere(): boolean {
    return this.#source.find(this.#keys) !== undefined;
  }

  /** The value as JSON has it, if it is there; what was refused is null. */
  get value(): unknown {
    return this.isThere ? follow(this.#source.value, this.#keys) : undefined;
  }

  get holdsRefused(): boolean {
    return this.#source.holdsRefused(this.#keys);
  }

  get items(): Place[] {
    const { value } = this;
    return Array.isArray(value) ? value.map((_, index) => this.at([index])) : [];
  }

  /** The position of the value; of a missing one, that of the object which it is missing from. */
  get position(): Position {
    return this.#source.find(this.#keys)?.position ?? this.#parent.position;
  }

  /** The position of the name that the value stands under. */
  get name(): Position {
    return this.#source.find(this.#keys)?.name ?? this.#parent.name;
  }

  get #parent(): Place {
    return new Place(this.#source, this.#keys.slice(0, -1), this.#problems);
  }

  /** `what` goes on from the path: `must be text`. */
  report(what: string, position: Position = this.position): void {
    this.#problems.add(position, this.#keys, what);
  }

  /** Reports what is wrong with it at its name. */
  reportName(what: string): void {
    this.report(what, this.name);
  }

  /** Reports the items that have their text under `name` in common with one before. Those that are wrong count too. */
  reportRepeats(name: string, ignoresCase = false): void {
    const lines = new Map<string, number>();
    for (const item of this.items) {
      const place = item.at([name]);
      const { value, position } = place;
      if (typeof value !== 'string') continue;
      const text = ignoresCase ? value.toLowerCase() : value;
      const line = lines.get(text);
      if (line === undefined) lines.set(text, position.line);
      else place.report(`is ${quoted(value)}, as in line ${line}; each item needs a ${name} of its own`);
    }
  }
}

/** The schema of a kind of file, for editors: docs/schemas/<name>.schema.json. */
export function publishedSchema(name: string, title: string, schema: TSchema): object {
  const { properties, ...rest } = published(schema) as Readonly<Record<string, unknown>>;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `https://sluice.invalid/schemas/${name}.schema.json`,
    ...rest,
    title,
    properties: { $schema: { type: 'string' }, ...(properties as object) },
  };
}
