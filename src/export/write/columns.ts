import { type RawBuilder, sql } from 'kysely';
import type { FileDataset } from '../../domain/export.ts';
import type { Filter } from '../filter.ts';
import type { Compilable } from './copy-out.ts';
import { orderOf, pageMetadata, pageOf, selectFromPage } from './page.ts';
import type { RowBlock } from './row-blocks.ts';

/*
 * Rows as their values. What has columns of a type, Parquet and Avro, is made of them; so is the stream, whose rows are
 * put in order here. COPY sends a line for each row, with U+0002 between its values, which none of them can hold.
 */

/** `json`: text as it is. `text`: comes as JSON text, in which nothing has to be escaped any more. */
export interface Column {
  readonly name: string;
  readonly kind: 'text' | 'json' | 'instant';
  readonly isOptional: boolean;
}

/**
 * Properties are not columns of their own: a property may hold a number here and a text there, and a column is of one
 * type. All of them are in `metadata`, as JSON.
 */
const columns: Readonly<Record<FileDataset, readonly Column[]>> = {
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
  stream: [
    ...[text('event_type'), optional('user_id'), optional('company_id'), instant('inserted_at')],
    ...[optional('event_name'), optional('source'), metadata()],
  ],
};

export function columnsOf(dataset: FileDataset): readonly Column[] {
  return columns[dataset];
}

export function selectValues(dataset: Exclude<FileDataset, 'stream'>, filter: Filter): Compilable {
  return selectValuesFrom(pageOf(dataset, filter), dataset, dataset, filter);
}

/** `page`: a select in the order of `ordered`, in which each of the columns of `dataset` is named as here. */
export function selectValuesFrom(
  page: ReturnType<typeof pageOf> | RawBuilder<unknown>,
  ordered: keyof typeof orderOf,
  dataset: FileDataset,
  filter: Filter,
): Compilable {
  const values = columns[dataset].map((column) => selected(column, filter));
  return selectFromPage(page, orderOf[ordered], values);
}

function selected({ name, kind }: Column, filter: Filter): RawBuilder<unknown> {
  const stored = sql.ref(`page.${name}`);
  if (kind === 'json') return sql`${pageMetadata(filter)}::text`;
  if (kind === 'text') return sql`to_json(${stored})::text`;
  return sql`(extract(epoch from ${stored}) * 1000000)::bigint`;
}

/** Between the values of a row. */
export const separator = '\u0002';

/** The values of a line without its end, as COPY wrote them. */
function splitValues(line: string): string[] {
  return line.split(separator);
}

/** Rows made of the values of others, one of one. */
export function rewriteRows(
  { bytes, ends }: RowBlock,
  rowOf: (values: readonly string[]) => string,
): RowBlock {
  const rowEnds: number[] = [];
  const rows: Buffer[] = [];
  let start = 0;
  let length = 0;
  for (const end of ends) {
    const row = Buffer.from(rowOf(splitValues(bytes.toString('utf8', start, end - 1))));
    rows.push(row);
    length += row.length;
    rowEnds.push(length);
    start = end;
  }
  return { bytes: Buffer.concat(rows, length), ends: rowEnds };
}

function text(name: string): Column {
  return { name, kind: 'text', isOptional: false };
}

function optional(name: string): Column {
  return { name, kind: 'text', isOptional: true };
}

function metadata(): Column {
  return { name: 'metadata', kind: 'json', isOptional: false };
}

function instant(name: string): Column {
  return { name, kind: 'instant', isOptional: false };
}
