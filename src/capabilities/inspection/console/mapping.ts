/* The choices of what each column becomes: the map and the types of the API, which stand in the address. */

import type { Query } from '../../../console/client/lib/address.ts';
import { readCellType } from '../../../domain/cell-type.ts';
import type { Inspection } from '../api.ts';
import { type InspectedColumn, listOf, mapOf } from './inspection.ts';

export type Role = 'user_id' | 'company_id' | 'property' | 'ignore' | 'other';
export type ColumnMap = Readonly<Record<string, string>>;

const ids: readonly string[] = ['user_id', 'company_id'];
/** Names that mean something of their own: a property of such a name is written with `metadata.` before it. */
const fixed: ReadonlySet<string> = new Set([
  ...[...ids, 'metadata', 'first_seen_at', 'last_seen_at', 'event_type', 'event_id', 'insert_id'],
  ...['event_name', 'source', 'inserted_at', 'url'],
]);
export const within = 'metadata.';

export function roleOf({ becomes }: InspectedColumn): Role {
  if (becomes === null) return 'ignore';
  if (ids.includes(becomes)) return becomes as Role;
  return becomes.startsWith(within) ? 'property' : 'other';
}

/**
 * Returns the inspection under the page's current map, whatever map the answer is about: a choice shows at once, and an answer
 * that was already on its way does not revert it.
 */
export function withChoices(query: Query, found: Inspection): Inspection {
  const map = mapOf(query);
  if (map === null) return found;
  const columns = found.columns.map((column) => ({ ...column, becomes: becomesWith(map, found, column) }));
  return { ...found, map, columns };
}

/** Returns what a column becomes with another map. */
function becomesWith(map: ColumnMap, found: Inspection, { name, becomes }: InspectedColumn): string | null {
  return map[name] === found.map[name] ? becomes : becomesOf(name, map[name]);
}

function becomesOf(name: string, ours = within + name): string | null {
  if (ours === '') return null;
  return fixed.has(ours) || ours.startsWith(within) ? ours : within + ours;
}

/** Returns the map with another role for a column. An id belongs to one column: another that had it becomes a property. */
export function withRole(
  map: ColumnMap,
  columns: readonly InspectedColumn[],
  name: string,
  role: Role,
): ColumnMap {
  if (role === 'other') return map;
  if (role === 'property') return withProperty(map, name, name);
  if (role === 'ignore') return { ...map, [name]: '' };
  const before = columns.find((column) => column.becomes === role && column.name !== name);
  const freed = before === undefined ? map : withProperty(map, before.name, before.name);
  return { ...freed, [name]: role };
}

/** Returns the map with another name for the property that a column becomes. */
export function withProperty(map: ColumnMap, name: string, property: string): ColumnMap {
  const { [name]: _before, ...others } = map;
  const ours = fixed.has(property) ? within + property : property;
  return ours === name ? others : { ...others, [name]: ours };
}

/** Types of the API by column. */
type Types = Readonly<Record<string, string>>;

/** Returns the chosen types by column, or those that the server takes; empty: text. */
export function typesIn(query: Query, { columns }: Inspection): Types {
  if (query.get('types') === '')
    return Object.fromEntries(columns.map(({ name, cell_type: type }) => [name, type ?? '']));
  return Object.fromEntries(
    listOf(query, 'types')
      .map(readCellType)
      .filter((pair) => pair !== undefined),
  );
}

/** Returns the types of columns that are properties with this map, as the API takes them. */
export function typesWith(types: Types, map: ColumnMap, found: Inspection): string[] {
  const typed = found.columns.filter((column) => becomesWith(map, found, column)?.startsWith(within));
  return typed.flatMap(({ name }) => (types[name] ? [`${name}=${types[name]}`] : []));
}
