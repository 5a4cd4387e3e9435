import { type FileProblem, Problems } from '../../catalogue/file/problems.ts';
import { readSource } from '../../catalogue/file/read-source.ts';
import { placeAt } from '../../catalogue/file/source.ts';
import type { InboxFolder, InboxOptions } from '../../domain/inbox.ts';
import { mappingField } from './mapping-field.ts';

export type MappingReading =
  | { readonly options: InboxOptions; readonly problems: readonly [] }
  | { readonly options: null; readonly problems: readonly FileProblem[] };

/** How files are loaded that have no mapping beside them. */
export function optionsWithoutMapping(folder: InboxFolder): InboxOptions {
  return {
    entity: folder === '' ? 'auto' : folder,
    map: {},
    maxErrors: null,
    ifDuplicate: 'skip',
    format: null,
  };
}

/** Reads a mapping.yaml and finds everything that is wrong with it at once. */
export function readMapping(bytes: Uint8Array, folder: InboxFolder): MappingReading {
  const problems = new Problems();
  const source = readSource(bytes, problems, 'remove it, or write what it is to say, such as `map:`');
  const given = source === null ? undefined : mappingField.read(source, problems);
  const defaults = optionsWithoutMapping(folder);
  if (source !== null && given?.entity != null && folder !== '' && given.entity !== folder) {
    problems.note(
      placeAt(source, ['entity']),
      'entity',
      `is ${folder} in the folder ${folder}; leave it out`,
    );
  }
  if (given === undefined || problems.count > 0) return { options: null, problems: problems.found };
  const options = {
    entity: given.entity ?? defaults.entity,
    map: given.map,
    maxErrors: given.max_errors,
    ifDuplicate: given.if_duplicate ?? defaults.ifDuplicate,
    format: given.format,
  };
  return { options, problems: [] };
}
