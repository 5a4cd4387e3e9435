/** Saved mappings: how files are loaded, under a name. */
import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { MappingRules, SavedMapping } from '../../domain/column-map.ts';
import { camel } from '../columns.ts';
import { type Database, deleteWhere, selectWhere, updateWhere } from '../database.ts';

const columns = [
  'mapping_name as name',
  'column_map as map',
  'source_options as source',
  ...camel('entity', 'format', 'column_names', 'saved_at', 'last_used_at'),
] as const;

/** Hashes the names in any order, since a map names its columns. */
function digestOf(columnNames: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(columnNames.toSorted())).digest();
}

/** Saves a mapping, in place of one with this name. Returns `null` if the environment would have more than `most`. */
export async function saveMapping(
  db: Database,
  environmentId: number,
  name: string,
  { entity, map, source, format, columnNames }: MappingRules,
  most: number,
): Promise<SavedMapping | null> {
  const known = await selectWhere(db, 'mappings', { environmentId })
    .select(({ fn }) => [
      fn.countAll<number>().as('count'),
      sql<boolean>`coalesce(bool_or(mapping_name = ${name}), false)`.as('has'),
    ])
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
  return db
    .insertInto('mappings')
    .values({ environment_id: environmentId, mapping_name: name, ...rules })
    .onConflict((conflict) =>
      conflict
        .columns(['environment_id', 'mapping_name'])
        .doUpdateSet({ ...rules, saved_at: sql<Date>`excluded.saved_at` }),
    )
    .returning(columns)
    .executeTakeFirstOrThrow();
}

export async function findMapping(
  db: Database,
  environmentId: number,
  name: string,
): Promise<SavedMapping | null> {
  const row = await selectWhere(db, 'mappings', { environmentId, mappingName: name })
    .select(columns)
    .executeTakeFirst();
  return row ?? null;
}

/** Mappings that an inspection names. */
const MAX_OFFERED_MAPPINGS = 20;

/** Finds mappings of files with these columns, the one that was used last first. */
export function findMappingsOf(
  db: Database,
  environmentId: number,
  columnNames: readonly string[],
): Promise<SavedMapping[]> {
  return selectWhere(db, 'mappings', { environmentId, headerSha256: digestOf(columnNames) })
    .select(columns)
    .orderBy('last_used_at', (order) => order.desc().nullsLast())
    .orderBy('saved_at', 'desc')
    .orderBy('mapping_name')
    .limit(MAX_OFFERED_MAPPINGS)
    .execute();
}

/** A mapping without the lists that would make a page of them too long. `columns` is null if it is offered for no files. */
export type ListedMapping = Awaited<ReturnType<typeof listMappings>>[number];

/** Lists up to `limit` mappings after the name `after`, sorted by name. */
export function listMappings(db: Database, environmentId: number, limit: number, after: string | null) {
  return selectWhere(db, 'mappings', { environmentId })
    .select(['mapping_name as name', ...camel('entity', 'saved_at', 'last_used_at')])
    .select([
      sql<number>`(select count(*)::int from jsonb_object_keys(column_map))`.as('mapped'),
      sql<number | null>`jsonb_array_length(column_names)`.as('columns'),
    ])
    .$if(after !== null, (found) => found.where('mapping_name', '>', after ?? ''))
    .orderBy('mapping_name')
    .limit(limit)
    .execute();
}

/** Call it in the transaction that accepts a load with the mapping. Does nothing if the mapping is gone. */
export async function markMappingUsed(db: Database, environmentId: number, name: string): Promise<void> {
  await updateWhere(db, 'mappings', { environmentId, mappingName: name })
    .set({ last_used_at: sql<Date>`now()` })
    .execute();
}

/** Returns false if there was none. */
export async function removeMapping(db: Database, environmentId: number, name: string): Promise<boolean> {
  const { numDeletedRows } = await deleteWhere(db, 'mappings', {
    environmentId,
    mappingName: name,
  }).executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}
