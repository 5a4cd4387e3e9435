import type { Static, TSchema } from 'typebox';
import { Default } from 'typebox/value';
import { findProblems, type Keys, published, quoted } from './schema.ts';
import {
  type FileProblem,
  FileProblems,
  nodeAt,
  type Position,
  parseSource,
  type SourceNode,
  toJson,
} from './source.ts';

export type FileReading<T> =
  | { readonly value: T; readonly problemCount: 0; readonly problems: readonly [] }
  | ({ readonly value: null } & RefusedFile);

/** A refused file and what is wrong with it. */
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
}

/** Reads a file, fills in what it leaves out, and finds everything that is wrong with it at once. */
export function readOperatorFile<S extends TSchema>(
  bytes: Uint8Array,
  { schema, emptyCure, check }: OperatorFile<S>,
): FileReading<Static<S>> {
  const problems = new FileProblems();
  const parsed = parseSource(bytes, emptyCure, problems);
  const source = parsed === null ? null : withoutSchemaLink(parsed);
  const value = source === null ? null : Default(schema, toJson(source));
  if (source !== null) {
    const root = new Place(source, [], problems);
    for (const { keys, what, at } of findProblems(schema, value)) {
      const place = root.at(at === 'parent' ? keys.slice(0, -1) : keys);
      if (place.node?.kind === 'refused' && at === 'value') continue;
      problems.add(at === 'name' ? place.name : place.position, keys, what);
    }
    check(root);
  }
  if (problems.count === 0) return { value: value as Static<S>, problemCount: 0, problems: [] };
  return { value: null, problemCount: problems.count, problems: problems.found };
}

/** With `$schema` a JSON file names its schema to editors. */
function withoutSchemaLink(source: SourceNode): SourceNode {
  if (source.kind !== 'object') return source;
  return { ...source, members: source.members.filter(({ name }) => name !== '$schema') };
}

/** A place in a file, whether or not there is something. */
export class Place {
  readonly #root: SourceNode;
  readonly #keys: Keys;
  readonly #problems: FileProblems;

  constructor(root: SourceNode, keys: Keys, problems: FileProblems) {
    this.#root = root;
    this.#keys = keys;
    this.#problems = problems;
  }

  /** Returns the place that the keys lead to from here; numbers may be texts. */
  at(keys: Keys): Place {
    return new Place(this.#root, [...this.#keys, ...keys], this.#problems);
  }

  get node(): SourceNode | undefined {
    return nodeAt(this.#root, this.#keys);
  }

  get value(): unknown {
    return this.node === undefined ? undefined : toJson(this.node);
  }

  /** Every item of a list. */
  get items(): Place[] {
    const { node } = this;
    return node?.kind === 'list' ? node.items.map((_, index) => this.at([index])) : [];
  }

  /** The position of the value; of a missing one, that of the object which it is missing from. */
  get position(): Position {
    return this.node ?? (this.#keys.length === 0 ? this.#root : this.#parent.position);
  }

  /** The position of the name that the value stands under. */
  get name(): Position {
    const last = this.#keys.at(-1);
    const parent = this.#keys.length === 0 ? undefined : this.#parent.node;
    const member = parent?.kind === 'object' ? parent.members.find(({ name }) => name === last) : undefined;
    return member ?? this.node ?? (this.#keys.length === 0 ? this.#root : this.#parent.name);
  }

  get #parent(): Place {
    return new Place(this.#root, this.#keys.slice(0, -1), this.#problems);
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
  reportRepeats(name: string): void {
    const lines = new Map<string, number>();
    for (const item of this.items) {
      const place = item.at([name]);
      const { node } = place;
      if (node?.kind !== 'scalar' || typeof node.value !== 'string') continue;
      const line = lines.get(node.value);
      if (line === undefined) lines.set(node.value, node.line);
      else {
        const shown = quoted(node.value);
        place.report(`is ${shown}, as in line ${line}; each item needs a ${name} of its own`);
      }
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
