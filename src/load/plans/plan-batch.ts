/*
 * Plans the merge of a batch: stores rows in `planned_rows` and leaves the profiles unchanged. Each
 * chunk compares its rows only with stored profiles. When all chunks are done, `replanIncoming`
 * combines the rows of keys that occur in several chunks, in file order. Plans and merges agree,
 * because both use the expressions in `incoming.ts`.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { type Database, rowOf, type Transaction } from '../../postgres/database.ts';
import { holdsIncoming, incomingTable, type MergeScope, merged, mergedCompany } from '../merge/incoming.ts';
import { type Batch, copyBatch, countClassified, type Merged } from '../merge/merge-batch.ts';
import { namedCompanies, unknownCompanies } from '../merge/upsert.ts';

/**
 * Counts the outcomes that a merge would have. If `keepsRows` is true, also stores the rows that
 * the merge would change.
 */
export async function planBatch(transaction: Transaction, batch: Batch, keepsRows: boolean): Promise<Merged> {
  const { db } = transaction;
  const { entity, scope } = batch;
  await copyBatch(transaction, batch);
  return rowOf<Merged>(db)`
    with classified as materialized (${classified(entity, scope, keepsRows)}),
    ${keepsRows ? planned(entity, scope) : sql``}
    ${countClassified(entity, scope)}`;
}

function planned(entity: Entity, scope: MergeScope): RawBuilder<unknown> {
  const place = sql`${scope.loadId}, ${scope.chunkNo}`;
  const changes = sql`is_unchanged is not true`;
  return sql`
    planned as (
      insert into planned_rows (
        load_id, chunk_no, is_new, entity, key, before, company_before, after, company_after
      )
      select ${place}, before is null, ${entity}, key, before, company_before, after, company_after
      from classified
      where ${changes}
    ),
    summed as (
      insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, properties)
      select
        ${place},
        ${entity},
        count(*) filter (where is_unchanged is null),
        count(*) filter (where not is_unchanged),
        (${changesByName(sql`(select * from classified where ${changes})`, sql`coalesce(c.changes, c.after)`)})
      from classified
      where ${changes}
      having count(*) > 0
    ),`;
}

/**
 * SQL query that compares each row with its stored profile. `is_unchanged` is true if the row
 * changes nothing, and `null` if the profile is new.
 */
function classified(entity: Entity, scope: MergeScope, keepsRows: boolean): RawBuilder<unknown> {
  const after = merged(sql.ref('before'), sql.ref('properties'), scope);
  const company = mergedCompany(sql.ref('company_before'), sql.ref('company'), scope);
  const isUnchanged = holdsIncoming(entity, scope);
  return sql`
    select
      key, is_counted, is_unchanged
      ${
        keepsRows
          ? sql`, before, company_before,
      case when not is_unchanged then properties end as changes,
      case when is_unchanged is null then ${asNew(scope)} when not is_unchanged then ${after} end as after,
      case when is_unchanged is null then nullif(company, '') when not is_unchanged then ${company} end as company_after`
          : sql``
      }
    from (
      select
        i.key, i.is_counted, i.properties, i.company,
        p.metadata as before,
        p.company_id as company_before,
        case when p.metadata is not null then ${isUnchanged} end as is_unchanged
      from ${sql.table(incomingTable[entity])} i
      left join lateral (${stored(entity, scope)}) p on true
    ) found`;
}

const asNew = (scope: MergeScope): RawBuilder<unknown> =>
  scope.removes ? sql`sluice.without_nulls(properties)` : sql`properties`;

/** The limit guarantees an index lookup per row (see `dropUnchanged`). */
const stored = (entity: Entity, scope: MergeScope): RawBuilder<unknown> => sql`
  select p.metadata, ${entity === 'users' ? sql`p.company_id` : sql`null::text as company_id`}
  from ${sql.table(entity)} p
  where p.environment_id = ${scope.environmentId} and p.${sql.ref(idColumn[entity])} = i.key
  limit 1`;

/**
 * SQL query that counts, for each property, the values that are added, replaced or removed, or that
 * change their type. `names` are the names to examine in a row. For a new row, these must be the
 * names in `after`. Every condition tests `before` first, because most rows of most plans are new.
 */
const changesByName = (rows: RawBuilder<unknown>, names: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select coalesce(jsonb_object_agg(name, jsonb_build_array(appear, change, go, retype)), '{}')
  from (
    select
      n.name,
      count(*) filter (where c.before is null or (not c.before ? n.name and c.after ? n.name)) as appear,
      count(*) filter (where c.before is not null and c.before -> n.name <> c.after -> n.name) as change,
      count(*) filter (where c.before is not null and c.before ? n.name and not coalesce(c.after, '{}') ? n.name) as go,
      count(*) filter (
        where c.before is not null and jsonb_typeof(c.before -> n.name) <> jsonb_typeof(c.after -> n.name)
      ) as retype
    from ${rows} c
    cross join lateral jsonb_object_keys(${names}) n (name)
    group by n.name
  ) counted
  where appear + change + go > 0`;

/** Numbers of new, changed and removed rows, and of changed values by property. */
export const sumsOf = (rows: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  count(*) filter (where is_new),
  count(*) filter (where not is_new and after is not null),
  count(*) filter (where after is null),
  (${changesByName(rows, sql`coalesce(c.before, '{}') || coalesce(c.after, '{}')`)})`;

export async function recordNewCompanies(db: Database, scope: MergeScope): Promise<void> {
  await sql`
    insert into planned_chunks (load_id, chunk_no, entity, companies)
    select ${scope.loadId}, ${scope.chunkNo}, 'companies', array_agg(unknown.company)
    from (${unknownCompanies(scope, namedCompanies())}) unknown
    having count(*) > 0
    on conflict (load_id, chunk_no, entity) do update set companies = excluded.companies`.execute(db);
}

const mergedRow = (scope: MergeScope): RawBuilder<unknown> => sql`select
  ${merged(sql.ref('s.metadata'), sql.ref('s.properties'), scope)} as merged,
  ${mergedCompany(sql.ref('s.company_id'), sql.ref('s.incoming_company'), scope)} as merged_company`;

/**
 * Merges the copied batch into the plan's rows with the same keys. If a key has no such row, merges
 * into the stored profile. Must be called for the chunks in file order. A second call for the same
 * chunk changes nothing, so an interrupted replay can continue.
 */
export async function replanIncoming(db: Database, entity: Entity, scope: MergeScope): Promise<void> {
  await sql`
    insert into planned_rows as r (
      load_id, chunk_no, is_new, is_repeated, entity, key, before, company_before, after, company_after
    )
    select
      ${scope.loadId}, ${scope.chunkNo}, s.before is null, true, ${entity}, s.key, s.before, s.company_before,
      case when s.metadata is null then sluice.without_nulls(s.properties) else m.merged end,
      case when s.metadata is null then nullif(s.incoming_company, '') else m.merged_company end
    from (
      select
        i.key, i.properties, i.company as incoming_company,
        r.key is not null as is_planned,
        case when r.key is null then p.metadata else r.before end as before,
        case when r.key is null then p.company_id else r.company_before end as company_before,
        case when r.key is null then p.metadata else r.after end as metadata,
        case when r.key is null then p.company_id else r.company_after end as company_id
      from ${sql.table(incomingTable[entity])} i
      left join planned_rows r
        on r.load_id = ${scope.loadId} and r.entity = ${entity} and r.key = i.key and r.is_repeated
      left join lateral (${stored(entity, scope)}) p on true
      where r.key is null or r.chunk_no < ${scope.chunkNo}
    ) s
    cross join lateral (${mergedRow(scope)}) m
    where s.is_planned
      or s.metadata is null
      or m.merged <> s.metadata
      or m.merged_company is distinct from s.company_id
    on conflict (load_id, entity, key) where is_repeated do update set
      chunk_no = excluded.chunk_no,
      after = excluded.after,
      company_after = excluded.company_after`.execute(db);
}
