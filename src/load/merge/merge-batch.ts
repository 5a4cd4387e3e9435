/* Merges batches into stored profiles, property by property. */
import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../base/errors.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { type Database, findValue, isTrue, rowOf, type Transaction } from '../../postgres/database.ts';
import type { DigestClaims } from '../map/unchanged-records.ts';
import {
  copyText,
  holdsIncoming,
  incomingTable,
  type MergeScope,
  nothingUnchanged,
  recordedDropped,
  type Unchanged,
} from './incoming.ts';
import { applyRemovals, createCompanies, upsert } from './upsert.ts';

export interface Batch {
  readonly entity: Entity;
  /** Rows of a `RowBuffer` as COPY text. Each key occurs once. */
  readonly text: Buffer;
  readonly keys: number;
  readonly scope: MergeScope;
  /**
   * True if unchanged records have been left out. Nearly all remaining rows then change something.
   */
  readonly isFiltered: boolean;
}

export interface Merged {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
}

/** A batch of at most this many keys is not searched for unchanged rows first. */
const fewKeys = 500;

/** Deletes the rows that change nothing, and upserts the remaining ones in key order. */
export async function mergeBatch(transaction: Transaction, batch: Batch): Promise<Merged> {
  const { db } = transaction;
  const { entity, scope, keys, isFiltered } = batch;
  await copyBatch(transaction, batch);
  const mayDropFirst = !isFiltered && keys > fewKeys;
  const dropsFirst = mayDropFirst && (await knowsSome(db, entity, scope.environmentId));
  const before = dropsFirst ? await dropUnchanged(db, entity, scope) : nothingUnchanged;
  const written = await upsert(db, entity, scope);
  const mergedRows = before.rows + written.rows;
  const after = mergedRows < keys ? await dropUnchanged(db, entity, scope) : nothingUnchanged;
  if (mergedRows + after.rows !== keys)
    throw new Fault(`of ${keys} ${entity} rows ${mergedRows + after.rows} were merged`);
  if (scope.removes) await applyRemovals(db, entity, scope);
  return {
    inserted: written.inserted,
    updated: written.updated,
    unchanged: before.counted + after.counted,
    superseded: written.superseded,
  };
}

export async function copyBatch(transaction: Transaction, { entity, text }: Batch): Promise<void> {
  const target = `${incomingTable[entity]} (key, properties, company, digest, removes, is_counted)`;
  await copyText(transaction.client, target, text);
}

/** Merges the batch in a replay, without counting rows or storing keys. */
export async function remergeIncoming(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  await upsert(db, entity, scope);
  if (scope.removes) await applyRemovals(db, entity, scope);
}

/**
 * Deletes the rows that change nothing. Keeps a row if another chunk of this load has written its
 * profile, because `upsert` must record that this chunk wrote the profile too. Otherwise, an older
 * record could take precedence. The scalar subquery guarantees an index lookup per row. If this
 * were a join, a planner without statistics might read the whole table.
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
    ${scope.keepKeys ? recordedDropped(entity, scope) : sql``}
    select count(*)::int as rows, count(*) filter (where is_counted)::int as counted
    from dropped`;
}

/** If none of the first 64 keys exist, searching for unchanged rows is not worthwhile. */
function knowsSome(db: Database, entity: Entity, environmentId: number): Promise<boolean> {
  return isTrue(db)`
    select exists (
      select 1
      from (select key from ${sql.table(incomingTable[entity])} limit 64) i
      join ${sql.table(entity)} p on p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = i.key
    ) as known`;
}

/**
 * End of a statement whose CTE `classified` contains the rows of a batch. `is_unchanged` is true
 * for rows that change nothing and `null` for new profiles.
 */
export function countClassified(entity: Entity, scope: MergeScope): RawBuilder<unknown> {
  return sql`
    recorded as (
      insert into load_chunk_keys (load_id, chunk_no, entity, written, unchanged)
      select
        ${scope.loadId},
        ${scope.chunkNo},
        ${entity},
        coalesce(array_agg(mark(key_hash(key), is_unchanged is null, is_counted)) filter (where is_unchanged is not true), '{}'),
        coalesce(array_agg(mark(key_hash(key), false, is_counted)) filter (where is_unchanged), '{}')
      from classified
      on conflict (load_id, chunk_no, entity) do update set
        written = load_chunk_keys.written || excluded.written,
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )
    select
      count(*) filter (where is_unchanged is null)::int as inserted,
      count(*) filter (where not is_unchanged)::int as updated,
      count(*) filter (where is_unchanged)::int as unchanged,
      0 as superseded
    from classified
    where is_counted`;
}

export interface NewUsers {
  /** Rows as COPY text. Each row ends with `newUserStamp`. Each key occurs once. */
  readonly text: Buffer;
  readonly keyHashes: Buffer | null;
  readonly companies: readonly string[];
}

/** Last columns of the COPY text, the same for all new users of a chunk. `load_touches` is 1. */
export function newUserStamp(scope: Pick<MergeScope, 'environmentId' | 'loadId' | 'chunkNo'>): Buffer {
  return Buffer.from(`\t${scope.environmentId}\t${scope.loadId}\t${scope.chunkNo}\t1\n`);
}

/**
 * Copies new users into their table. This takes about half the time of a merge, because pages are
 * filled, and there is no temporary table, no sort and no conflict. Throws a unique violation if a
 * user exists or another transaction is adding the user. The caller then rolls back and merges
 * instead.
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

/**
 * Returns the positions, counted from 1, of claims whose profile is missing, has another digest, or
 * was written by this load. A single index scan takes half the time of a lookup per key. The array
 * is in a subquery, because the planner would otherwise examine each key.
 */
export async function findRefuted(
  db: Database,
  entity: Entity,
  { environmentId, loadId }: Pick<MergeScope, 'environmentId' | 'loadId'>,
  { keys, digests }: Pick<DigestClaims, 'keys' | 'digests'>,
): Promise<number[]> {
  const id = sql.ref(idColumn[entity]);
  const refuted = await findValue<number[]>(db)`
    select coalesce(array_agg(claim.place::int), '{}') as refuted
    from unnest(${keys}::text[], ${digests}::uuid[]) with ordinality as claim (key, digest, place)
    where not exists (
      select 1
      from (
        select ${id} as key, digest
        from ${sql.table(entity)}
        where environment_id = ${environmentId}
          and ${id} = any ((select ${keys}::text[])::text[])
          and load_id is distinct from ${loadId}
        offset 0
      ) p
      where p.key = claim.key and p.digest = claim.digest
    )`;
  return refuted ?? [];
}

/**
 * Stores the key hashes of records that were skipped because they are unchanged. `keyHashes` is a
 * bigint[] in binary format.
 */
export async function recordUnchanged(
  db: Database,
  entity: Entity,
  { loadId, chunkNo }: Pick<MergeScope, 'loadId' | 'chunkNo'>,
  keyHashes: Buffer,
): Promise<void> {
  await sql`
    insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
    values (${loadId}, ${chunkNo}, ${entity}, ${keyHashes}::bigint[])`.execute(db);
}
