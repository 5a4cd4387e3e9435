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
  readonly problems: readonly FileProblem[];
}

export interface OperatorFile<S extends TSchema> {
  readonly schema: S;
  readonly emptyHint: string;
  /** Checks what a schema cannot express. Also called if the file violates the schema. */
  readonly check: (root: Place) => void;
  /** Further checks that need a valid value. Called only if no problem has been found before. */
  readonly checkValue?: (root: Place, value: Static<S>) => void;
}

/**
 * Throws the problems, if there are any. `field` is the field of the request that contains the
 * file. The console's editor marks the line that `details` names.
 */
export function throwFileProblems(field: string, problems: readonly FileProblem[]): void {
  throwProblems(
    problems.map(({ line, column, message }) => ({
      code: 'invalid_field',
      message,
      details: `${field}: line ${line}, column ${column}`,
    })),
  );
}

export function readOperatorFile<S extends TSchema>(
  bytes: Uint8Array,
  { schema, emptyHint, check, checkValue }: OperatorFile<S>,
): FileReading<Static<S>> {
  const problems = new FileProblems();
  const source = parseSource(bytes, emptyHint, problems);
  // `Default` modifies its argument, so it gets a copy.
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
  return { value: null, problemCount: problems.count, problems: problems.sorted };
}

/** Editors use `$schema` to find the schema. */
function withoutSchemaLink(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== '$schema'));
}

/** A place in a file, whose value may be missing. */
export class Place {
  readonly #source: Source;
  readonly #keys: Keys;
  readonly #problems: FileProblems;

  constructor(source: Source, keys: Keys, problems: FileProblems) {
    this.#source = source;
    this.#keys = keys;
    this.#problems = problems;
  }

  at(keys: Keys): Place {
    return new Place(this.#source, [...this.#keys, ...keys], this.#problems);
  }

  get isThere(): boolean {
    return this.#source.find(this.#keys) !== undefined;
  }

  /** The value at this place. `undefined` if it is missing, `null` if it was refused. */
  get value(): unknown {
    return this.isThere ? follow(this.#source.value, this.#keys) : undefined;
  }

  get containsRefused(): boolean {
    return this.#source.containsRefused(this.#keys);
  }

  get items(): Place[] {
    const { value } = this;
    return Array.isArray(value) ? value.map((_, index) => this.at([index])) : [];
  }

  /** Position of the value, or of the enclosing object if it is missing. */
  get position(): Position {
    return this.#source.find(this.#keys)?.position ?? this.#parent.position;
  }

  get name(): Position {
    return this.#source.find(this.#keys)?.name ?? this.#parent.name;
  }

  get #parent(): Place {
    return new Place(this.#source, this.#keys.slice(0, -1), this.#problems);
  }

  /**
   * Reports a problem of the value. The message is the path followed by `what`, such as `must be
   * text`.
   */
  report(what: string, position: Position = this.position): void {
    this.#problems.add(position, this.#keys, what);
  }

  reportName(what: string): void {
    this.report(what, this.name);
  }

  /**
   * Reports items whose member `name` has the same value as in an earlier item. Other members may
   * be invalid.
   */
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

/** For editors: docs/schemas/<name>.schema.json. */
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
