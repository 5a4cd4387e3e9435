import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';

/**
 * The session's temporary tables for one batch, each key once. `company`: `null` keeps the company,
 * '' removes it. `digest`: that of the only record of the row. `removes`: a property or the
 * company. `is_counted`: the row is a record's own.
 */
export const incomingTable = {
  users: 'incoming_users',
  companies: 'incoming_companies',
} as const satisfies Record<Entity, string>;

/** The first batch of a session creates the tables, and every commit empties them. */
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

/** `target` is a table with its columns. */
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
  /** Stored values win, and the batch removes nothing. */
  readonly keepsExisting: boolean;
  /** `stored @> incoming` proves no change: nothing removes, is nested or keeps stored values. */
  readonly flat: boolean;
  /** Rows of the batch that are a record's own, which the tally counts. */
  readonly counted: 'all' | 'some' | 'none';
  /** Keep hashes of keys: only a load of several chunks can meet a key twice. */
  readonly keepKeys: boolean;
}

export interface Unchanged {
  readonly rows: number;
  readonly counted: number;
}

export const nothingUnchanged: Unchanged = { rows: 0, counted: 0 };

export const notedDropped = (entity: Entity, scope: MergeScope): RawBuilder<unknown> => sql`
    , noted as (
      insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
      select ${scope.loadId}, ${scope.chunkNo}, ${entity}, array_agg(mark(key_hash(key), false, is_counted))
      from dropped
      having count(*) > 0
      on conflict (load_id, chunk_no, entity) do update set
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )`;

/** With `keepsExisting` the stored values win. */
export function merged(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { removes, keepsExisting }: Pick<MergeScope, 'removes' | 'keepsExisting'>,
): RawBuilder<unknown> {
  if (keepsExisting) return sql`${incoming} || ${stored}`;
  return removes ? sql`sluice.without_nulls(${stored} || ${incoming})` : sql`${stored} || ${incoming}`;
}

/** `incoming`: `null` keeps the stored company, '' removes the user from it. */
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

/** "Contains" costs a fraction of merging, but accepts a nested subset. */
export function changesNothing(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  scope: Pick<MergeScope, 'flat' | 'removes' | 'keepsExisting'>,
): RawBuilder<boolean> {
  if (scope.flat) return sql<boolean>`${stored} @> ${incoming}`;
  return sql<boolean>`${merged(stored, incoming, scope)} = ${stored}`;
}

/** Tells whether the stored row `p` already has everything of the incoming row `i`. */
export function holdsIncoming(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  const same = changesNothing(sql.ref('p.metadata'), sql.ref('i.properties'), scope);
  return entity === 'users'
    ? sql<boolean>`(${same} and ${sameCompany(sql.ref('p.company_id'), sql.ref('i.company'), scope)})`
    : same;
}

/** The marks of a written row: new, chunks of this load that wrote it, the highest of them. */
export function outcomeOf(table: Entity, { loadId }: MergeScope) {
  const own = (column: string) => sql.ref(`${table}.${column}`);
  return {
    isNew: sql<boolean>`(xmax = 0)`,
    touches: sql<number>`case when ${own('load_id')} = ${loadId} then ${own('load_touches')} else 0 end`,
    lastChunk: sql<number>`${own('load_chunk')}`,
  };
}
