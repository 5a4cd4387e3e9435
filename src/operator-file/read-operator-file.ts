import type { Field } from './field.ts';
import { type FileProblem, Problems } from './problems.ts';
import { readSource } from './read-source.ts';
import type { SourceNode } from './source.ts';

export type FileReading<T> =
  | { readonly value: T; readonly problemCount: 0; readonly problems: readonly [] }
  | ({ readonly value: null } & RefusedFile);

/** What is wrong with a file. */
export interface RefusedFile {
  readonly problemCount: number;
  /** The first of them, in the order of the file. */
  readonly problems: readonly FileProblem[];
}

/**
 * Reads a file that an operator wrote, YAML or JSON, and finds everything that is wrong with it at once. `emptyCure` says
 * what to write where nothing is meant.
 */
export function readOperatorFile<T>(bytes: Uint8Array, field: Field<T>, emptyCure: string): FileReading<T> {
  const problems = new Problems();
  const source = readSource(bytes, emptyCure, problems);
  const value = source === null ? undefined : field.read(withoutSchemaLink(source), problems);
  if (value !== undefined && problems.count === 0) return { value, problemCount: 0, problems: [] };
  return { value: null, problemCount: problems.count, problems: problems.found };
}

/** `$schema` is how a JSON file tells an editor of its schema. */
function withoutSchemaLink(source: SourceNode): SourceNode {
  if (source.kind !== 'object') return source;
  return { ...source, members: source.members.filter(({ name }) => name !== '$schema') };
}
