import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Yields } from '../../domain/load.ts';
import type { Database } from '../database.ts';
import { incomingTable, type MergeScope } from './incoming.ts';

/*
 * Rows of an amendment count as of the place that their records have in the file of its parent. What stands later wins: records of
 * files, which were looked up before (`Yield`), and single records, whose times the profiles bear.
 */

/**
 * Takes off the batch in the session's table what stands later in history, and locks the profiles that it is for, in key order as every
 * writer does; returns how many there are. What a record says of itself with a time of its own stays: the merge compares it.
 */
export async function yieldToLater(
  db: Database,
  entity: Entity,
  { environmentId, acceptedAt }: MergeScope,
  { since, later }: Yields,
): Promise<number> {
  const incoming = sql.table(incomingTable[entity]);
  const id = sql.ref(idColumn[entity]);
  const at = sql`sluice.micros(${acceptedAt}::timestamptz)`;
  const begun = sql`sluice.micros(${since}::timestamptz)`;
  const { rows } = await sql<{ held: number }>`
    with held as materialized (
      select p.${id} as key, p.times
      from ${sql.table(entity)} p
      where p.environment_id = ${environmentId} and p.${id} = any (array(select key from ${incoming}))
      order by p.${id}
      for no key update
    ),
    yielded as (
      update ${incoming} i
      set
        properties = i.properties - array(
          select n.name
          from jsonb_object_keys(i.properties) n (name)
          where coalesce((i.times -> 'properties' -> n.name)::bigint, ${at}) >= ${at}
            and (coalesce((h.times -> 'properties' -> n.name)::bigint, 0) > ${begun} or n.name = any (l.names))
        ),
        company = case
          when coalesce((i.times -> 'company')::bigint, ${at}) >= ${at}
            and (coalesce((h.times -> 'company')::bigint, 0) > ${begun} or coalesce(l.company, false))
          then null
          else i.company
        end
      from held h
      left join json_to_recordset(${JSON.stringify(later)}::json) as l (key text, names text[], company boolean)
        on l.key collate "C" = h.key
      where i.key = h.key
    )
    select count(*)::int as held
    from held`.execute(db);
  return rows[0]?.held ?? 0;
}
