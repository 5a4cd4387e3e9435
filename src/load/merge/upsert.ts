import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { type Database, rowOf } from '../../postgres/database.ts';
import {
  changesNothing,
  incomingTable,
  type MergeScope,
  merged,
  mergedCompany,
  outcomeOf,
  sameCompany,
} from './incoming.ts';

export interface Written {
  /** Number of rows that were written, including additional rows. */
  readonly rows: number;
  readonly inserted: number;
  readonly updated: number;
  /** Number of written rows that another chunk of this load had already written. */
  readonly superseded: number;
}

/**
 * Merges the batch in one statement. Writes in key order, so that two writers do not deadlock. Each
 * row stores which load wrote the row last, how many chunks of that load wrote the row (touches),
 * and the highest number of these chunks. If touches is 1, this chunk is the first to write the
 * row. Otherwise, several chunks contain the key.
 */
export async function upsert(db: Database, entity: Entity, scope: MergeScope): Promise<Written> {
  const counted = countedExpression(scope);
  return rowOf<Written>(db)`
    with written as (${upserted(entity, scope)})
    ${scope.keepKeys ? recorded(entity, scope, counted) : sql``}
    select
      count(*)::int as rows,
      count(*) filter (where is_new and ${counted})::int as inserted,
      count(*) filter (where not is_new and touches = 1 and ${counted})::int as updated,
      count(*) filter (where touches > 1 and ${counted})::int as superseded
    from ${writtenRows(entity, scope)}`;
}

/** Keys of rows that a later chunk had already written are stored for the replay. */
function recorded(entity: Entity, scope: MergeScope, counted: RawBuilder<boolean>) {
  const hash = sql`key_hash(written.key)`;
  return sql`
    , recorded as (
      insert into load_chunk_keys (load_id, chunk_no, entity, written, repeated)
      select
        ${scope.loadId},
        ${scope.chunkNo},
        ${entity},
        coalesce(array_agg(mark(${hash}, is_new, ${counted})) filter (where touches = 1), '{}'),
        coalesce(array_agg(mark(${hash}, false, ${counted})) filter (where touches > 1), '{}')
      from ${writtenRows(entity, scope)}
      on conflict (load_id, chunk_no, entity) do update set
        written = load_chunk_keys.written || excluded.written,
        repeated = load_chunk_keys.repeated || excluded.repeated
    ),
    inverted as (
      insert into load_replays (load_id, entity, key_hash)
      select ${scope.loadId}, ${entity}, ${hash}
      from written
      where last_chunk > ${scope.chunkNo}
      on conflict do nothing
    )`;
}

function writtenRows(entity: Entity, scope: MergeScope) {
  return scope.counted === 'some'
    ? sql`written join ${sql.table(incomingTable[entity])} i on i.key = written.key`
    : sql`written`;
}

function countedExpression(scope: MergeScope) {
  if (scope.counted === 'some') return sql<boolean>`i.is_counted`;
  return scope.counted === 'all' ? sql<boolean>`true` : sql<boolean>`false`;
}

/**
 * Statement that writes the rows that change something, and the rows that another chunk of this
 * load has written.
 */
function upserted(entity: Entity, scope: MergeScope): RawBuilder<unknown> {
  const isUser = entity === 'users';
  const id = sql.ref(idColumn[entity]);
  const ofRow = (column: string) => sql.ref(`${entity}.${column}`);
  const ofUser = (text: RawBuilder<unknown>) => (isUser ? text : sql``);
  const companyOf = (row: string) => (isUser ? sql.ref(`${row}.company_id`) : sql`null`);
  const isSameCompany = isUser ? sameCompany(companyOf(entity), companyOf('excluded'), scope) : sql`true`;
  const isUnchanged = changesNothing(ofRow('metadata'), sql.ref('excluded.metadata'), scope);
  const isSameLoad = sql`${ofRow('load_id')} = excluded.load_id`;
  const { isNew, touches, lastChunk } = outcomeOf(entity, scope);
  return sql`
    insert into ${sql.table(entity)} (
      environment_id, ${id}, metadata, digest, load_id, load_chunk, load_touches${ofUser(sql`, company_id`)}
    )
    select
      ${scope.environmentId}::int, i.key, i.properties, i.digest, ${scope.loadId}::bigint, ${scope.chunkNo}::int, 1
      ${ofUser(sql`, i.company`)}
    from ${sql.table(incomingTable[entity])} i
    order by i.key
    on conflict (environment_id, ${id}) do update set
      metadata = ${merged(ofRow('metadata'), sql.ref('excluded.metadata'), scope)},
      load_id = excluded.load_id,
      load_chunk = case
        when ${isSameLoad} then greatest(${ofRow('load_chunk')}, excluded.load_chunk)
        else excluded.load_chunk
      end,
      load_touches = case when ${isSameLoad} then ${ofRow('load_touches')} + 1 else 1 end,
      digest = excluded.digest,
      last_seen_at = excluded.last_seen_at,
      updated_at = excluded.updated_at,
      position = excluded.position
      ${ofUser(sql`,
        company_id = ${mergedCompany(companyOf('users'), companyOf('excluded'), scope)}`)}
    where ${isSameLoad} or not (${isUnchanged}) or not ${isSameCompany}
    returning ${id} as key, ${isNew} as is_new, ${touches} as touches, ${lastChunk} as last_chunk`;
}

/**
 * Creates companies that do not exist yet. Must be called after the records of companies in the
 * chunk have been merged. Otherwise, these records would not count as inserted. `named` are the
 * companies that possibly do not exist yet. Default: all companies in the batch. With `keepKeys`,
 * the finish task finds records of the new companies in other chunks.
 */
export async function createCompanies(
  db: Database,
  scope: MergeScope,
  named?: readonly string[],
): Promise<void> {
  const { environmentId } = scope;
  const create = sql`
    insert into companies (environment_id, company_id, first_seen_at)
    select ${environmentId}::int, unknown.company, ${scope.acceptedAt}::timestamptz
    from (${unknownCompanies(scope, namedCompanies(named))}) unknown
    order by unknown.company
    on conflict (environment_id, company_id) do nothing`;
  await (scope.keepKeys ? creating(create, scope) : create).execute(db);
}

/** Companies in `named` that do not exist. Looks up each company by primary key. */
export const unknownCompanies = (
  { environmentId }: Pick<MergeScope, 'environmentId'>,
  named: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`
  with named as materialized (${named}),
  known as (
    select c.company_id
    from named n
    join companies c on c.environment_id = ${environmentId} and c.company_id = n.company
  )
  select company from named where company not in (select company_id from known)`;

export function namedCompanies(ids?: readonly string[]): RawBuilder<unknown> {
  if (ids !== undefined) return sql`select company from unnest(${ids}::text[]) company where company <> ''`;
  return sql`select distinct company from incoming_users where company <> ''`;
}

const creating = (create: RawBuilder<unknown>, scope: MergeScope) => sql`
    with created as (${create} returning company_id)
    insert into load_chunk_keys (load_id, chunk_no, entity, unchanged)
    select ${scope.loadId}, ${scope.chunkNo}, 'companies', array_agg(mark(key_hash(company_id), true, false))
    from created
    having count(*) > 0
    on conflict (load_id, chunk_no, entity) do update set
      unchanged = load_chunk_keys.unchanged || excluded.unchanged`;

/**
 * Removes the nulls that mark properties to be removed. New rows still contain these nulls, because
 * ON CONFLICT merges only rows that exist.
 */
export async function applyRemovals(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  const company = entity === 'users' ? sql`, company_id = nullif(p.company_id, '')` : sql``;
  await sql`
    update ${sql.table(entity)} p
    set metadata = sluice.without_nulls(p.metadata)${company}
    where p.environment_id = ${scope.environmentId}
      and p.${sql.ref(idColumn[entity])} = any (
        array(select key from ${sql.table(incomingTable[entity])} where removes)
      )
      and p.load_id = ${scope.loadId}`.execute(db);
}
