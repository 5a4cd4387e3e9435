import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import type { Entity } from '../../domain/entity.ts';

/**
 * Temporary tables of the session. They contain one batch, each key once. `company`: `null` keeps
 * the company, and '' removes it. `digest`: digest of the row's only record. `removes`: true if the
 * row removes a property or the company. `is_counted`: false for an additional row of a record.
 */
export const incomingTable = {
  users: 'incoming_users',
  companies: 'incoming_companies',
} as const satisfies Record<Entity, string>;

/**
 * Creates the tables when the first batch of a session arrives. Every commit empties the tables.
 */
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

/** `target` is a table name followed by the columns. */
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
  /** Time when the load was accepted, in the format of `Instant`. */
  readonly acceptedAt: string;
  /** True if a row of the batch removes a property or the company. */
  readonly removes: boolean;
  /** True if stored values take precedence over incoming values. The batch then removes nothing. */
  readonly keepsExisting: boolean;
  /**
   * True if `stored @> incoming` proves that nothing changes. That requires a batch that removes
   * nothing, has no nested values, and does not let stored values take precedence.
   */
  readonly flat: boolean;
  /**
   * Whether the tally counts all, some or none of the batch's rows. Additional rows are not
   * counted.
   */
  readonly counted: 'all' | 'some' | 'none';
  /**
   * True if the hashes of keys are stored. A key can occur again only in a load of several chunks.
   */
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

/** With `keepsExisting`, stored values take precedence. */
export function merged(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  { removes, keepsExisting }: Pick<MergeScope, 'removes' | 'keepsExisting'>,
): RawBuilder<unknown> {
  if (keepsExisting) return sql`${incoming} || ${stored}`;
  return removes ? sql`sluice.without_nulls(${stored} || ${incoming})` : sql`${stored} || ${incoming}`;
}

/**
 * If `incoming` is `null`, the stored company is kept. If `incoming` is '', the company is removed.
 */
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
 * Tests whether the merge would change nothing. `@>` is much cheaper than merging, but is also true
 * if an incoming nested object is only a part of the stored one.
 */
export function changesNothing(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  scope: Pick<MergeScope, 'flat' | 'removes' | 'keepsExisting'>,
): RawBuilder<boolean> {
  if (scope.flat) return sql<boolean>`${stored} @> ${incoming}`;
  return sql<boolean>`${merged(stored, incoming, scope)} = ${stored}`;
}

/** Tests whether the stored row `p` already contains everything in the incoming row `i`. */
export function holdsIncoming(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  const same = changesNothing(sql.ref('p.metadata'), sql.ref('i.properties'), scope);
  return entity === 'users'
    ? sql<boolean>`(${same} and ${sameCompany(sql.ref('p.company_id'), sql.ref('i.company'), scope)})`
    : same;
}

/**
 * Returns the marks of a written row: whether the row is new, how often this load has written it,
 * and the highest chunk that wrote it.
 */
export function outcomeOf(table: Entity, { loadId }: MergeScope) {
  const ofRow = (name: string) => sql.ref(`${table}.${name}`);
  return {
    isNew: sql<boolean>`(xmax = 0)`,
    touches: sql<number>`case when ${ofRow('load_id')} = ${loadId} then ${ofRow('load_touches')} else 0 end`,
    lastChunk: sql<number>`${ofRow('load_chunk')}`,
  };
}
