/*
 * The merge: a batch of rows is laid over the profiles that are stored, property by property. COPY into a
 * temporary table, drop what is there already, one upsert in key order. `insertNewUsers` is the short
 * way for users of whom nothing is known.
 */
import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../base/errors.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { type Database, findValue, isTrue, rowOf, type Transaction } from '../../postgres/database.ts';
import {
  copyText,
  holdsIncoming,
  incomingTable,
  type MergeScope,
  notedDropped,
  nothingUnchanged,
  type Unchanged,
} from './incoming.ts';
import { applyRemovals, createCompanies, upsert } from './upsert.ts';

export interface Batch {
  readonly entity: Entity;
  /** COPY text of a `RowBuffer`, each key once. */
  readonly text: Buffer;
  readonly keys: number;
  readonly scope: MergeScope;
}

export interface Merged {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
}

/** COPY → drop what is there already → one upsert. Runs in the caller's transaction. */
export async function mergeBatch(transaction: Transaction, batch: Batch): Promise<Merged> {
  const { db } = transaction;
  const { entity, scope, keys } = batch;
  await copyBatch(transaction, batch);
  const before = (await knowsSome(db, entity, scope.environmentId))
    ? await dropUnchanged(db, entity, scope)
    : nothingUnchanged;
  const written = await upsert(db, entity, scope);
  const done = before.rows + written.rows;
  const after = done < keys ? await dropUnchanged(db, entity, scope) : nothingUnchanged;
  if (done + after.rows !== keys)
    throw new Fault(`of ${keys} ${entity} rows ${done + after.rows} were merged`);
  if (scope.removes) await applyRemovals(db, entity, scope);
  return {
    inserted: written.inserted,
    updated: written.updated,
    unchanged: before.counted + after.counted,
    superseded: written.superseded,
  };
}

/** Brings the batch into the session's table for its entity. */
export async function copyBatch(transaction: Transaction, { entity, text }: Batch): Promise<void> {
  const target = `${incomingTable[entity]} (key, properties, company, digest, removes, is_counted)`;
  await copyText(transaction.client, target, text);
}

/** Merges again what `copyBatch` brought, counting and noting nothing: the replay. */
export async function remergeIncoming(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  // A profile that is replayed is there: a chunk of the load wrote it. If it is gone, so are its rows.
  await upsert(db, entity, scope);
  if (scope.removes) await applyRemovals(db, entity, scope);
}

/**
 * Takes out of the batch what the table already holds, so that it is not rewritten. Rows that another chunk of
 * this load wrote stay in: they must be marked again, or an older record could win over this one.
 * A scalar subquery, because it is always an index lookup per row; for a join, a planner without statistics of
 * the temporary table may read the whole profile table for every chunk.
 */
async function dropUnchanged(db: Database, entity: Entity, scope: MergeScope): Promise<Unchanged> {
  return rowOf<Unchanged>(db)`
    with dropped as (
      delete from ${sql.table(incomingTable[entity])} i
      where (
        select p.load_id is distinct from ${scope.loadId} and ${holdsIncoming(entity, scope)}
        from ${sql.table(entity)} p
        where p.environment_id = ${scope.environmentId} and p.${sql.ref(idColumn[entity])} = i.key
      )
      returning i.key, i.is_counted
    )
    ${scope.keepKeys ? notedDropped(entity, scope) : sql``}
    select count(*)::int as rows, count(*) filter (where is_counted)::int as counted
    from dropped`;
}

/** Tells whether the table has any of a few keys of the batch, and so whether looking for unchanged rows is worth it. */
function knowsSome(db: Database, entity: Entity, environmentId: number): Promise<boolean> {
  return isTrue(db)`
    select exists (
      select 1
      from (select key from ${sql.table(incomingTable[entity])} limit 64) i
      join ${sql.table(entity)} p on p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = i.key
    ) as known`;
}

/**
 * The end of a statement whose `classified` has the batch's keys, whether they are counted, and whether each is `held` already (null: there is
 * no such profile): notes the keys, and counts.
 */
export function countClassified(entity: Entity, scope: MergeScope): RawBuilder<unknown> {
  return sql`
    noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, written, unchanged)
      select
        ${scope.loadId},
        ${scope.chunkNo},
        ${entity},
        coalesce(array_agg(mark(key_hash(key), held is null, is_counted)) filter (where held is not true), '{}'),
        coalesce(array_agg(mark(key_hash(key), false, is_counted)) filter (where held), '{}')
      from classified
      on conflict (load_id, chunk_no, entity) do update set
        written = load_chunk_keys.written || excluded.written,
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )
    select
      count(*) filter (where held is null)::int as inserted,
      count(*) filter (where not held)::int as updated,
      count(*) filter (where held)::int as unchanged,
      0 as superseded
    from classified
    where is_counted`;
}

export interface NewUsers {
  /** COPY text of rows stamped by `newUserStamp`. Each key once. */
  readonly text: Buffer;
  readonly keyHashes: Buffer | null;
  readonly companies: readonly string[];
}

/** The last columns of each row: environment, load, chunk, and that this chunk is the first of its load to touch it. */
export function newUserStamp(scope: Pick<MergeScope, 'environmentId' | 'loadId' | 'chunkNo'>): Buffer {
  return Buffer.from(`\t${scope.environmentId}\t${scope.loadId}\t${scope.chunkNo}\t1\n`);
}

/**
 * Adds users that are all expected to be new: COPY straight into the table, which PostgreSQL does in about half the
 * time of the merge (pages filled many rows at a time, no temporary table, no sort, no look-up for conflicts).
 * Throws a unique violation if one of them is known after all, or comes at the same time by another way; the caller
 * then rolls back and merges. Nothing but time is lost.
 */
export async function insertNewUsers(
  { client, db }: Transaction,
  scope: MergeScope,
  users: NewUsers,
  keepCompanies: boolean,
): Promise<void> {
  const columns = 'user_id, metadata, company_id, digest, environment_id, load_id, load_chunk, load_touches';
  await copyText(client, `users (${columns})`, users.text);
  if (users.keyHashes !== null) {
    await sql`
      insert into load_chunk_keys (load_id, chunk_no, entity, written)
      values (${scope.loadId}, ${scope.chunkNo}, 'users', ${users.keyHashes}::bigint[])`.execute(db);
  }
  if (users.companies.length > 0) {
    await createCompanies(db, { ...scope, keepKeys: keepCompanies }, users.companies);
  }
}

/** Profiles that may bear certain digests: text[] and uuid[] in binary, as many of the one as of the other. */
export interface DigestClaims {
  readonly keys: Buffer;
  readonly digests: Buffer;
}

/**
 * The places, from 1, of claims that do not hold: there is no such profile, or it does not bear the digest, or this load has
 * written it (it must be marked again).
 * A scalar subquery, as where unchanged rows are dropped: always an index look-up per row.
 */
export async function findRefuted(
  db: Database,
  entity: Entity,
  { environmentId, loadId }: Pick<MergeScope, 'environmentId' | 'loadId'>,
  { keys, digests }: DigestClaims,
): Promise<number[]> {
  const refuted = await findValue<number[]>(db)`
    select coalesce(array_agg(claim.place::int) filter (where not claim.holds), '{}') as refuted
    from (
      select
        c.place,
        coalesce(
          (
            select p.digest = c.digest and p.load_id is distinct from ${loadId}
            from ${sql.table(entity)} p
            where p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = c.key
          ),
          false
        ) as holds
      from unnest(${keys}::text[], ${digests}::uuid[]) with ordinality as c (key, digest, place)
    ) claim`;
  return refuted ?? [];
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
