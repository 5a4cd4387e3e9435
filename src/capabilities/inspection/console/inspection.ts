/* The server's inspection of an upload. The page's address stores all choices. */

import { parts } from 'sluice:capabilities';
import type { Query } from '../../../console/client/lib/address.ts';
import { post } from '../../../console/client/lib/api.ts';
import { type Loaded, useData } from '../../../console/client/lib/data.ts';
import { readCellType } from '../../../domain/data-type.ts';
import type { Inspection } from '../api.ts';

export const givenOptions = parts.flatMap(({ loadOption = [] }) => loadOption);

/** The page has controls for `texts`, but not for `otherTexts`. */
const texts = [
  ...['encoding', 'delimiter', 'quote', 'header', 'sheet', 'entity', 'preset', 'company_from', 'ragged'],
  ...['existing', ...givenOptions.flatMap(({ fields }) => fields)],
];
const otherTexts = [
  ...['format', 'escape', 'comment', 'apostrophes', 'records'],
  ...['header_rows', 'skip_rows', 'skip_footer', ...givenOptions.flatMap(({ otherFields }) => otherFields)],
];

const lists = ['null', 'types'] as const;

export const noOptions: Readonly<Record<string, undefined>> = Object.fromEntries(
  [...texts, ...otherTexts, ...lists, 'map'].map((name) => [name, undefined]),
);

export function otherOptions(query: Query): readonly (readonly [name: string, value: string])[] {
  return Object.entries(query.given(otherTexts));
}

export function isReadingChosen(query: Query): boolean {
  return Object.keys(query.given([...texts, ...otherTexts, 'null'])).length > 0;
}

export function optionsOf(query: Query): Record<string, unknown> {
  const map = mapOf(query);
  const listOptions = lists.map((name) => [name, listOf(query, name)] as const);
  return {
    upload_id: query.get('upload'),
    ...query.given([...texts, ...otherTexts, 'options_of']),
    ...(map === null || Object.keys(map).length === 0 ? {} : { map }),
    ...Object.fromEntries(listOptions.filter(([, items]) => items.length > 0)),
  };
}

/** `null`: strings that mean an empty cell. `types`: types of columns, in the form of the API. */
export function listOf(query: Query, name: (typeof lists)[number]): readonly string[] {
  const items = jsonOf(query, name);
  return Array.isArray(items) ? (items as string[]) : [];
}

/** `null` without a map. An empty map means that the user rejected every proposal. */
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

export interface Inspected {
  readonly query: Query;
  readonly inspection: Inspection;
}

/** Records of another product need no map. */
export function isPreset(query: Query, { preset }: Inspection): boolean {
  return preset !== null && mapOf(query) === null;
}

export function useInspection(query: Query): Loaded<Inspection> {
  const body = optionsOf(query);
  const key = query.get('upload') === '' ? null : JSON.stringify(body);
  return useData(key, (signal) => post<Inspection>('/v1/imports/inspect', body, signal));
}

export type Role = 'user_id' | 'company_id' | 'property' | 'ignore' | 'other';
export type ColumnMap = Readonly<Record<string, string>>;

const ids: readonly string[] = ['user_id', 'company_id'];
/** A property with one of these names is mapped as `metadata.<name>`. */
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

export function withChoices(query: Query, inspection: Inspection): Inspection {
  const map = mapOf(query);
  if (map === null) return inspection;
  const columns = inspection.columns.map((column) => ({
    ...column,
    becomes: becomesWith(map, inspection, column),
  }));
  return { ...inspection, map, columns };
}

function becomesWith(
  map: ColumnMap,
  inspection: Inspection,
  { name, becomes }: InspectedColumn,
): string | null {
  return map[name] === inspection.map[name] ? becomes : becomesOf(name, map[name]);
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

/**
 * Returns the types that the user chose, or else the types that the server proposes. An empty type
 * means text.
 */
export function typesIn(query: Query, { columns }: Inspection): Types {
  if (query.get('types') === '')
    return Object.fromEntries(columns.map(({ name, cell_type: type }) => [name, type ?? '']));
  return Object.fromEntries(
    listOf(query, 'types')
      .map(readCellType)
      .filter((pair) => pair !== undefined),
  );
}

export function typesWith(types: Types, map: ColumnMap, inspection: Inspection): string[] {
  const typed = inspection.columns.filter((column) =>
    becomesWith(map, inspection, column)?.startsWith(within),
  );
  return typed.flatMap(({ name }) => (types[name] ? [`${name}=${types[name]}`] : []));
}
