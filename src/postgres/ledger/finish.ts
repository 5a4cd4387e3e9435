import { sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import { LEASE_MS } from '../../domain/limits.ts';
import type { Tally } from '../../domain/tally.ts';
import type { Database } from '../database.ts';

/** One attempt at finishing a load whose chunks are all done. */
export interface FinishClaim {
  readonly loadId: number;
  readonly environmentId: number;
  readonly attempt: number;
  /** Keys may stand in several chunks and some rows were not marked: see `resolveRepeats`. */
  readonly repeatsToResolve: boolean;
}

const lease = sql<Date>`now() + ${LEASE_MS} * interval '1 millisecond'`;

/**
 * Chunks that left no mark of a key they met; and companies that may have been written on behalf of a user first and
 * by a record of their own later, which then was not counted.
 */
const unresolved = sql`
  select
  from load_chunk_keys k
  where k.load_id = loads.load_id
    and (
      k.unchanged <> '{}'
      or (
        k.entity = 'companies'
        and loads.entity = 'auto'
        and exists (select from load_chunk_keys u where u.load_id = k.load_id and u.entity = 'users')
      )
    )`;

/** Null if the load is not ready to be finished, or another worker is at it. */
export async function claimFinish(db: Database, loadId: number): Promise<FinishClaim | null> {
  const row = await db
    .updateTable('loads')
    .set((eb) => ({ finish_attempt: eb('finish_attempt', '+', 1), finish_lease_until: lease }))
    .where('load_id', '=', loadId)
    .where('status', '=', 'processing')
    .whereRef('chunks_done', '=', 'chunk_count')
    .where((eb) =>
      eb.or([eb('finish_lease_until', 'is', null), eb('finish_lease_until', '<', sql<Date>`now()`)]),
    )
    .returning([
      'environment_id',
      'finish_attempt',
      sql<boolean>`repeats_resolved_at is null
        and chunk_count > 1
        and (attempts > 1 or dry_run or exists (${unresolved}))`.as('repeats'),
    ])
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    loadId,
    environmentId: row.environment_id,
    attempt: row.finish_attempt,
    repeatsToResolve: row.repeats,
  };
}

export async function renewFinish(db: Database, claim: FinishClaim): Promise<boolean> {
  return (
    (await owned(db, claim).set({ finish_lease_until: lease }).returning('load_id').execute()).length > 0
  );
}

/** Gives the finish back: due again at once. */
export async function releaseFinish(db: Database, claim: FinishClaim): Promise<void> {
  await owned(db, claim).set({ finish_lease_until: null }).execute();
}

/** As `releaseFinish`, after an error not known to pass; returns how often that has happened. */
export async function failFinish(db: Database, claim: FinishClaim): Promise<number> {
  const row = await owned(db, claim)
    .set((eb) => ({ finish_lease_until: lease, finish_failures: eb('finish_failures', '+', 1) }))
    .returning('finish_failures')
    .executeTakeFirst();
  return row?.finish_failures ?? 0;
}

/** The fence of everything a finisher writes: false when the claim is not ours any more. */
export async function holdsFinish(db: Database, claim: FinishClaim): Promise<boolean> {
  return (
    (await owned(db, claim).set({ finish_lease_until: lease }).returning('load_id').execute()).length > 0
  );
}

function owned(db: Database, claim: FinishClaim) {
  return db
    .updateTable('loads')
    .where('load_id', '=', claim.loadId)
    .where('status', '=', 'processing')
    .where('finish_attempt', '=', claim.attempt);
}

/**
 * Finds the keys that stand in several chunks of which some found nothing to change and so left no mark, puts the
 * tally right (a key counts once, the rest is superseded; it counts as inserted if the load made its row, be it on
 * behalf of a user who named the company) and notes for replay those written out of file order.
 * Call it in the transaction that also holds the fence.
 *
 * A key is out of order if a chunk found it unchanged while an earlier chunk wrote it afterwards; if two chunks both
 * believed to be the first to write it; and, of a load that was retried, if it stands in several chunks at all:
 * another load may have come between them, and the retried one takes effect after it.
 */
export async function resolveRepeats(db: Database, claim: FinishClaim): Promise<void> {
  await sql`set local work_mem = '64MB'`.execute(db);
  await sql`
    with concerned as (
      select k.entity, bool_or(l.attempts > 1) as is_retried
      from load_chunk_keys k
      join loads l using (load_id)
      where load_id = ${claim.loadId}
      group by k.entity
      having bool_or(k.entity = 'companies' or k.unchanged <> '{}' or l.attempts > 1 or l.dry_run)
    ),
    met as (
      select k.entity, k.chunk_no, hash, 'wrote' as did, is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.written) hash
      where k.load_id = ${claim.loadId}
      union all
      select k.entity, k.chunk_no, hash, 'kept', is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.unchanged) hash
      where k.load_id = ${claim.loadId}
      union all
      select k.entity, k.chunk_no, hash, 'wrote again', is_retried
      from concerned join load_chunk_keys k using (entity), unnest(k.repeated) hash
      where k.load_id = ${claim.loadId} and (k.entity = 'companies' or is_retried)
    ),
    repeated as (
      select
        entity,
        hash & -4 as key_hash,
        bool_or(hash & 1 = 1) as is_new,
        bool_or(did <> 'kept') as is_written,
        bool_or(hash & 2 = 0) as is_counted,
        count(*) filter (where did = 'wrote' and hash & 3 = 1) as inserts,
        count(*) filter (where did = 'wrote' and hash & 3 = 0) as updates,
        count(*) filter (where did = 'kept' and hash & 2 = 0) as unchanged,
        count(*) filter (where did = 'wrote') > 1
          or min(chunk_no) filter (where did = 'wrote') < max(chunk_no) filter (where did = 'kept' and hash & 1 = 0)
          or bool_or(is_retried) as out_of_order
      from met
      group by entity, hash & -4
      having count(*) > 1
    ),
    noted as (
      insert into load_replays (load_id, entity, key_hash)
      select ${claim.loadId}, entity, key_hash
      from repeated
      where out_of_order
      on conflict do nothing
    ),
    surplus as (
      select
        coalesce(sum(inserts - (is_counted and is_new)::int), 0)::bigint as inserts,
        coalesce(sum(updates - (is_counted and not is_new and is_written)::int), 0)::bigint as updates,
        coalesce(sum(unchanged - (is_counted and not is_new and not is_written)::int), 0)::bigint as unchanged
      from repeated
    )
    update loads
    set
      rows_inserted = rows_inserted - surplus.inserts,
      rows_updated = rows_updated - surplus.updates,
      rows_unchanged = rows_unchanged - surplus.unchanged,
      rows_superseded = rows_superseded + surplus.inserts + surplus.updates + surplus.unchanged,
      repeats_resolved_at = now()
    from surplus
    where load_id = ${claim.loadId}`.execute(db);
}

/** Chunks that hold a key noted for replay, in file order. */
export async function chunksToReplay(db: Database, loadId: number): Promise<number[]> {
  const { rows } = await sql<{ chunkNo: number }>`
    select k.chunk_no as "chunkNo"
    from load_chunk_keys k
    where k.load_id = ${loadId}
      and exists (
        select
        from unnest(k.written || k.unchanged || k.repeated) hash
        join load_replays r on r.load_id = k.load_id and r.entity = k.entity and r.key_hash = hash & -4
      )
    group by k.chunk_no
    order by k.chunk_no`.execute(db);
  return rows.map((row) => row.chunkNo);
}

/** Takes out of the batch all but the keys noted for replay; returns how many are left. */
export async function keepReplayed(db: Database, loadId: number, entity: Entity): Promise<number> {
  const table = sql.table(entity === 'users' ? 'incoming_users' : 'incoming_companies');
  await sql`
    delete from ${table} i
    where hashtextextended(i.key, 0) & -4 not in (
      select key_hash from load_replays where load_id = ${loadId} and entity = ${entity}
    )`.execute(db);
  const { rows } = await sql<{ left: number }>`select count(*)::int as left from ${table}`.execute(db);
  return rows[0]?.left ?? 0;
}

export interface FinishState {
  readonly jobId: string;
  readonly totalRows: number;
  readonly maxErrors: number | null;
  readonly tally: Tally;
}

export async function readFinishState(db: Database, loadId: number): Promise<FinishState> {
  const row = await db
    .selectFrom('loads')
    .select([
      'job_id',
      'total_rows',
      'max_errors',
      'rows_read',
      'rows_inserted',
      'rows_updated',
      'rows_unchanged',
      'rows_superseded',
      'rows_rejected',
    ])
    .where('load_id', '=', loadId)
    .executeTakeFirstOrThrow();
  return {
    jobId: row.job_id,
    totalRows: row.total_rows,
    maxErrors: row.max_errors,
    tally: {
      read: row.rows_read,
      inserted: row.rows_inserted,
      updated: row.rows_updated,
      unchanged: row.rows_unchanged,
      superseded: row.rows_superseded,
      rejected: row.rows_rejected,
    },
  };
}

/** Completes the load and forgets what only a running load needs. */
export async function completeLoad(db: Database, claim: FinishClaim): Promise<void> {
  await owned(db, claim)
    .set({ status: 'completed', ended_at: sql`now()`, finish_lease_until: null })
    .execute();
  await db.deleteFrom('load_chunk_keys').where('load_id', '=', claim.loadId).execute();
  await db.deleteFrom('load_replays').where('load_id', '=', claim.loadId).execute();
}
