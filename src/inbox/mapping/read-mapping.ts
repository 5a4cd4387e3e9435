import { entities } from '../../domain/entity.ts';
import type { InboxFolder, InboxOptions } from '../../domain/inbox.ts';
import { type FileProblem, Problems } from '../../operator-file/problems.ts';
import { readSource } from '../../operator-file/read-source.ts';
import type { SourceNode } from '../../operator-file/source.ts';
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
  const source = readSource(bytes, 'remove it, or write what it is to say, such as `map:`', problems);
  const given = source === null ? undefined : mappingField.read(source, problems);
  const defaults = optionsWithoutMapping(folder);
  noteOtherEntity(source, folder, problems);
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

/** The folder has said what its files are about. */
function noteOtherEntity(source: SourceNode | null, folder: InboxFolder, problems: Problems): void {
  if (folder === '' || source?.kind !== 'object') return;
  const entity = source.members.find(({ name }) => name === 'entity');
  if (entity?.value.kind !== 'scalar' || entity.value.value === folder) return;
  if (!entities.some((each) => each === (entity.value as { value: unknown }).value)) return;
  problems.note(entity, 'entity', `is ${folder} in the folder ${folder}; leave it out`);
}
