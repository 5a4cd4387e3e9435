/* An upload as the server inspects it. Everything that was chosen stands in the address. */

import type { Inspection } from '../../../../api/inspection.ts';
import type { Query } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { type Loaded, useData } from '../../lib/use-data.ts';

/** Options that stand in the address under the API's names. The second list has no controls. */
const texts = ['encoding', 'delimiter', 'quote', 'header', 'sheet', 'entity', 'preset', 'mapping'] as const;
const otherTexts = [
  ...['format', 'escape', 'comment', 'ragged', 'stray_quotes', 'apostrophes', 'records'],
  ...['header_rows', 'skip_rows', 'skip_footer', 'strict_header'],
];
/** Options that are written as JSON. */
const written = ['map', 'null'] as const;

/** The change of the address that forgets everything that was chosen for a file. */
export const noOptions: Readonly<Record<string, undefined>> = Object.fromEntries(
  [...texts, ...otherTexts, ...written, 'plan', 'job'].map((name) => [name, undefined]),
);

/** Returns the options of the API as they stand in the address. */
export function addressOf(options: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]),
  );
}

/** Returns the options of the file that are given and have no control. */
export function otherOptions(query: Query): readonly (readonly [name: string, value: string])[] {
  return [...otherTexts, 'null']
    .map((name) => [name, query.get(name)] as const)
    .filter(([, value]) => value !== '');
}

/** Returns the options as `POST /v1/imports` and its inspection take them. */
export function optionsOf(query: Query): Record<string, unknown> {
  const [map, nulls] = [mapOf(query), jsonOf(query, 'null')];
  const chosen = [...texts, ...otherTexts]
    .map((name) => [name, query.get(name)])
    .filter(([, value]) => value !== '');
  return {
    upload_id: query.get('upload'),
    ...Object.fromEntries(chosen),
    ...(map === null ? {} : { map }),
    ...(Array.isArray(nulls) ? { null: nulls } : {}),
  };
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

/** Inspects the file with the options in the address. */
export function useInspection(query: Query): Loaded<Inspection> {
  const body = optionsOf(query);
  const key = query.get('upload') === '' ? null : JSON.stringify(body);
  return useData(key, (signal) => api<Inspection>('/v1/imports/inspect', { method: 'POST', body, signal }));
}
