/*
 * Removing profiles. A row of a batch with the flag 8 removes its profile before it is merged; with 16 too, records behind the one that
 * removes it make the profile anew, with only what they bring. Else (`isGone`) the row is done.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { type Database, rowOf } from '../database.ts';
import { incomingTable, keyHash, type MergeScope } from './incoming.ts';

export interface Removed {
  /** Rows that are done. */
  readonly rows: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly removed: number;
}

export const nothingRemoved: Removed = { rows: 0, inserted: 0, updated: 0, unchanged: 0, removed: 0 };

export const isGone = sql<boolean>`(flags & 24 = 8)`;

/** The hash of a key as `load_chunk_keys.removed` has it. `existed`: there was a profile that this load had not written. */
export const removedHash = (existed: RawBuilder<unknown>): RawBuilder<string> =>
  sql<string>`${keyHash(sql.ref('key'))} | (not (${existed}))::int | (flags & 16) / 8`;

/**
 * Removes the profiles, locked in the order of their keys, and takes the rows that are done out of the batch. Counts all rows with the
 * flag: a profile that is made anew was updated if it was there.
 */
export async function removeProfiles(db: Database, entity: Entity, scope: MergeScope): Promise<Removed> {
  const id = sql.ref(`p.${idColumn[entity]}`);
  const [table, incoming] = [sql.table(entity), sql.table(incomingTable[entity])];
  return rowOf<Removed>(db)`
    with stored as materialized (
      select ${id} as key, p.load_id is distinct from ${scope.loadId} as existed
      from ${table} p
      where p.environment_id = ${scope.environmentId}
        and ${id} = any (array(select key from ${incoming} where flags & 8 = 8))
      order by ${id}
      for update
    ),
    gone as (
      delete from ${table} p using stored s where p.environment_id = ${scope.environmentId} and ${id} = s.key
    ),
    met as materialized (
      select i.key, i.flags, coalesce(s.existed, false) as existed
      from ${incoming} i
      left join stored s on s.key = i.key
      where i.flags & 8 = 8
    ),
    done as (
      delete from ${incoming} where ${isGone}
    )
    ${scope.keepKeys ? noted(entity, scope) : sql``}
    select
      count(*) filter (where ${isGone})::int as rows,
      count(*) filter (where not existed and not ${isGone})::int as inserted,
      count(*) filter (where existed and not ${isGone})::int as updated,
      count(*) filter (where not existed and ${isGone})::int as unchanged,
      count(*) filter (where existed and ${isGone})::int as removed
    from met`;
}

const noted = (entity: Entity, scope: MergeScope) => sql`
    , noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, removed)
      select ${scope.loadId}, ${scope.chunkNo}, ${entity}, array_agg(${removedHash(sql.ref('existed'))})
      from met
      having count(*) > 0
      on conflict (load_id, chunk_no, entity) do update set removed = load_chunk_keys.removed || excluded.removed
    )`;
