import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';

/**
 * Temporary tables for one batch, in which each key occurs once. `company`: `null` keeps the
 * company, and '' removes it. `digest`: digest of the record, if the row comes from a single
 * record. `removes`: true if the row removes a property or the company. `is_counted`: false for an
 * additional row of a record.
 */
export const incomingTable = {
  users: 'incoming_users',
  companies: 'incoming_companies',
} as const satisfies Record<Entity, string>;

/** Every commit empties the temporary tables of the session. */
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

/** Copies rows into a table. `target` is the name of the table, with its columns in brackets. */
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
  /** Time at which the load was accepted, in the format of `Instant`. */
  readonly acceptedAt: string;
  /** True if a row of the batch removes a property of its profile, or a user from a company. */
  readonly removes: boolean;
  /** True if stored values take precedence over incoming ones. The batch then removes nothing. */
  readonly keepsExisting: boolean;
  /**
   * True if `stored @> incoming` is enough to prove that a row changes nothing. No row of the batch
   * may then remove a value or have nested values, and stored values must not take precedence.
   */
  readonly canUseContainment: boolean;
  /** Which rows the tally counts. The tally never counts additional rows. */
  readonly counted: 'all' | 'some' | 'none';
  /**
   * True if the hashes of the keys must be stored, because other chunks may contain the keys or a
   * capability needs the hashes.
   */
  readonly keepKeys: boolean;
}

export interface Unchanged {
  readonly rows: number;
  readonly counted: number;
}

export const nothingUnchanged: Unchanged = { rows: 0, counted: 0 };

export const recordedDropped = (entity: Entity, scope: MergeScope): RawBuilder<unknown> => sql`
    , recorded as (
      insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
      select ${scope.loadId}, ${scope.chunkNo}, ${entity}, array_agg(mark(key_hash(key), false, is_counted))
      from dropped
      having count(*) > 0
      on conflict (load_id, chunk_no, entity) do update set
        unchanged = load_chunk_keys.unchanged || excluded.unchanged
    )`;

/** Properties after a merge. */
export function merged(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { removes, keepsExisting }: Pick<MergeScope, 'removes' | 'keepsExisting'>,
): RawBuilder<unknown> {
  if (keepsExisting) return sql`${incoming} || ${stored}`;
  return removes ? sql`sluice.without_nulls(${stored} || ${incoming})` : sql`${stored} || ${incoming}`;
}

/** Company after a merge. `incoming`: `null` keeps the stored company, '' removes it. */
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

/**
 * SQL expression: true if merging `incoming` would change nothing. `@>` is much cheaper than
 * merging. But `@>` is also true if a nested object is only a part of the stored one.
 */
export function changesNothing(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  scope: Pick<MergeScope, 'canUseContainment' | 'removes' | 'keepsExisting'>,
): RawBuilder<boolean> {
  if (scope.canUseContainment) return sql<boolean>`${stored} @> ${incoming}`;
  return sql<boolean>`${merged(stored, incoming, scope)} = ${stored}`;
}

/** True if the stored row `p` already contains everything in the incoming row `i`. */
export function holdsIncoming(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  const same = changesNothing(sql.ref('p.metadata'), sql.ref('i.properties'), scope);
  return entity === 'users'
    ? sql<boolean>`(${same} and ${sameCompany(sql.ref('p.company_id'), sql.ref('i.company'), scope)})`
    : same;
}

/**
 * `touches` is the number of chunks of this load that have written the row. `lastChunk` is the
 * highest number of these chunks.
 */
export function outcomeOf(table: Entity, { loadId }: MergeScope) {
  const ofRow = (name: string) => sql.ref(`${table}.${name}`);
  return {
    isNew: sql<boolean>`(xmax = 0)`,
    touches: sql<number>`case when ${ofRow('load_id')} = ${loadId} then ${ofRow('load_touches')} else 0 end`,
    lastChunk: sql<number>`${ofRow('load_chunk')}`,
  };
}
