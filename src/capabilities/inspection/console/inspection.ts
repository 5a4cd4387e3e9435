/* An upload as the server inspects it. Everything that was chosen stands in the address. */

import { parts } from 'sluice:capabilities';
import type { Query } from '../../../console/client/lib/address.ts';
import { post } from '../../../console/client/lib/api.ts';
import { type Loaded, useData } from '../../../console/client/lib/data.ts';
import type { Inspection } from '../api.ts';

/** Options that stand in the address under the API's names. The second list has no controls. */
/** The options that other capabilities add. */
export const givenOptions = parts.flatMap(({ loadOption = [] }) => loadOption);

const texts: readonly string[] = [
  'encoding',
  'delimiter',
  'quote',
  'header',
  'sheet',
  'entity',
  'preset',
  'company_from',
  'ragged',
  'existing',
  ...givenOptions.flatMap(({ fields }) => fields),
];
const otherTexts = [
  ...['format', 'escape', 'comment', 'apostrophes', 'records'],
  ...['header_rows', 'skip_rows', 'skip_footer'],
  ...givenOptions.flatMap(({ otherFields }) => otherFields),
];

const lists = ['null', 'types'] as const;

/** The change of the address that forgets everything that was chosen for a file. */
export const noOptions: Readonly<Record<string, undefined>> = Object.fromEntries(
  [...texts, ...otherTexts, ...lists, 'map'].map((name) => [name, undefined]),
);

/** Returns the options of the file that are given and have no control. */
export function otherOptions(query: Query): readonly (readonly [name: string, value: string])[] {
  return Object.entries(query.given(otherTexts));
}

/** Tells whether anything about the reading of the file was chosen. */
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

/** Returns the texts that count as empty cells, or the types of columns as the API takes them. */
export function listOf(query: Query, name: (typeof lists)[number]): readonly string[] {
  const items = jsonOf(query, name);
  return Array.isArray(items) ? (items as string[]) : [];
}

/** Returns the chosen map, or `null`. An empty map means that nothing that is proposed is wanted. */
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

/** An inspected upload, and the address with what was chosen for it. */
export interface Inspected {
  readonly query: Query;
  readonly found: Inspection;
}

/** Tells whether the records are read as another product's, which leaves nothing to map. */
export function isPreset(query: Query, { preset }: Inspection): boolean {
  return preset !== null && mapOf(query) === null;
}

/** Inspects the file with the options in the address. */
export function useInspection(query: Query): Loaded<Inspection> {
  const body = optionsOf(query);
  const key = query.get('upload') === '' ? null : JSON.stringify(body);
  return useData(key, (signal) => post<Inspection>('/v1/imports/inspect', body, signal));
}
