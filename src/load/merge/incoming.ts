import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';

/**
 * The session's temporary tables for the rows of one batch: each key once; `company` null leaves the company alone and '' removes
 * it; `digest` is that of the record if the row is all that one record says; `removes`: the row removes a property or its company;
 * `is_counted`: it stands for a record.
 */
export const incomingTable = {
  users: 'incoming_users',
  companies: 'incoming_companies',
} as const satisfies Record<Entity, string>;

/** Temporary tables are the session's: made by its first batch, emptied at every commit. */
export async function prepareIncoming(client: pg.PoolClient): Promise<void> {
  await client.query(
    Object.values(incomingTable)
      .map(
        (table) => `
          create temporary table if not exists ${table} (
            key text collate "C" not null,
            properties jsonb not null,
            company text collate "C",
            digest uuid,
            removes boolean not null,
            is_counted boolean not null
          ) on commit delete rows;`,
      )
      .join(''),
  );
}

/** Sends COPY text into `target`: a table with its columns. */
export async function copyText(client: pg.PoolClient, target: string, text: Buffer): Promise<void> {
  await pipeline(
    Readable.from([text], { objectMode: false }),
    client.query(copyFrom(`copy ${target} from stdin`)),
  );
}

export interface MergeScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
  /** When the load was accepted, as `Instant` writes it. */
  readonly acceptedAt: string;
  /** A row of the batch removes a property or its company. */
  readonly removes: boolean;
  /** Stored values win over incoming ones, and the batch removes nothing. */
  readonly keepsExisting: boolean;
  /** `stored @> incoming` tells that a row changes nothing: no row removes or has an object or array, and stored values are replaced. */
  readonly flat: boolean;
  /** The rows of the batch that stand for a record and so belong in the tally. */
  readonly counted: 'all' | 'some' | 'none';
  /** Keep the hashes of the keys met: only a load of several chunks can meet a key in two. */
  readonly keepKeys: boolean;
}

/** Rows of a batch that change nothing, and how many of them stand for a record. */
export interface Unchanged {
  readonly rows: number;
  readonly counted: number;
}

export const nothingUnchanged: Unchanged = { rows: 0, counted: 0 };

/** Notes the keys of the rows `dropped` as unchanged. */
export const notedDropped = (entity: Entity, scope: MergeScope): RawBuilder<unknown> => sql`
    , noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
      select ${scope.loadId}, ${scope.chunkNo}, ${entity}, array_agg(mark(key_hash(key), false, is_counted))
      from dropped
      having count(*) > 0
      on conflict (load_id, chunk_no, entity) do update set
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )`;

/** `stored` with `incoming` laid over it, where nulls remove, or below it. */
export function merged(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { removes, keepsExisting }: Pick<MergeScope, 'removes' | 'keepsExisting'>,
): RawBuilder<unknown> {
  if (keepsExisting) return sql`${incoming} || ${stored}`;
  return removes ? sql`sluice.without_nulls(${stored} || ${incoming})` : sql`${stored} || ${incoming}`;
}

/** Returns the company of a user after the merge. `incoming` null leaves the stored one, '' takes the user out of it. */
export function mergedCompany(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { keepsExisting }: Pick<MergeScope, 'keepsExisting'>,
): RawBuilder<unknown> {
  if (keepsExisting) return sql`coalesce(${stored}, ${incoming})`;
  return sql`case when ${incoming} is null then ${stored} else nullif(${incoming}, '') end`;
}

export function sameCompany(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { keepsExisting }: Pick<MergeScope, 'keepsExisting'>,
): RawBuilder<boolean> {
  if (keepsExisting) return sql<boolean>`(${incoming} is null or ${stored} is not null)`;
  return sql<boolean>`(${incoming} is null or ${stored} is not distinct from nullif(${incoming}, ''))`;
}

/** Tells whether `incoming` over `stored` changes nothing. "Contains" costs a fraction of merging, but calls a nested subset equal. */
export function changesNothing(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  scope: Pick<MergeScope, 'flat' | 'removes' | 'keepsExisting'>,
): RawBuilder<boolean> {
  if (scope.flat) return sql<boolean>`${stored} @> ${incoming}`;
  return sql<boolean>`${merged(stored, incoming, scope)} = ${stored}`;
}

/** Tells whether the stored row `p` already holds all that the incoming row `i` brings. */
export function holdsIncoming(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  const same = changesNothing(sql.ref('p.metadata'), sql.ref('i.properties'), scope);
  return entity === 'users'
    ? sql<boolean>`(${same} and ${sameCompany(sql.ref('p.company_id'), sql.ref('i.company'), scope)})`
    : same;
}

/** The marks of a written row: it is new, the number of chunks of this load that wrote it, and the highest of them. */
export function outcomeOf(table: Entity, { loadId }: MergeScope) {
  const own = (column: string) => sql.ref(`${table}.${column}`);
  return {
    isNew: sql<boolean>`(xmax = 0)`,
    touches: sql<number>`case when ${own('load_id')} = ${loadId} then ${own('load_touches')} else 0 end`,
    lastChunk: sql<number>`${own('load_chunk')}`,
  };
}
