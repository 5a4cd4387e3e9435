/* An upload as the server inspects it. The address holds every choice. */

import { parts } from 'sluice:capabilities';
import type { Query } from '../../../console/client/lib/address.ts';
import { post } from '../../../console/client/lib/api.ts';
import { type Loaded, useData } from '../../../console/client/lib/data.ts';
import { readCellType } from '../../../domain/cell-type.ts';
import type { Inspection } from '../api.ts';

/** Options of other capabilities. */
export const givenOptions = parts.flatMap(({ loadOption = [] }) => loadOption);

/** Options in the address, under the API's names. The second list has no controls. */
const texts = [
  ...['encoding', 'delimiter', 'quote', 'header', 'sheet', 'entity', 'preset', 'company_from', 'ragged'],
  ...['existing', ...givenOptions.flatMap(({ fields }) => fields)],
];
const otherTexts = [
  ...['format', 'escape', 'comment', 'apostrophes', 'records'],
  ...['header_rows', 'skip_rows', 'skip_footer', ...givenOptions.flatMap(({ otherFields }) => otherFields)],
];

const lists = ['null', 'types'] as const;

/** Change of the address that forgets all choices for a file. */
export const noOptions: Readonly<Record<string, undefined>> = Object.fromEntries(
  [...texts, ...otherTexts, ...lists, 'map'].map((name) => [name, undefined]),
);

/** Returns the given options that have no control. */
export function otherOptions(query: Query): readonly (readonly [name: string, value: string])[] {
  return Object.entries(query.given(otherTexts));
}

export function isReadingChosen(query: Query): boolean {
  return Object.keys(query.given([...texts, ...otherTexts, 'null'])).length > 0;
}

/** Returns the options as `POST /v1/imports` and its inspection take them. */
export function optionsOf(query: Query): Record<string, unknown> {
  const map = mapOf(query);
  const given = lists.map((name) => [name, listOf(query, name)] as const);
  return {
    upload_id: query.get('upload'),
    ...query.given([...texts, ...otherTexts, 'options_of']),
    ...(map === null || Object.keys(map).length === 0 ? {} : { map }),
    ...Object.fromEntries(given.filter(([, items]) => items.length > 0)),
  };
}

/** Returns the texts of empty cells, or the column types, as the API takes them. */
export function listOf(query: Query, name: (typeof lists)[number]): readonly string[] {
  const items = jsonOf(query, name);
  return Array.isArray(items) ? (items as string[]) : [];
}

/** Returns the chosen map, or `null`. An empty map rejects every proposal. */
export function mapOf(query: Query): Record<string, string> | null {
  const map = jsonOf(query, 'map');
  return typeof map === 'object' && map !== null ? (map as Record<string, string>) : null;
}

function jsonOf(query: Query, name: string): unknown {
  try {
    return JSON.parse(query.get(name));
  } catch {
    return null;
  }
}

export type InspectedColumn = Inspection['columns'][number];

/** An inspected upload and its choices. */
export interface Inspected {
  readonly query: Query;
  readonly found: Inspection;
}

/** Returns true for another product's records, which leave nothing to map. */
export function isPreset(query: Query, { preset }: Inspection): boolean {
  return preset !== null && mapOf(query) === null;
}

export function useInspection(query: Query): Loaded<Inspection> {
  const body = optionsOf(query);
  const key = query.get('upload') === '' ? null : JSON.stringify(body);
  return useData(key, (signal) => post<Inspection>('/v1/imports/inspect', body, signal));
}

/* The map and the types of the columns. */

export type Role = 'user_id' | 'company_id' | 'property' | 'ignore' | 'other';
export type ColumnMap = Readonly<Record<string, string>>;

const ids: readonly string[] = ['user_id', 'company_id'];
/** Names with a meaning of their own. A property of such a name is written `metadata.<name>`. */
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

/** Shows a choice at once: the page's map overrides the map of a late answer. */
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

export function withProperty(map: ColumnMap, name: string, property: string): ColumnMap {
  const { [name]: _before, ...others } = map;
  const ours = fixed.has(property) ? within + property : property;
  return ours === name ? others : { ...others, [name]: ours };
}

type Types = Readonly<Record<string, string>>;

/** Returns the chosen types by column, or the server's. Empty means text. */
export function typesIn(query: Query, { columns }: Inspection): Types {
  if (query.get('types') === '')
    return Object.fromEntries(columns.map(({ name, cell_type: type }) => [name, type ?? '']));
  return Object.fromEntries(
    listOf(query, 'types')
      .map(readCellType)
      .filter((pair) => pair !== undefined),
  );
}

/** Returns the types of columns that become properties, as the API takes them. */
export function typesWith(types: Types, map: ColumnMap, found: Inspection): string[] {
  const typed = found.columns.filter((column) => becomesWith(map, found, column)?.startsWith(within));
  return typed.flatMap(({ name }) => (types[name] ? [`${name}=${types[name]}`] : []));
}
