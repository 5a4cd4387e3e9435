import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../../postgres/database.ts';

interface ReferencedBy {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
  readonly keepKeys: boolean;
}

/**
 * Creates the profiles with these `ids` (a text[] in binary format) that do not exist yet. Events
 * refer to these profiles. With `keepKeys`, stores the keys of the new profiles, so that the finish
 * task finds records of these profiles in other chunks. The scalar subquery guarantees an index
 * lookup per row.
 */
export async function createReferenced(
  db: Database,
  entity: Entity,
  by: ReferencedBy,
  ids: Buffer,
): Promise<void> {
  const id = sql.ref(idColumn[entity]);
  const create = sql`
    insert into ${sql.table(entity)} (environment_id, ${id})
    select ${by.environmentId}::int, named.id
    from unnest(${ids}::text[]) as named (id)
    where (
      select true from ${sql.table(entity)} p where p.environment_id = ${by.environmentId} and p.${id} = named.id
    ) is null
    order by named.id collate "C"
    on conflict (environment_id, ${id}) do nothing`;
  const recorded = sql`
    with created as (${create} returning ${id} as key)
    insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
    select ${by.loadId}, ${by.chunkNo}, ${entity}, array_agg(mark(key_hash(key), true, false))
    from created
    having count(*) > 0
    on conflict (load_id, chunk_no, entity) do update set
      unchanged = load_chunk_keys.unchanged || excluded.unchanged`;
  await (by.keepKeys ? recorded : create).execute(db);
}
