import { type RawBuilder, sql } from 'kysely';
import { apostrophe, defuse, formulaStarts, numeral } from '../../base/formula.ts';
import { instantOfMicros } from '../../base/instant.ts';
import { MAX_LISTED_NAMES } from '../../base/limits.ts';
import { yielding } from '../../base/yielding.ts';
import type { Entity } from '../../domain/entity.ts';
import {
  columnsOf,
  type Dataset,
  type Exclusion,
  type ExportRequest,
  type FileDataset,
  orderOf,
} from '../../domain/export.ts';
import { isRejectColumn } from '../../domain/reject.ts';
import { exportHeader } from '../../formats/csv-text.ts';
import { listProperties } from '../../lookups/property-store.ts';
import { text } from '../../lookups/segments/compile-test.ts';
import { type Compilable, copyNull } from '../../postgres/copy-out.ts';
import { type Database, hasRows } from '../../postgres/database.ts';
import { excludedValues, type Filter, nameTest, withoutProperties } from '../filter.ts';
import { type DatasetSelect, pageMetadata, pageOf, pageTime, rawSelect, selectFromPage } from './page.ts';
import { Gathered, type RowBlock, separator } from './rows.ts';

interface Column {
  readonly heading: string;
  /** Always a string, because null would not become an empty cell. */
  readonly value: RawBuilder<unknown>;
  /** True if the value may begin like a spreadsheet formula. */
  readonly isFreeText: boolean;
}

export async function planCsv(db: Database, dataset: Dataset, filter: Filter): Promise<DatasetSelect> {
  const columns = dataset === 'events' ? eventColumns(filter) : await profileColumns(db, dataset, filter);
  const { escapeFormulas } = filter.request;
  const names = columns.map((column) => column.heading);
  const values = columns.map((column) => column.value);
  return {
    selectFrom: (from) =>
      escapeFormulas
        ? selectEscaped(dataset, from, columns)
        : selectFromPage(pageOf(dataset, from), orderOf[dataset], values),
    header: Buffer.from(`${exportHeader(names, escapeFormulas)}\n`),
  };
}

/** The column `metadata` contains all properties, so the columns are fixed. */
function eventColumns(filter: Filter): Column[] {
  return [
    ...['event_id', 'event_type', 'event_name', 'user_id', 'company_id', 'source'].map(stored),
    { heading: 'inserted_at', value: pageTime('inserted_at'), isFreeText: false },
    { heading: 'metadata', value: objectOrEmpty(pageMetadata(filter)), isFreeText: false },
  ];
}

async function profileColumns(db: Database, entity: Entity, filter: Filter): Promise<Column[]> {
  const { environmentId, request } = filter;
  const properties = await listPropertyColumns(db, environmentId, entity, request.exclusions);
  const excluded = excludedValues(request.exclusions, 'property');
  const others = withoutProperties(sql.ref('page.metadata'), {
    names: [...excluded.names, ...properties.names],
    patterns: excluded.patterns,
  });
  return [
    ...(entity === 'users' ? ['user_id', 'company_id'] : ['company_id']).map(stored),
    ...properties.names.map((name) => ({
      heading: heading(name),
      value: sql`coalesce(page.metadata ->> ${text(name)}, '')`,
      isFreeText: true,
    })),
    ...(properties.hasOthers
      ? [{ heading: 'metadata', value: objectOrEmpty(others), isFreeText: false }]
      : []),
    ...['first_seen_at', 'last_seen_at'].map((name) => ({
      heading: name,
      value: pageTime(name),
      isFreeText: false,
    })),
  ];
}

function stored(name: string): Column {
  return { heading: name, value: sql`coalesce(${sql.ref(`page.${name}`)}, '')`, isFreeText: true };
}

function objectOrEmpty(metadata: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`coalesce(nullif(${metadata}, '{}')::text, '')`;
}

/**
 * Puts an apostrophe before cells that a spreadsheet would treat as formulas. `offset 0` prevents
 * PostgreSQL from computing a cell for each use.
 */
function selectEscaped(dataset: Dataset, filter: Filter, columns: readonly Column[]): Compilable {
  const cells = columns.map(({ value }, index) => sql`${value} as ${sql.ref(cellName(index))}`);
  const escaped = columns.map(({ isFreeText }, index) => {
    const cell = sql.ref<string>(`cells.${cellName(index)}`);
    return isFreeText ? defused(cell) : cell;
  });
  const order = orderOf[dataset];
  const keys = order.map((name, index) => sql`${sql.ref(`page.${name}`)} as ${sql.ref(keyName(index))}`);
  return rawSelect(sql`select ${sql.join(escaped)}
    from (
      select ${sql.join([...cells, ...keys])}
      from ${pageOf(dataset, filter)} as page
      order by ${sql.join(order.map((name) => sql.ref(`page.${name}`)))}
      offset 0
    ) as cells
    order by ${sql.join(order.map((_, index) => sql.ref(`cells.${keyName(index)}`)))}`);
}

const cellName = (index: number): string => `c${index}`;
const keyName = (index: number): string => `k${index}`;

/** Maximum number of columns of a CSV file. PostgreSQL limits the columns of a result to 1664. */
const maxColumns = 1500;
/** Maximum size of a header. A load accepts a header of at most 1 MiB. */
const maxHeaderBytes = 512 * 1024;

/**
 * Returns the properties that are exported as columns. The properties in `names`, sorted by bytes,
 * have their own columns. `hasOthers` is true if further properties share a column.
 */
async function listPropertyColumns(
  db: Database,
  environmentId: number,
  entity: Entity,
  exclusions: readonly Exclusion[],
): Promise<{ readonly names: readonly string[]; readonly hasOthers: boolean }> {
  const properties = await listProperties(db, environmentId, entity);
  const isExcluded = nameTest(excludedValues(exclusions, 'property'));
  const automatic = properties.filter((row) => row.is_auto_property).map(({ key }) => key);
  const hasNamesakes = await anyHas(db, environmentId, entity, automatic);
  const selection: string[] = [];
  for await (const { key, is_auto_property: isAutomatic } of yielding(properties)) {
    if ((hasNamesakes || !isAutomatic) && !isExcluded(key)) selection.push(key);
  }
  const names = fitting(selection);
  return { names, hasOthers: properties.length >= MAX_LISTED_NAMES || names.length < selection.length };
}

/**
 * If a property in metadata has the name of an automatic property, only the automatic property has
 * a column.
 */
function anyHas(
  db: Database,
  environmentId: number,
  entity: Entity,
  names: readonly string[],
): Promise<boolean> {
  return hasRows(db)`
    select 1
    from ${sql.table(entity)}
    where environment_id = ${environmentId} and metadata ?| ${names}::text[]
    limit 1`;
}

function fitting(names: readonly string[]): string[] {
  const columns: string[] = [];
  let bytes = 0;
  for (const name of names) {
    bytes += 2 * Buffer.byteLength(heading(name));
    if (columns.length === maxColumns || bytes > maxHeaderBytes) break;
    columns.push(name);
  }
  return columns;
}

const fixed = new Set(['user_id', 'company_id', 'metadata', 'first_seen_at', 'last_seen_at']);

/** Returns the heading of a property. A load reads the heading `metadata.x` as the property x. */
export function heading(name: string): string {
  const isTaken = fixed.has(name) || name.startsWith('metadata.') || isRejectColumn(name);
  return isTaken ? `metadata.${name}` : name;
}

const codes = sql.join(formulaStarts.map((code) => sql.lit(code)));

/**
 * `defuse` in SQL. Testing the code of the first character is much faster than a regular
 * expression.
 */
function defused(cell: RawBuilder<string>): RawBuilder<string> {
  const behind = sql`ltrim(${cell}, ${sql.lit(apostrophe)})`;
  return sql`case
    when ascii(${cell}) in (${codes}) and ${cell} !~ ${sql.lit(numeral)} then ${sql.lit(apostrophe)} || ${cell}
    when ascii(${cell}) = ${sql.lit(apostrophe.charCodeAt(0))}
      and ascii(${behind}) in (${codes})
      and ${behind} !~ ${sql.lit(numeral)}
    then ${sql.lit(apostrophe)} || ${cell}
    else ${cell}
  end`;
}

export function streamCsvHeader(request: ExportRequest): Buffer {
  const names = columnsOf('stream', request).map(({ name }) => name);
  return Buffer.from(`${exportHeader(names, request.escapeFormulas)}\n`);
}

/** Writes CSV as PostgreSQL does. Metadata is a single cell of JSON. */
export function csvWriter(dataset: FileDataset, request: ExportRequest): (block: RowBlock) => RowBlock {
  const columns = columnsOf(dataset, request);
  const cellOf = request.escapeFormulas ? (cell: string) => quoteCell(defuse(cell)) : quoteCell;
  const rowOf = (row: string): string => {
    const values = row.split(separator);
    const cells = columns.map((column, index) => {
      const value = values[index] ?? '';
      if (value === '' || (column.kind === 'json' && value === '{}')) return '';
      if (column.kind === 'instant') return instantOfMicros(BigInt(value));
      return column.kind === 'json' ? quoteCell(value) : cellOf(JSON.parse(value) as string);
    });
    return `${cells.join(',')}\n`;
  };
  return ({ bytes, ends }) => {
    const to = new Gathered();
    let start = 0;
    for (const end of ends) {
      to.addRow(Buffer.from(rowOf(bytes.toString('utf8', start, end - 1))));
      start = end;
    }
    return to.block();
  };
}

function quoteCell(cell: string): string {
  return /[",\r\n]/.test(cell) || cell === copyNull ? `"${cell.replaceAll('"', '""')}"` : cell;
}
