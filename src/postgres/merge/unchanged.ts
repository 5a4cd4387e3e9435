import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../database.ts';
import { isDated, type MergeScope } from './incoming.ts';

/** Profiles that may bear certain digests: text[] and uuid[] in binary, as many of the one as of the other. */
export interface DigestClaims {
  readonly keys: Buffer;
  readonly digests: Buffer;
}

/**
 * The places, from 1, of claims that do not hold: there is no such profile, or it does not bear the digest, or this load has
 * written it (it must be marked again), or a record with a time has (its times must be written).
 * A scalar subquery, as where unchanged rows are dropped: always an index look-up per row.
 */
export async function findRefuted(
  db: Database,
  entity: Entity,
  { environmentId, loadId }: Pick<MergeScope, 'environmentId' | 'loadId'>,
  { keys, digests }: DigestClaims,
): Promise<number[]> {
  const { rows } = await sql<{ refuted: number[] }>`
    select coalesce(array_agg(claim.place::int) filter (where not claim.holds), '{}') as refuted
    from (
      select
        c.place,
        coalesce(
          (
            select p.digest = c.digest and p.load_id is distinct from ${loadId} and not ${isDated('p')}
            from ${sql.table(entity)} p
            where p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = c.key
          ),
          false
        ) as holds
      from unnest(${keys}::text[], ${digests}::uuid[]) with ordinality as c (key, digest, place)
    ) claim`.execute(db);
  return rows[0]?.refuted ?? [];
}

/** Notes the keys of records that were found unchanged before they were mapped; `keyHashes` is a bigint[] in binary. */
export async function noteUnchanged(
  db: Database,
  entity: Entity,
  { loadId, chunkNo }: Pick<MergeScope, 'loadId' | 'chunkNo'>,
  keyHashes: Buffer,
): Promise<void> {
  await sql`
    insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
    values (${loadId}, ${chunkNo}, ${entity}, ${keyHashes}::bigint[])`.execute(db);
}
