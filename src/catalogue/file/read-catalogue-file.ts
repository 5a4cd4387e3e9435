import { type RefusedFile, readOperatorFile } from '../../operator-file/read-operator-file.ts';
import type { CatalogueItems } from '../items/items.ts';
import { catalogueField } from './catalogue-field.ts';

export type CatalogueReading =
  | { readonly items: CatalogueItems; readonly problemCount: 0; readonly problems: readonly [] }
  | ({ readonly items: null } & RefusedFile);

const emptyCure = 'a catalogue without items is written `segments: []`';

/** Reads a catalogue file, YAML or JSON, and finds everything that is wrong with it at once. */
export function readCatalogueFile(bytes: Uint8Array): CatalogueReading {
  const { value, ...rest } = readOperatorFile(bytes, catalogueField, emptyCure);
  return { items: value, ...rest } as CatalogueReading;
}
