import { expressionBuilder, type RawBuilder, type Selectable, sql } from 'kysely';
import type { Dataset, FileDataset } from '../../domain/export.ts';
import type { DB } from '../../postgres/schema.ts';
import {
  exportsCompany,
  exportsEvent,
  exportsUser,
  type Filter,
  leftOut,
  withoutProperties,
} from '../filter.ts';
import type { Compilable } from './copy-out.ts';

const eb = expressionBuilder<DB>();
const alias = 'exported';

/*
 * The rows of a dataset as they are stored, in key order. What is made of them is written around it (`from (…) page`):
 * PostgreSQL then sorts, if it must, what is short and not what has been made of it. The select around it asks for the same order,
 * which costs nothing (it has it), because only the order of the outermost select is promised.
 */

/** By what the rows of a dataset are ordered: columns of its page. */
export const orderOf = {
  users: ['user_id'],
  companies: ['company_id'],
  events: ['inserted_at', 'event_id', 'user_id'],
  stream: ['inserted_at', 'event_type', 'user_id', 'company_id'],
} as const satisfies Record<Dataset | 'stream', readonly string[]>;

export function pageOf(dataset: Dataset, filter: Filter) {
  switch (dataset) {
    case 'users':
      return eb
        .selectFrom(`users as ${alias}`)
        .select(['user_id', 'company_id', 'metadata', 'first_seen_at', 'last_seen_at'])
        .where(exportsUser(filter, alias))
        .orderBy('user_id');
    case 'companies':
      return eb
        .selectFrom(`companies as ${alias}`)
        .select(['company_id', 'metadata', 'first_seen_at', 'last_seen_at'])
        .where(exportsCompany(filter, alias))
        .orderBy('company_id');
    case 'events':
      return eb
        .selectFrom(sql<Selectable<DB['events']>>`${filter.events ?? sql.table('events')}`.as(alias))
        .select(['event_id', 'event_type', 'event_name', 'user_id', 'company_id', 'source', 'inserted_at'])
        .select('metadata')
        .where(exportsEvent(filter, alias))
        .orderBy('inserted_at')
        .orderBy('event_id')
        .orderBy('user_id');
    default:
      return dataset satisfies never;
  }
}

/**
 * The profiles of a request in order of time, as rows of a stream: a row stands at the moment at which it last changed, which is
 * what the range is about. Null where it is about events only.
 */
export function profilesByTime(filter: Filter): RawBuilder<unknown> | null {
  const { datasets } = filter.request;
  const absent = sql`null::text as event_name, null::text as source`;
  const selects = [
    ...(datasets.includes('users')
      ? [
          sql`select 'identify_user'::text as event_type, user_id, company_id, updated_at as inserted_at, ${absent}, metadata
            from users as ${sql.ref(alias)} where ${exportsUser(filter, alias)}`,
        ]
      : []),
    ...(datasets.includes('companies')
      ? [
          sql`select 'identify_company'::text as event_type, null::text as user_id, company_id, updated_at as inserted_at, ${absent}, metadata
            from companies as ${sql.ref(alias)} where ${exportsCompany(filter, alias)}`,
        ]
      : []),
  ];
  if (selects.length === 0) return null;
  return sql`(${sql.join(selects, sql` union all `)} order by ${sql.raw(orderOf.stream.join(', '))})`;
}

/** A select of `columns`, each an expression over the columns of the page, in its order. */
export function selectFromPage(
  page: ReturnType<typeof pageOf> | RawBuilder<unknown>,
  order: (typeof orderOf)[keyof typeof orderOf],
  columns: readonly RawBuilder<unknown>[],
): Compilable {
  const keys = order.map((name) => sql.ref(`page.${name}`));
  return rawSelect(sql`select ${sql.join(columns)} from ${page} as page order by ${sql.join(keys)}`);
}

export function rawSelect(select: RawBuilder<unknown>): Compilable {
  return { toOperationNode: () => select.toOperationNode() as never };
}

/** The metadata of a row of the page, without the properties that are to be left out. */
export function pageMetadata({ request }: Filter): RawBuilder<unknown> {
  return withoutProperties(sql.ref('page.metadata'), leftOut(request.exclusions, 'property'));
}

/** In UTC, always of one length (`profileTail`). */
export function pageTime(column: string): RawBuilder<string> {
  return sql`to_char(${sql.ref(`page.${column}`)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/*
 * Rows as their values: COPY sends a line for each row, with U+0002 between its values, which none of them can hold. NDJSON is
 * made of them as well as what has columns of a type, Parquet and Avro: PostgreSQL takes a quarter longer to write JSON itself.
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
