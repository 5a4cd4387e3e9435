import { sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import type { Database } from '../database.ts';
import type { Transaction } from '../transaction.ts';
import { createCompanies } from './create-companies.ts';
import { dropUnchanged, knowsSome, type Unchanged } from './drop-unchanged.ts';
import type { MergeScope } from './expressions.ts';
import { copyIncoming } from './incoming.ts';
import { settleRemovals } from './settle-removals.ts';
import { upsert } from './upsert.ts';

export interface Batch {
  readonly entity: Entity;
  /** COPY text, see RowBuffer. Each key once. */
  readonly text: Buffer;
  /** Keys in it. */
  readonly rows: number;
  readonly scope: MergeScope;
}

/** Outcomes of the rows that stand for a record. */
export interface Merged {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
}

const nothing: Unchanged = { rows: 0, counted: 0, hashes: '{}' };

/** COPY → drop what is there already → one upsert → note the keys. Runs in the caller's transaction. */
export async function mergeBatch(
  { client, db }: Transaction,
  batch: Batch,
  options: { readonly noteKeys: boolean },
): Promise<Merged> {
  const { entity, scope } = batch;
  await copyIncoming(client, entity, batch.text);
  const before = (await knowsSome(db, entity, scope.environmentId))
    ? await dropUnchanged(db, entity, scope)
    : nothing;
  const written = await upsert(db, entity, scope);
  const after = before.rows + written.rows < batch.rows ? await dropUnchanged(db, entity, scope) : nothing;
  if (before.rows + written.rows + after.rows !== batch.rows) {
    throw new Fault(`of ${batch.rows} ${entity} rows ${before.rows + written.rows + after.rows} were merged`);
  }
  if (scope.removes) await settleRemovals(db, entity, scope);
  if (entity === 'users') await createCompanies(db, scope.environmentId);
  if (options.noteKeys) {
    await sql`
      insert into load_chunk_keys (load_id, chunk_no, entity, written, unchanged, repeated)
      values (
        ${scope.loadId}, ${scope.chunkNo}, ${entity}, ${written.firstHashes}::bigint[],
        ${before.hashes}::bigint[] || ${after.hashes}::bigint[], ${written.repeatedHashes}::bigint[]
      )
      on conflict (load_id, chunk_no, entity) do update set
        written = load_chunk_keys.written || excluded.written,
        unchanged = load_chunk_keys.unchanged || excluded.unchanged,
        repeated = load_chunk_keys.repeated || excluded.repeated`.execute(db);
    if (written.invertedHashes !== '{}') {
      await sql`
        insert into load_replays (load_id, entity, key_hash)
        select ${scope.loadId}, ${entity}, hash from unnest(${written.invertedHashes}::bigint[]) hash
        on conflict do nothing`.execute(db);
    }
  }
  return {
    inserted: written.inserted,
    updated: written.updated,
    unchanged: before.counted + after.counted,
    superseded: written.superseded,
  };
}

/** Merges again what `copyIncoming` brought, counting and noting nothing: the replay. */
export async function remergeIncoming(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  await upsert(db, entity, scope);
  if (scope.removes) await settleRemovals(db, entity, scope);
}
