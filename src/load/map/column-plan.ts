import { inputError } from '../../base/errors.ts';
import { undoDefuse } from '../../base/formula.ts';
import { MAX_SHOWN_COLUMNS } from '../../base/limits.ts';
import { named, say, using } from '../../base/sentence.ts';
import {
  type Entity,
  idColumn,
  isAutomaticProperty,
  type LoadEntity,
  recordKeys,
} from '../../domain/entity.ts';
import { isRejectColumn, propertyNameProblem, type Reject } from '../../domain/reject.ts';
import { type CsvHeader, cellTypeOf } from '../../formats/csv-header.ts';
import { type ForeignRecords, foreignColumns, type Recognise } from './foreign.ts';
import { lookOf } from './looks.ts';

/**
 * Names of fields. If the records of a file state their kind, columns with these names are not
 * properties.
 */
export const eventColumns = [
  'event_type',
  'user_id',
  'company_id',
  'event_id',
  'insert_id',
  'event_name',
  'source',
  'inserted_at',
  'metadata',
] as const;

/**
 * A column can have the role `url` only if records state their kind. Columns that `map` excludes
 * are `ignored`, and so are the additional columns of a file of rejects. In files of profiles,
 * `first_seen_at` and `last_seen_at` are `ignored` too.
 */
type ColumnRole = (typeof eventColumns)[number] | 'url' | 'removed' | 'property' | 'ignored';

export interface ColumnPlan {
  readonly entity: LoadEntity;
  readonly roles: readonly ColumnRole[];
  /**
   * Names of the columns after `map` has renamed them, and without the prefix `metadata.` that some
   * properties have.
   */
  readonly names: readonly string[];
  /** True if records state their kind. Otherwise, all records are profiles of `entity`. */
  readonly hasKinds: boolean;
}

const ofEvents: ReadonlySet<string> = new Set([...eventColumns, 'url', 'removed']);

function isOfEvents(name: string): name is Exclude<ColumnRole, 'property' | 'ignored'> {
  return ofEvents.has(name);
}

/**
 * @throws InputError `unrecognised_columns` if there is no id column, or `invalid_field` for
 * invalid property names, two columns with the same meaning, and unknown columns in the map or
 * types
 */
export function planFile(
  header: Pick<CsvHeader, 'columns' | 'defused' | 'types'>,
  map: Readonly<Record<string, string>>,
  requested: LoadEntity,
  recognise: Recognise | null = null,
): ColumnPlan {
  const { columns, defused } = header;
  requireMapped(columns, map);
  const names = columns.map(
    (column) => ownName(map, column) ?? (defused === true ? undoDefuse(column) : column),
  );
  const hasKinds = names.includes('event_type');
  const entity = hasKinds || requested !== 'auto' ? requested : (entityOf(names) ?? requested);
  const ids = entity === 'auto' ? Object.values(idColumn) : [idColumn[entity]];
  if (!ids.some((id) => names.includes(id))) throw withoutId(ids, columns, foreignColumns(names, recognise));
  const roles = names.map((name, index): ColumnRole => {
    if (ownName(map, columns[index] ?? '') === '') return 'ignored';
    return hasKinds ? roleInEvents(name) : roleInProfiles(name, entity);
  });
  const properties = names.map((name) => name.replace(/^metadata\./, ''));
  requireDistinct(columns, properties, roles);
  requireNames(columns, properties, roles);
  requireProperties(header, roles);
  return { entity, roles, names: properties, hasKinds };
}

function roleInEvents(name: string): ColumnRole {
  if (isOfEvents(name)) return name;
  return isRejectColumn(name) ? 'ignored' : 'property';
}

function roleInProfiles(name: string, entity: LoadEntity): ColumnRole {
  if (name === 'company_id' || name === 'metadata' || name === 'removed') return name;
  if (name === 'user_id' && entity === 'users') return name;
  return isRejectColumn(name) || isAutomaticProperty(name) ? 'ignored' : 'property';
}

/**
 * If a file is a single object without an id, the records are probably in an array under an unknown
 * key. `arrays` are the paths of the arrays that contain objects.
 * @throws InputError `unrecognised_columns`
 */
export function requireRecord(
  { keys, arrays }: { readonly keys: readonly string[]; readonly arrays: readonly string[] },
  map: Readonly<Record<string, string>>,
): void {
  if (keys.some((key) => recordKeys.includes(ownName(map, key) ?? key))) return;
  const message =
    'The object is no record, which has user_id or company_id, and holds no array of them that is known';
  const [path] = arrays;
  if (path === undefined) throw inputError('unrecognised_columns', message, `keys seen: ${listed(keys)}`);
  const advice = say`${message}; say where the records are, such as ${named('records', path)}`;
  throw inputError('unrecognised_columns', advice, `arrays of objects seen: ${listed(arrays)}`);
}

/**
 * Error for a header without an id. If the records look like events, the message does not suggest
 * adding only an id, because events with an id but without a kind would be loaded as profiles.
 */
function withoutId(ids: readonly string[], columns: readonly string[], foreign: ForeignRecords | null) {
  const lacking = `The header names no ${ids.join(' or ')} column`;
  const remark = columns[0]?.startsWith('#')
    ? say`; if lines that begin with # are remarks, say ${named('comment', '#')}`
    : '';
  const remedy =
    foreign?.advice ??
    say`name one, or map one ${using('map', `Their Header=${ids[0]}`)}; if no record names the columns, say ${named('header', 'none')} and ${named('map', `1=${ids[0]}`)}`;
  return inputError(
    'unrecognised_columns',
    say`${lacking}; ${remedy}${remark}`,
    `columns seen: ${listed(columns)}`,
  );
}

/**
 * Returns a list of names for a message. Lists no names if one of them looks like a value, because
 * the file then probably has no header.
 */
export function listed(names: readonly string[]): string {
  if (names.some((name) => lookOf([name]) !== null)) return 'none, but values';
  const shown = names.slice(0, MAX_SHOWN_COLUMNS).join(', ');
  return names.length > MAX_SHOWN_COLUMNS ? `${shown}, … (${names.length} in all)` : shown;
}

export function ownName(map: Readonly<Record<string, string>>, column: string): string | undefined {
  return Object.hasOwn(map, column) ? map[column] : undefined;
}

function entityOf(names: readonly string[]): Entity | null {
  if (names.includes('user_id')) return 'users';
  return names.includes('company_id') ? 'companies' : null;
}

function requireMapped(columns: readonly string[], map: Readonly<Record<string, string>>): void {
  const seen = new Set(columns);
  const absent = Object.keys(map).filter((name) => !seen.has(name));
  if (absent.length === 0) return;
  throw inputError(
    'invalid_field',
    `map names a column that the file does not have: ${listed(absent)}`,
    `map; columns seen: ${listed(columns)}`,
  );
}

/**
 * Refuses two columns with the same meaning. But a property and a field may have the same name, as
 * in exports.
 */
function requireDistinct(
  columns: readonly string[],
  names: readonly string[],
  roles: readonly string[],
): void {
  const indexes = new Map<string, number>();
  for (const [index, name] of names.entries()) {
    if (roles[index] === 'ignored' && name === '') continue;
    const meaning = `${roles[index] === 'property'} ${name}`;
    const earlier = indexes.get(meaning);
    if (earlier !== undefined) {
      throw inputError(
        'invalid_field',
        `Columns ${earlier + 1} and ${index + 1} both mean ${name}. Rename or remove one`,
        `header: ${columns[earlier]}, ${columns[index]}`,
      );
    }
    indexes.set(meaning, index);
  }
}

function requireNames(columns: readonly string[], names: readonly string[], roles: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    const problem = roles[index] === 'property' ? propertyNameProblem(name) : null;
    if (problem === null) continue;
    throw inputError('invalid_field', `Column ${index + 1}: ${problem.message}`, `header: ${columns[index]}`);
  }
}

function requireProperties(header: Pick<CsvHeader, 'columns' | 'types'>, roles: readonly string[]): void {
  const column = header.columns.find(
    (name, index) => roles[index] !== 'property' && cellTypeOf(header, name) !== undefined,
  );
  if (column === undefined) return;
  const message = 'types names a column that is not a property. Only properties have types';
  throw inputError('invalid_field', message, `column: ${column}`);
}

/**
 * Sorts columns by the length of the name, then by its bytes, so that PostgreSQL does not have to
 * sort.
 */
export function inJsonbOrder(columns: readonly number[], names: readonly string[]): number[] {
  const keys = names.map((name) => Buffer.from(name));
  const bytes = (column: number): Buffer => keys[column] ?? noBytes;
  return columns.toSorted((a, b) => bytes(a).length - bytes(b).length || bytes(a).compare(bytes(b)));
}

const noBytes = Buffer.alloc(0);

/** If `map` renamed the column at fault, gives the reject the column's name in the file. */
export function locateReject(reject: Reject, names: readonly string[], columns: readonly string[]): Reject {
  const index = reject.column === null ? -1 : names.indexOf(reject.column);
  const name = columns[index];
  return name === undefined || name === reject.column ? reject : { ...reject, column: name };
}
