import { MAX_CATALOGUE_FILE_BYTES } from '../../domain/limits.ts';
import type { CatalogueItems } from '../items/items.ts';
import { catalogueField } from './catalogue-field.ts';
import { parseSource } from './parse-source.ts';
import { type FileProblem, Problems } from './problems.ts';
import type { SourceNode } from './source.ts';

export type CatalogueReading =
  | { readonly items: CatalogueItems; readonly problemCount: 0; readonly problems: readonly [] }
  | {
      readonly items: null;
      readonly problemCount: number;
      /** The first of them, in the order of the file. */
      readonly problems: readonly FileProblem[];
    };

/** Reads a catalogue file, YAML or JSON, and finds everything that is wrong with it at once. */
export function readCatalogueFile(bytes: Uint8Array): CatalogueReading {
  const problems = new Problems();
  const items = read(bytes, problems);
  if (items !== undefined && problems.count === 0) return { items, problemCount: 0, problems: [] };
  return { items: null, problemCount: problems.count, problems: problems.found };
}

function read(bytes: Uint8Array, problems: Problems): CatalogueItems | undefined {
  const text = decode(bytes, problems);
  const source = text === null ? null : parseSource(text, problems);
  return source === null ? undefined : catalogueField.read(withoutSchemaLink(source), problems);
}

/** `$schema` is how a JSON file tells an editor of its schema. */
function withoutSchemaLink(source: SourceNode): SourceNode {
  if (source.kind !== 'object') return source;
  return { ...source, members: source.members.filter(({ name }) => name !== '$schema') };
}

const start = { line: 1, column: 1 };

function decode(bytes: Uint8Array, problems: Problems): string | null {
  if (bytes.length > MAX_CATALOGUE_FILE_BYTES) {
    problems.note(start, '', `has ${bytes.length} bytes; at most ${MAX_CATALOGUE_FILE_BYTES} are allowed`);
    return null;
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    problems.note(start, '', 'is not UTF-8');
    return null;
  }
}
