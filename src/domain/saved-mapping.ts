import type { ColumnMap } from './column-map.ts';
import type { LoadEntity } from './entity.ts';
import { inputError } from './errors.ts';
import type { LoadOptions } from './load.ts';
import type { SourceFormat } from './source.ts';
import { findContradictions } from './source-conflicts.ts';
import { type GivenSource, toSourceOptions } from './source-options.ts';

export const mappingNamePattern = '^[a-z0-9][a-z0-9_-]{0,62}$';
export const mappingNameRule = 'must be 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit';

export function isMappingName(text: string): boolean {
  return new RegExp(mappingNamePattern).test(text);
}

/** The rules of a mapping. */
export interface MappingRules {
  readonly entity: LoadEntity;
  readonly map: ColumnMap;
  /** The options of the files' format, as they were given. */
  readonly source: GivenSource;
  /** `null`: told by the content. */
  readonly format: SourceFormat | null;
  /** The columns of the files that it is offered for; null: of none. */
  readonly columnNames: readonly string[] | null;
}

/** Mapping rules under a name. */
export interface SavedMapping extends MappingRules {
  readonly name: string;
  readonly savedAt: Date;
  /** When a load was last accepted with it; null: never. */
  readonly lastUsedAt: Date | null;
}

/** The part of a load's options that a mapping sets. */
export interface Mapped extends Pick<LoadOptions, 'entity' | 'map' | 'source'> {
  readonly format: SourceFormat | null;
}

/**
 * Applies a saved mapping to what is asked for; what the caller says of the records and of how the file is written wins.
 * @throws InputError `invalid_field` where that contradicts the mapping.
 */
export function applyMapping<T extends Mapped>(asked: T, { name, ...saved }: SavedMapping): T {
  const source = { ...toSourceOptions(saved.source), ...asked.source };
  const [problem] = findContradictions(source);
  if (problem !== undefined) {
    const details = `mapping: ${name}`;
    throw inputError('invalid_field', `with the saved mapping, ${problem.name} ${problem.what}`, details);
  }
  return {
    ...asked,
    entity: asked.entity === 'auto' ? saved.entity : asked.entity,
    map: saved.map,
    source,
    format: asked.format ?? saved.format,
  };
}
