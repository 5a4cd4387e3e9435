import { type RawBuilder, sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import type { Dataset } from '../../domain/export.ts';
import type { Database } from '../../postgres/database.ts';
import type { Filter } from '../filter/filter.ts';
import { withoutProperties } from '../filter/metadata.ts';
import { text } from '../filter/parameters.ts';
import { leftOut } from '../filter/wildcard.ts';
import type { Compilable } from './copy-select.ts';
import { heading, listPropertyColumns } from './csv-columns.ts';
import { csvHeader, defused } from './csv-text.ts';
import { pageMetadata, pageOf, pageTime, rawSelect } from './page.ts';

export interface CsvPlan {
  readonly select: Compilable;
  /** The header line. */
  readonly header: Buffer;
}

interface Column {
  readonly heading: string;
  /** Text over the columns of the page, never null: a null would not be written as an empty cell. */
  readonly value: RawBuilder<unknown>;
  /** May begin with what a spreadsheet takes for a formula. */
  readonly isFree: boolean;
}

export async function planCsv(db: Database, dataset: Dataset, filter: Filter): Promise<CsvPlan> {
  const columns = dataset === 'events' ? eventColumns(filter) : await profileColumns(db, dataset, filter);
  const { escapeFormulas } = filter.request;
  return {
    select: escapeFormulas ? selectEscaped(dataset, filter, columns) : selectPlain(dataset, filter, columns),
    header: csvHeader(
      columns.map(({ heading }) => heading),
      escapeFormulas,
    ),
  };
}

/** Events' properties are listed nowhere: they share one column. */
function eventColumns(filter: Filter): Column[] {
  return [
    ...['event_id', 'event_type', 'event_name', 'user_id', 'company_id', 'source'].map(stored),
    { heading: 'inserted_at', value: pageTime('inserted_at'), isFree: false },
    { heading: 'metadata', value: objectOrEmpty(pageMetadata(filter)), isFree: false },
  ];
}

async function profileColumns(db: Database, entity: Entity, filter: Filter): Promise<Column[]> {
  const { environmentId, request } = filter;
  const properties = await listPropertyColumns(db, environmentId, entity, request.exclusions);
  const excluded = leftOut(request.exclusions, 'property');
  const others = withoutProperties(sql.ref('page.metadata'), {
    names: [...excluded.names, ...properties.names],
    patterns: excluded.patterns,
  });
  return [
    ...(entity === 'users' ? ['user_id', 'company_id'] : ['company_id']).map(stored),
    ...properties.names.map((name) => ({
      heading: heading(name),
      value: sql`coalesce(page.metadata ->> ${text(name)}, '')`,
      isFree: true,
    })),
    ...(properties.hasOthers ? [{ heading: 'metadata', value: objectOrEmpty(others), isFree: false }] : []),
    ...['first_seen_at', 'last_seen_at'].map((name) => ({
      heading: name,
      value: pageTime(name),
      isFree: false,
    })),
  ];
}

function stored(name: string): Column {
  return { heading: name, value: sql`coalesce(${sql.ref(`page.${name}`)}, '')`, isFree: true };
}

function objectOrEmpty(metadata: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`coalesce(nullif(${metadata}, '{}')::text, '')`;
}

function selectPlain(dataset: Dataset, filter: Filter, columns: readonly Column[]): Compilable {
  return rawSelect(sql`select ${sql.join(columns.map(({ value }) => value))}
    from ${pageOf(dataset, filter)} as page`);
}

/** The cells are named first, so that each is made once although it is looked at twice; `offset 0` holds that up. */
function selectEscaped(dataset: Dataset, filter: Filter, columns: readonly Column[]): Compilable {
  const cells = columns.map(({ value }, index) => sql`${value} as ${sql.ref(cellName(index))}`);
  const escaped = columns.map(({ isFree }, index) => {
    const cell = sql.ref<string>(`cells.${cellName(index)}`);
    return isFree ? defused(cell) : cell;
  });
  return rawSelect(sql`select ${sql.join(escaped)}
    from (select ${sql.join(cells)} from ${pageOf(dataset, filter)} as page offset 0) as cells`);
}

const cellName = (index: number): string => `c${index}`;
