import type { Entity } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import type { Database } from '../database.ts';
import type { Transaction } from '../transaction.ts';
import { dropUnchanged, knowsSome, nothingUnchanged } from './drop-unchanged.ts';
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

/** COPY → drop what is there already → one upsert. Runs in the caller's transaction. */
export async function mergeBatch({ client, db }: Transaction, batch: Batch): Promise<Merged> {
  const { entity, scope } = batch;
  await copyIncoming(client, entity, batch.text);
  const before = (await knowsSome(db, entity, scope.environmentId))
    ? await dropUnchanged(db, entity, scope)
    : nothingUnchanged;
  const written = await upsert(db, entity, scope);
  const after =
    before.rows + written.rows < batch.rows ? await dropUnchanged(db, entity, scope) : nothingUnchanged;
  if (before.rows + written.rows + after.rows !== batch.rows) {
    throw new Fault(`of ${batch.rows} ${entity} rows ${before.rows + written.rows + after.rows} were merged`);
  }
  if (scope.removes) await settleRemovals(db, entity, scope);
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
