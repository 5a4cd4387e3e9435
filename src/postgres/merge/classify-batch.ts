import { sql } from 'kysely';
import { idColumn } from '../../domain/entity.ts';
import type { Transaction } from '../transaction.ts';
import { holdsAlready, keyHash } from './expressions.ts';
import { copyIncoming, incomingTable } from './incoming.ts';
import type { Batch, Merged } from './merge-batch.ts';

/** What merging the batch would come to, without writing a profile: the dry run. */
export async function classifyBatch({ client, db }: Transaction, batch: Batch): Promise<Merged> {
  const { entity, scope } = batch;
  await copyIncoming(client, entity, batch.text);
  const hash = sql`${keyHash(sql.ref('key'))} | (flags & 2)`;
  const { rows } = await sql<Merged>`
    with classified as (
      select
        i.key,
        i.flags,
        (
          select ${holdsAlready(entity, scope)}
          from ${sql.table(entity)} p
          where p.environment_id = ${scope.environmentId} and p.${sql.ref(idColumn[entity])} = i.key
        ) as held
      from ${sql.table(incomingTable[entity])} i
    ),
    noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, written, unchanged)
      select
        ${scope.loadId},
        ${scope.chunkNo},
        ${entity},
        coalesce(array_agg(${hash} | (held is null)::int) filter (where held is not true), '{}'),
        coalesce(array_agg(${hash}) filter (where held), '{}')
      from classified
      on conflict (load_id, chunk_no, entity) do update set
        written = load_chunk_keys.written || excluded.written,
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )
    select
      count(*) filter (where held is null)::int as inserted,
      count(*) filter (where held = false)::int as updated,
      count(*) filter (where held)::int as unchanged,
      0 as superseded
    from classified
    where flags & 2 = 0`.execute(db);
  return rows[0] ?? { inserted: 0, updated: 0, unchanged: 0, superseded: 0 };
}
