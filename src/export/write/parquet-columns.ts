import { type RawBuilder, sql } from 'kysely';
import type { Dataset } from '../../domain/export.ts';
import type { Filter } from '../filter/filter.ts';
import type { Compilable } from './copy-select.ts';
import { pageMetadata, pageOf, selectFromPage } from './page.ts';

/** `json`: text as it is. `text`: comes as JSON text, in which nothing has to be escaped any more. */
export interface ParquetColumn {
  readonly name: string;
  readonly kind: 'text' | 'json' | 'instant';
  readonly isOptional: boolean;
}

/**
 * Properties are not columns of their own: a property may hold a number here and a text there, and a Parquet column is of
 * one type. All of them are in `metadata`, as JSON.
 */
const columns: Readonly<Record<Dataset, readonly ParquetColumn[]>> = {
  users: [
    text('user_id'),
    optional('company_id'),
    metadata(),
    instant('first_seen_at'),
    instant('last_seen_at'),
  ],
  companies: [text('company_id'), metadata(), instant('first_seen_at'), instant('last_seen_at')],
  events: [
    ...['event_id', 'event_type', 'event_name', 'user_id'].map(text),
    ...[optional('company_id'), text('source'), instant('inserted_at'), metadata()],
  ],
};

export function parquetColumns(dataset: Dataset): readonly ParquetColumn[] {
  return columns[dataset];
}

/** One line per row, the values with U+0002 between them, which none of them can hold. */
export function selectForParquet(dataset: Dataset, filter: Filter): Compilable {
  const values = columns[dataset].map((column) => selected(column, filter));
  return selectFromPage(pageOf(dataset, filter), values);
}

function selected({ name, kind }: ParquetColumn, filter: Filter): RawBuilder<unknown> {
  const stored = sql.ref(`page.${name}`);
  if (kind === 'json') return sql`${pageMetadata(filter)}::text`;
  if (kind === 'text') return sql`to_json(${stored})::text`;
  return sql`(extract(epoch from ${stored}) * 1000000)::bigint`;
}

function text(name: string): ParquetColumn {
  return { name, kind: 'text', isOptional: false };
}

function optional(name: string): ParquetColumn {
  return { name, kind: 'text', isOptional: true };
}

function metadata(): ParquetColumn {
  return { name: 'metadata', kind: 'json', isOptional: false };
}

function instant(name: string): ParquetColumn {
  return { name, kind: 'instant', isOptional: false };
}
