import type { CatalogueItems } from '../items/items.ts';
import { catalogueField } from './catalogue-field.ts';
import { type FileProblem, Problems } from './problems.ts';
import { readSource } from './read-source.ts';
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
  const source = readSource(bytes, problems, 'a catalogue without items is written `segments: []`');
  return source === null ? undefined : catalogueField.read(withoutSchemaLink(source), problems);
}

/** `$schema` is how a JSON file tells an editor of its schema. */
function withoutSchemaLink(source: SourceNode): SourceNode {
  if (source.kind !== 'object') return source;
  return { ...source, members: source.members.filter(({ name }) => name !== '$schema') };
}
