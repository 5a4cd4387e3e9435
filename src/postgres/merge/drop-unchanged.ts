import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../database.ts';
import { holdsAlready, keyHash, type MergeScope } from './expressions.ts';
import { incomingTable } from './incoming.ts';

export interface Unchanged {
  /** Rows dropped. */
  readonly rows: number;
  /** Those of them that stand for a record. */
  readonly counted: number;
}

export const nothingUnchanged: Unchanged = { rows: 0, counted: 0 };

/**
 * Takes out of the batch what the table already holds, so that it is not rewritten. Rows that another chunk of
 * this load wrote stay in: they must be marked again, or an older record could win over this one.
 * A scalar subquery, because it is always an index lookup per row; for a join, a planner without statistics of
 * the temporary table may read the whole profile table for every chunk.
 */
export async function dropUnchanged(db: Database, entity: Entity, scope: MergeScope): Promise<Unchanged> {
  const { rows } = await sql<Unchanged>`
    with dropped as (
      delete from ${sql.table(incomingTable[entity])} i
      where (
        select p.load_id is distinct from ${scope.loadId} and ${holdsAlready(entity, scope)}
        from ${sql.table(entity)} p
        where p.environment_id = ${scope.environmentId} and p.${sql.ref(idColumn[entity])} = i.key
      )
      returning i.key, i.flags
    )
    ${scope.noteKeys ? noted(entity, scope) : sql``}
    select count(*)::int as rows, count(*) filter (where flags & 2 = 0)::int as counted
    from dropped`.execute(db);
  return rows[0] ?? nothingUnchanged;
}

const noted = (entity: Entity, scope: MergeScope) => sql`
    , noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
      select ${scope.loadId}, ${scope.chunkNo}, ${entity}, array_agg(${keyHash(sql.ref('key'))} | (flags & 2))
      from dropped
      having count(*) > 0
      on conflict (load_id, chunk_no, entity) do update set
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )`;

/** Whether the table knows any of a few keys of the batch: decides if looking for unchanged rows is worth it. */
export async function knowsSome(db: Database, entity: Entity, environmentId: number): Promise<boolean> {
  const { rows } = await sql<{ known: boolean }>`
    select exists (
      select
      from (select key from ${sql.table(incomingTable[entity])} limit 64) i
      join ${sql.table(entity)} p on p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = i.key
    ) as known`.execute(db);
  return rows[0]?.known ?? false;
}
