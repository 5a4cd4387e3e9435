import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import {
  type Column,
  columnsOf,
  type Dataset,
  type FileDataset,
  metadata,
  orderOf,
  storedColumns,
} from '../../domain/export.ts';
import { instantText } from '../../postgres/columns.ts';
import type { Compilable } from '../../postgres/copy-out.ts';
import {
  excludedValues,
  exportsCompany,
  exportsEvent,
  exportsUser,
  type Filter,
  inEnvironment,
  isSince,
  noneOf,
  withoutProperties,
} from '../filter.ts';

// These queries select rows in key order. A query around them computes the exported columns, so
// that PostgreSQL sorts only short rows. The outer query repeats the ORDER BY, because only the
// order of the outermost query is guaranteed. The repetition causes no second sort.

function tableColumn({ name }: Column): RawBuilder<unknown> {
  return sql.ref(`${alias}.${name}`);
}

const alias = 'exported';
const conditions = { users: exportsUser, companies: exportsCompany, events: exportsEvent } as const;

export function pageOf(dataset: Dataset, filter: Filter): RawBuilder<unknown> {
  if (dataset !== 'events' && filter.request.includeRemoved) return pageWithRemoved(dataset, filter);
  const source = (dataset === 'events' ? filter.events : null) ?? sql.table(dataset);
  const names = storedColumns(dataset).map(tableColumn);
  return sql`(
    select ${sql.join(names)} from ${source} as ${sql.ref(alias)}
    where ${conditions[dataset](filter, alias)}
    order by ${sql.join(orderOf[dataset].map((name) => sql.ref(name)))}
  )`;
}

/**
 * Adds what has been removed since the cursor: a property as null, a profile as a row. The old
 * properties of a profile that was erased and created again are unknown, so its removal precedes
 * its new row.
 */
function pageWithRemoved(entity: Entity, filter: Filter): RawBuilder<unknown> {
  const { environmentId, request } = filter;
  const all = storedColumns(entity);
  const key = idColumn[entity];
  const names = all.map(({ name }) => name);
  const stored = all.map((each) => (each === metadata ? withLost : tableColumn(each)));
  const isToReplace = request.format === 'ndjson' ? sql`is_erased` : sql`false`;
  const removedValues = names.map((name) => (name === key ? sql`changed.key` : sql`null`));
  const conditionsOfLog = [
    inEnvironment('changes', environmentId),
    sql`entity = ${sql.lit(entity)}`,
    ...(request.since === null ? [sql`false`] : isSince('changes', request)),
    ...(entity === 'users' ? noneOf('changes.key', excludedValues(request.exclusions, 'user')) : []),
  ];
  return sql`(
    with changed as materialized (
      select distinct on (key)
        key,
        before,
        bool_or(removed) over keyed as is_removed,
        bool_or(before is null) over keyed as is_erased
      from changes
      where ${sql.join(conditionsOfLog, sql` and `)}
      window keyed as (partition by key)
      order by key, seq
    )
    select ${sql.join(stored)}, null::boolean as removed
    from ${sql.table(entity)} as ${sql.ref(alias)}
    left join changed on changed.key = ${sql.ref(`${alias}.${key}`)}
    where ${conditions[entity](filter, alias)}
    union all
    select ${sql.join(removedValues)}, true
    from changed
    where is_removed
      and not exists (
        select 1
        from ${sql.table(entity)} as here
        where ${inEnvironment('here', environmentId)}
          and ${sql.ref(`here.${key}`)} = changed.key
          and not (${sql.join([isToReplace, ...isSince('here', request)], sql` and `)})
      )
    ${entity === 'companies' && request.datasets.includes('users') ? namedCompanies(filter) : sql``}
    order by ${sql.ref(key)}, removed
  )`;
}

/**
 * Removed companies to which exported users still refer. The row of such a user would recreate the
 * company in a copy, so the removal is exported again.
 */
const namedCompanies = ({ environmentId, request }: Filter): RawBuilder<unknown> => sql`
  union all
  select distinct member.company_id, null::jsonb, null::timestamptz, null::timestamptz, true
  from users as member
  where ${sql.join([inEnvironment('member', environmentId), ...isSince('member', request)], sql` and `)}
    and member.company_id is not null
    and not exists (select 1 from changed where changed.key = member.company_id and is_removed)
    and not exists (
      select 1
      from companies as here
      where ${inEnvironment('here', environmentId)} and here.company_id = member.company_id
    )`;

const withLost = sql`coalesce(
  (
    select jsonb_object_agg(name, 'null'::jsonb)
    from jsonb_object_keys(changed.before) name
    where not ${sql.ref(`${alias}.metadata`)} ? name
  ) || ${sql.ref(`${alias}.metadata`)},
  ${sql.ref(`${alias}.metadata`)}
) as metadata`;

/**
 * Returns a query for the profiles of a stream, each at the time of its last change. Returns `null`
 * if only events are requested.
 */
export function profilesByTime(filter: Filter): RawBuilder<unknown> | null {
  const { datasets } = filter.request;
  const absent = sql`null::text as event_id, null::text as event_name, null::text as source`;
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

export function selectFromPage(
  page: RawBuilder<unknown>,
  order: readonly string[],
  columns: readonly RawBuilder<unknown>[],
): Compilable {
  const keys = order.map((name) => sql.ref(`page.${name}`));
  return rawSelect(sql`select ${sql.join(columns)} from ${page} as page order by ${sql.join(keys)}`);
}

export function rawSelect(select: RawBuilder<unknown>): Compilable {
  return { toOperationNode: () => select.toOperationNode() as never };
}

export function pageMetadata({ request }: Filter): RawBuilder<unknown> {
  return withoutProperties(sql.ref('page.metadata'), excludedValues(request.exclusions, 'property'));
}

/** The text has a constant length (see `profileTail`). */
export function pageTime(column: string): RawBuilder<string> {
  return instantText(sql.ref(`page.${column}`));
}

// COPY sends a line per row. The values are separated by U+0002, which no value contains. NDJSON
// and Parquet are written from these values, because PostgreSQL would need a third more time to
// write JSON.

export function selectValues(dataset: Dataset, filter: Filter): Compilable {
  return selectValuesFrom(pageOf(dataset, filter), dataset, dataset, filter);
}

/** The rows have the order of `ordered` and the columns of `dataset`. */
export function selectValuesFrom(
  page: RawBuilder<unknown>,
  ordered: FileDataset,
  dataset: FileDataset,
  filter: Filter,
): Compilable {
  const columns = columnsOf(dataset, filter.request);
  const order = columns.some(({ name }) => name === 'removed')
    ? [...orderOf[ordered], 'removed']
    : orderOf[ordered];
  return selectFromPage(
    page,
    order,
    columns.map((each) => selected(each, dataset, filter)),
  );
}

function selected(
  { name, kind, isOptional }: Column,
  dataset: FileDataset,
  filter: Filter,
): RawBuilder<unknown> {
  const stored = sql.ref(`page.${name}`);
  if (name === 'removed') return sql`case when page.removed then 'true' end`;
  const { includeRemoved, format } = filter.request;
  // A user without a company has null. A removed profile has no company_id at all.
  if (includeRemoved && format === 'ndjson' && dataset === 'users' && name === 'company_id')
    return sql`coalesce(to_json(${stored})::text, case when page.removed is null then 'null' end)`;
  if (kind === 'json' && isOptional)
    return sql`case when page.removed is null then ${pageMetadata(filter)}::text end`;
  if (kind === 'json') return sql`${pageMetadata(filter)}::text`;
  if (kind === 'text') return sql`to_json(${stored})::text`;
  return sql`(extract(epoch from ${stored}) * 1000000)::bigint`;
}

export interface DatasetSelect {
  readonly header: Buffer;
  /**
   * Returns the query. `filter` must equal the filter that `selectDataset` got, except for its
   * `events`.
   */
  selectFrom(filter: Filter): Compilable;
}
