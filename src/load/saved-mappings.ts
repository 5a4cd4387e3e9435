/* Saved mappings: how files are loaded, kept under a name; and the files that they are offered for. */
import {
  applyMapping,
  type ColumnMap,
  type Mapped,
  type MappingRules,
  resolveMap,
  type SavedMapping,
} from '../domain/column-map.ts';
import { InputError, inputError } from '../domain/errors.ts';
import { MAX_SAVED_MENDS } from '../domain/limits.ts';
import { toGivenSource, toSourceOptions } from '../domain/source-options.ts';
import type { Database } from '../postgres/database.ts';
import type { Parent } from '../postgres/stores/amendments.ts';
import { findMapping, type ListedMapping, removeMapping, saveMapping } from '../postgres/stores/mappings.ts';
import { requireKeepable } from './causes/mend-ids.ts';
import type { Looked, OfferedInspection } from './inspect/inspect-file.ts';

const MAX_SAVED_MAPPINGS = 1_000;

/** @throws InputError `not_found`. */
export async function requireMapping(
  db: Database,
  environmentId: number,
  name: string,
): Promise<SavedMapping> {
  const mapping = await findMapping(db, environmentId, name);
  if (mapping !== null) return mapping;
  throw noMapping(name);
}

/** Returns the request with the saved mapping that it names. @throws InputError `not_found`, `invalid_field`. */
export async function withMapping<T extends Mapped>(
  db: Database,
  environmentId: number,
  name: string | null,
  asked: T,
): Promise<T> {
  return name === null ? asked : applyMapping(asked, await requireMapping(db, environmentId, name));
}

/** In the place of the one of that name. @throws InputError where there are too many. */
export async function keepMapping(
  db: Database,
  environmentId: number,
  name: string,
  rules: MappingRules,
): Promise<SavedMapping> {
  const source = toSourceOptions(rules.source);
  await requireKeepable(db, environmentId, { map: rules.map, preset: null, source });
  const saved = await saveMapping(db, environmentId, name, rules, MAX_SAVED_MAPPINGS);
  if (saved !== null) return saved;
  throw inputError(
    'invalid_field',
    `an environment has at most ${MAX_SAVED_MAPPINGS} saved mappings`,
    'name',
  );
}

/**
 * Keeps a mend with a mapping, which is made of the options of a load if there is none of that name. Call it while the lane is locked, so that
 * two mends are both kept.
 */
export async function keepMend(
  db: Database,
  environmentId: number,
  name: string,
  mend: string,
  load: Pick<Parent, 'entity' | 'columnMap' | 'preset' | 'source' | 'header'>,
): Promise<void> {
  if (load.preset !== null) {
    const message =
      'the job was loaded with a preset, which no mapping has; give later loads the option mend';
    throw inputError('invalid_field', message, `keep_in: ${name}`);
  }
  const { mirror, mirrorSegment, maxRemoved, mirrorDespiteRejects, ...source } = load.source;
  const own = { map: load.columnMap, preset: null, source: { mend: [mend] } };
  await requireKeepable(db, environmentId, own);
  const made: MappingRules = {
    entity: load.entity,
    map: load.columnMap,
    source: toGivenSource(source),
    format: null,
    columnNames: load.header?.columns ?? null,
  };
  const rules = (await findMapping(db, environmentId, name)) ?? made;
  const mends = new Set([...(toSourceOptions(rules.source).mend ?? []), mend]);
  if (mends.size > MAX_SAVED_MENDS) {
    const message = `a mapping has at most ${MAX_SAVED_MENDS} mends; save it without those that are not needed`;
    throw inputError('invalid_field', message, `keep_in: ${name}`);
  }
  await keepMapping(db, environmentId, name, { ...rules, source: { ...rules.source, mend: [...mends] } });
}

/** @throws InputError `not_found`. */
export async function dropMapping(db: Database, environmentId: number, name: string): Promise<void> {
  if (!(await removeMapping(db, environmentId, name))) throw noMapping(name);
}

function noMapping(name: string): InputError {
  return inputError('not_found', 'there is no saved mapping of that name', `mapping: ${name}`);
}

/** A column that a map names and the header that it is saved for lacks; null: there is none. */
export function absentColumn(map: ColumnMap, columnNames: readonly string[] | null): string | null {
  if (columnNames === null) return null;
  const known = new Set(columnNames);
  return Object.keys(resolveMap(map, columnNames, true)).find((name) => !known.has(name)) ?? null;
}

interface Asked extends Mapped {
  readonly preset: string | null;
}

/** Looks at a file as it is asked for, with the words that explain what `map` says. */
type Look<T, Found> = (asked: T, mapSays: string) => Promise<Found>;

/**
 * Inspects a file. Where the caller says nothing of its columns, and mappings are saved for files with this header, what is shown is
 * what the one used last makes of it; `problem` is still that of the file as it was asked for.
 * `find` gets the columns of the file. @throws what `look` throws.
 */
export async function inspectAndOffer<T extends Asked, Found extends Looked>(
  look: Look<T, Found>,
  asked: T,
  mapping: string | null,
  find: (columnNames: readonly string[]) => Promise<readonly SavedMapping[]>,
): Promise<OfferedInspection<Found>> {
  const found = await look(asked, mapping === null ? 'map says so' : sayOf(mapping));
  const offered = found.column_names === null ? [] : await find(found.column_names);
  const saved = offered.map(({ name }) => name);
  const [last] = offered;
  const isSaid = mapping !== null || asked.preset !== null || Object.keys(asked.map).length > 0;
  if (isSaid || last === undefined) return { found, saved, mapping };
  const proposed = await lookWith(look, asked, last);
  if (proposed === null) return { found, saved, mapping: null };
  return { found: { ...proposed, problem: found.problem }, saved, mapping: last.name };
}

/** Returns null if the file cannot be loaded with the mapping. */
async function lookWith<T extends Asked, Found extends Looked>(
  look: Look<T, Found>,
  asked: T,
  saved: SavedMapping,
): Promise<Found | null> {
  try {
    const found = await look(applyMapping(asked, saved), sayOf(saved.name));
    return found.problem === null ? found : null;
  } catch (error) {
    if (error instanceof InputError) return null;
    throw error;
  }
}

function sayOf(name: string): string {
  return `the saved mapping ${name} says so`;
}

/* Mappings as callers see them, over HTTP and with `--json`. */

export function renderMapping({ name, entity, map, source, format, columnNames, ...times }: SavedMapping) {
  return {
    name,
    entity,
    map: { ...map },
    format,
    ...source,
    column_names: columnNames === null ? null : [...columnNames],
    ...renderTimes(times),
  };
}

export function renderListedMapping({ name, entity, mapped, columns, ...times }: ListedMapping) {
  return { name, entity, mapped, columns, ...renderTimes(times) };
}

function renderTimes({ savedAt, lastUsedAt }: Pick<SavedMapping, 'savedAt' | 'lastUsedAt'>) {
  return { saved_at: savedAt.toISOString(), last_used_at: lastUsedAt?.toISOString() ?? null };
}
