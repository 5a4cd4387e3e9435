/** The SQL of `sluice.mappings`: how files are loaded, under a name. */
import { createHash } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import type { LoadEntity } from '../../domain/entity.ts';
import type { MappingRules, SavedMapping } from '../../domain/saved-mapping.ts';
import type { SourceFormat } from '../../domain/source.ts';
import type { Database } from '../database.ts';
import type { DB } from '../schema.ts';

/** The same for the same columns, in whatever order: a map names them. */
function digestOf(columnNames: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(columnNames.toSorted())).digest();
}

/** Under a name that has one, it takes its place. Null: that would be more than `most` in the environment. */
export async function saveMapping(
  db: Database,
  environmentId: number,
  name: string,
  { entity, map, source, format, columnNames }: MappingRules,
  most: number,
): Promise<SavedMapping | null> {
  const known = await db
    .selectFrom('mappings')
    .select(({ fn }) => [
      fn.countAll<number>().as('count'),
      sql<boolean>`coalesce(bool_or(mapping_name = ${name}), false)`.as('has'),
    ])
    .where('environment_id', '=', environmentId)
    .executeTakeFirstOrThrow();
  if (Number(known.count) >= most && !known.has) return null;
  const rules = {
    entity,
    column_map: JSON.stringify(map),
    source_options: JSON.stringify(source),
    format,
    column_names: columnNames === null ? null : JSON.stringify(columnNames),
    header_sha256: columnNames === null ? null : digestOf(columnNames),
  };
  const row = await db
    .insertInto('mappings')
    .values({ environment_id: environmentId, mapping_name: name, ...rules })
    .onConflict((conflict) =>
      conflict
        .columns(['environment_id', 'mapping_name'])
        .doUpdateSet({ ...rules, saved_at: sql<Date>`excluded.saved_at` }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  return toMapping(row);
}

export async function findMapping(
  db: Database,
  environmentId: number,
  name: string,
): Promise<SavedMapping | null> {
  const row = await db
    .selectFrom('mappings')
    .selectAll()
    .where('environment_id', '=', environmentId)
    .where('mapping_name', '=', name)
    .executeTakeFirst();
  return row === undefined ? null : toMapping(row);
}

/** Those of files with these columns, up to `limit`; first the one that was used last. */
export async function findMappingsOf(
  db: Database,
  environmentId: number,
  columnNames: readonly string[],
  limit: number,
): Promise<SavedMapping[]> {
  const rows = await db
    .selectFrom('mappings')
    .selectAll()
    .where('environment_id', '=', environmentId)
    .where('header_sha256', '=', digestOf(columnNames))
    .orderBy('last_used_at', (order) => order.desc().nullsLast())
    .orderBy('saved_at', 'desc')
    .orderBy('mapping_name')
    .limit(limit)
    .execute();
  return rows.map(toMapping);
}

/** Without what a page of them would be too long for. */
export interface ListedMapping extends Pick<SavedMapping, 'name' | 'entity' | 'savedAt' | 'lastUsedAt'> {
  /** Columns that it names. */
  readonly mapped: number;
  /** Columns of the files that it is offered for; null: of none. */
  readonly columns: number | null;
}

/** By name, up to `limit` of those after `after`. */
export async function listMappings(
  db: Database,
  environmentId: number,
  limit: number,
  after: string | null,
): Promise<ListedMapping[]> {
  const rows = await db
    .selectFrom('mappings')
    .select(['mapping_name', 'entity', 'saved_at', 'last_used_at'])
    .select([
      sql<number>`(select count(*)::int from jsonb_object_keys(column_map))`.as('mapped'),
      sql<number | null>`jsonb_array_length(column_names)`.as('columns'),
    ])
    .where('environment_id', '=', environmentId)
    .$if(after !== null, (found) => found.where('mapping_name', '>', after ?? ''))
    .orderBy('mapping_name')
    .limit(limit)
    .execute();
  return rows.map(({ mapping_name, entity, saved_at, last_used_at, mapped, columns }) => ({
    name: mapping_name,
    entity: entity as LoadEntity,
    mapped,
    columns,
    savedAt: saved_at,
    lastUsedAt: last_used_at,
  }));
}

/** Of the transaction that accepts a load with it. Harmless if it is gone by now. */
export async function markMappingUsed(db: Database, environmentId: number, name: string): Promise<void> {
  await db
    .updateTable('mappings')
    .set({ last_used_at: sql<Date>`now()` })
    .where('environment_id', '=', environmentId)
    .where('mapping_name', '=', name)
    .execute();
}

/** False: there was none. */
export async function removeMapping(db: Database, environmentId: number, name: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('mappings')
    .where('environment_id', '=', environmentId)
    .where('mapping_name', '=', name)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

function toMapping(row: Selectable<DB['mappings']>): SavedMapping {
  return {
    name: row.mapping_name,
    entity: row.entity as LoadEntity,
    map: row.column_map as SavedMapping['map'],
    source: row.source_options as SavedMapping['source'],
    format: row.format as SourceFormat | null,
    columnNames: row.column_names as SavedMapping['columnNames'],
    savedAt: row.saved_at,
    lastUsedAt: row.last_used_at,
  };
}
