/* What the server says of an upload, and how it is asked: everything that was chosen stands in the address. */
import { api } from '../../lib/api.ts';
import { type Loaded, useData } from '../../lib/use-data.ts';
import type { Query } from '../../lib/use-query.ts';

export interface InspectedColumn {
  readonly name: string;
  /** `user_id`, `metadata.plan`, …; null: it is passed over. */
  readonly becomes: string | null;
  readonly reason: string;
  readonly type: string | null;
  readonly filled: number;
  readonly distinct: number;
  readonly samples: readonly unknown[];
  readonly frequent: readonly { readonly value: unknown; readonly count: number }[];
}

export interface CsvReadAs {
  readonly delimiter: string;
  readonly quote: string;
  readonly header_line: number | null;
  readonly columns: readonly string[];
}

export interface RefusedSample {
  readonly row: number;
  readonly line: number;
  readonly column: string | null;
  readonly error_code: string;
  readonly message: string;
  readonly raw: string;
}

export interface Inspection {
  readonly upload_id: string;
  readonly filename: string | null;
  readonly file_size: number;
  readonly sha256: string;
  readonly read_as: {
    readonly format: string;
    /** Null for what is no text. */
    readonly encoding: string | null;
    readonly csv: CsvReadAs | null;
    readonly sheet: string | null;
    readonly member: string | null;
    readonly notes: readonly string[];
  } | null;
  readonly entity: 'users' | 'companies' | 'auto' | null;
  readonly records: number;
  readonly whole_file: boolean;
  readonly head: string;
  readonly columns: readonly InspectedColumn[];
  readonly column_names: readonly string[] | null;
  readonly map: Readonly<Record<string, string>>;
  /** The one that was given, or is proposed for events of another product. */
  readonly preset: string | null;
  readonly mapping: string | null;
  readonly saved_mappings: readonly string[];
  readonly problem: {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  } | null;
  readonly rejects: {
    readonly count: number;
    readonly by_code: Readonly<Record<string, number>>;
    readonly items: readonly RefusedSample[];
  };
  readonly rows: readonly StoredRow[];
}

export interface StoredRow extends Readonly<Record<string, unknown>> {
  readonly row: number;
  readonly event_type: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Options that stand in the address under the names that the API has for them. Those of the second line have no control. */
const texts = ['encoding', 'delimiter', 'quote', 'header', 'sheet', 'entity', 'preset', 'mapping'] as const;
const otherTexts = [
  ...['format', 'escape', 'comment', 'ragged', 'stray_quotes', 'apostrophes', 'records'],
  ...['header_rows', 'skip_rows', 'skip_footer', 'strict_header'],
] as const;
/** Those that are written as JSON. */
const written = ['map', 'null'] as const;

/** Everything that was said of a file and its columns, to be taken out of the address when another one is meant. */
export const noOptions: Readonly<Record<string, undefined>> = Object.fromEntries(
  [...texts, ...otherTexts, ...written, 'plan', 'job'].map((name) => [name, undefined]),
);

/** The address of options as the API has them. */
export function addressOf(options: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]),
  );
}

/** Said of how the file is written, and changed nowhere on the page. */
export function otherOptions(query: Query): readonly (readonly [name: string, value: string])[] {
  return [...otherTexts, 'null']
    .map((name) => [name, query.get(name)] as const)
    .filter(([, value]) => value !== '');
}

/** As `POST /v1/imports` and its inspection take them. */
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

/** The map that was chosen, which may be empty: nothing that is proposed is wanted. Null: none was. */
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

/** What the file holds when it is read as the address says. */
export function useInspection(query: Query): Loaded<Inspection> {
  const body = optionsOf(query);
  const key = query.get('upload') === '' ? null : JSON.stringify(body);
  return useData(key, (signal) => api<Inspection>('/v1/imports/inspect', { method: 'POST', body, signal }));
}
