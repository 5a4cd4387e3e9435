/*
 * Applies the lines of a reverse patch, so that each profile returns to its earlier state. If the
 * position of a profile differs from that in its line, the profile was changed after the patch was
 * written. The log shows which properties were changed. These properties are not restored.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../../domain/load.ts';
import { sumsOf } from '../../load/plans/plan-batch.ts';
import { isKey } from '../../postgres/change-log.ts';
import { changedBy, type Database, rowOf, rowsOf } from '../../postgres/database.ts';
import { linesOf, type PatchContent, type PatchScope, text } from './patch-store.ts';

/** A line that is not applied, because somebody else has changed the profile. */
export interface RefusedLine {
  /** Position in the chunk, counted from 0. */
  readonly line: number;
  readonly entity: Entity;
  readonly names: readonly string[];
}

export interface AppliedLines {
  readonly outcomes: Outcomes;
  readonly refused: readonly RefusedLine[];
}

export async function putBackProfiles(
  db: Database,
  entity: Entity,
  scope: PatchScope,
  content: PatchContent,
): Promise<AppliedLines> {
  const lines = (does: string): number => content[`${entity} ${does}`] ?? 0;
  const inserted = lines('back') === 0 ? 0 : await bringBack(db, entity, scope);
  const updated = lines('restored') === 0 ? 0 : await restore(db, entity, scope);
  const removed = lines('removed') === 0 ? 0 : await remove(db, entity, scope);
  const refused = lines('kept') === 0 ? [] : await readKept(db, entity);
  const remaining = lines('back') + lines('restored') + lines('removed') - inserted - updated - removed;
  const yielded = remaining === 0 ? noneRemaining : await yieldToOthers(db, entity, scope);
  if (entity === 'companies' && (content['users back'] ?? content['users restored'] ?? 0) > 0)
    await nameCompanies(db, scope);
  const rejected = refused.length + yielded.refused.length;
  const unchanged = remaining - yielded.updated - yielded.refused.length;
  const outcomes = { inserted, updated: updated + yielded.updated, removed, rejected, unchanged };
  return { outcomes: addOutcomes(noOutcomes, outcomes), refused: [...refused, ...yielded.refused] };
}

export async function planPutBack(
  db: Database,
  entity: Entity,
  scope: PatchScope,
  content: PatchContent,
): Promise<AppliedLines> {
  const place = sql`${scope.loadId}::bigint, ${scope.chunkNo}::int`;
  const counts = await rowOf<Pick<Outcomes, 'inserted' | 'updated' | 'removed'>>(db)`
    with planned as (
      insert into planned_rows (load_id, chunk_no, is_new, entity, key, before, company_before, after, company_after)
      select
        ${place}, p.metadata is null, ${entity}, ${text('id')}, p.metadata,
        p.company_id, l.line -> 'metadata', ${text('company')}
      from ${linesOf(entity, sql`not line ? 'kept'`)}
      left join ${profileOf(entity, scope)} p on true
      where p.metadata is not null or l.line ? 'metadata'
      returning *
    ),
    summed as (
      insert into planned_chunks (load_id, chunk_no, entity, rows_new, rows_changed, rows_removed, properties)
      select ${place}, ${entity}, ${sumsOf(sql`planned`)}
      from planned
      having count(*) > 0
    )
    select
      count(*) filter (where is_new)::int as inserted,
      count(*) filter (where not is_new and after is not null)::int as updated,
      count(*) filter (where after is null)::int as removed
    from planned`;
  const refused = await readKept(db, entity);
  const lines = (does: string): number => content[`${entity} ${does}`] ?? 0;
  const all = lines('back') + lines('restored') + lines('removed');
  const unchanged = all - counts.inserted - counts.updated - counts.removed;
  const outcomes = { ...counts, rejected: refused.length, unchanged };
  return { outcomes: addOutcomes(noOutcomes, outcomes), refused };
}

const position = sql`(${text('position')})::bigint`;
const first = sql`(select min(number) from patch_lines)`;

/**
 * Finds the profile of each line of the patch. In `condition`, this profile is `p`. The `limit`
 * makes PostgreSQL look up each line in the index.
 */
const profileOf = (
  entity: Entity,
  { environmentId }: PatchScope,
  condition: RawBuilder<unknown> = sql`true`,
): RawBuilder<unknown> => sql`lateral (
  select p.ctid as place, p.metadata, p.position, ${entity === 'users' ? sql`p.company_id` : sql`null::text as company_id`}
  from ${sql.table(entity)} p
  where p.environment_id = ${environmentId} and p.${sql.ref(idColumn[entity])} = (${text('id')}) collate "C" and ${condition}
  limit 1
)`;

/**
 * Lines whose profile has not changed, with the `ctid` of its row. A concurrent change gives the
 * row a new `ctid`, so a statement that uses the old one skips the row.
 */
const unmoved = (
  entity: Entity,
  scope: PatchScope,
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`(
  select l.line, f.place
  from ${linesOf(entity, condition)}
  cross join ${profileOf(entity, scope, sql`p.position = ${position}`)} f
) l`;

function bringBack(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  const isUser = entity === 'users';
  return changedBy(db)`
    insert into ${sql.table(entity)} (
      environment_id, ${sql.ref(idColumn[entity])}, metadata, first_seen_at, load_id, load_chunk, load_touches
      ${isUser ? sql`, company_id` : sql``}
    )
    select
      ${scope.environmentId}::int, ${text('id')}, l.line -> 'metadata', coalesce((${text('first_seen_at')})::timestamptz, now()),
      ${scope.loadId}::bigint, ${scope.chunkNo}::int, 1
      ${isUser ? sql`, ${text('company')}` : sql``}
    from ${linesOf(entity, sql`not line ?| array['kept', 'removed', 'position']`)}
    where true
    on conflict do nothing`;
}

/** Creates missing companies, because the load that created them may have been undone. */
async function nameCompanies(db: Database, { environmentId, loadId, chunkNo }: PatchScope): Promise<void> {
  await sql`
    insert into companies (environment_id, company_id, load_id, load_chunk, load_touches)
    select distinct ${environmentId}::int, ${text('company')}, ${loadId}::bigint, ${chunkNo}::int, 1
    from ${linesOf('users', sql`line ->> 'company' is not null`)}
    on conflict do nothing`.execute(db);
}

function restore(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  return changedBy(db)`
    update ${sql.table(entity)} p
    set ${written(entity, scope, sql`l.line -> 'metadata'`, sql`${text('company')}`)}
    from ${unmoved(entity, scope, sql`line ?& array['metadata', 'position']`)}
    where p.ctid = l.place`;
}

function remove(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  return changedBy(db)`
    delete from ${sql.table(entity)} p
    using ${unmoved(entity, scope, sql`line ? 'removed'`)}
    where p.ctid = l.place`;
}

function written(
  entity: Entity,
  { loadId, chunkNo }: Pick<PatchScope, 'loadId' | 'chunkNo'>,
  metadata: RawBuilder<unknown>,
  company: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const isUser = entity === 'users';
  return sql`
    metadata = ${metadata},
    ${isUser ? sql`company_id = ${company},` : sql``}
    digest = null,
    load_id = ${loadId},
    load_chunk = ${chunkNo},
    load_touches = 1,
    last_seen_at = now(),
    updated_at = now(),
    position = sluice.current_position()`;
}

function readKept(db: Database, entity: Entity): Promise<readonly RefusedLine[]> {
  return rowsOf<RefusedLine>(db)`
    select (number - ${first})::int as line, ${entity} as entity, line -> 'kept' as names
    from ${linesOf(entity, sql`line ? 'kept'`)}`;
}

/**
 * `seen` is the state of `p` before its first change after the patch was written. `touched` lists
 * the properties changed since, even if the change was reverted.
 */
const touchedSince = (entity: Entity, { environmentId }: PatchScope): RawBuilder<unknown> => sql`
  select
    (array_agg(c.before order by c.seq))[1] as seen,
    coalesce(array_agg(distinct d.name) filter (where d.name is not null), '{}') as touched,
    bool_or(c.removed or c.company_before is distinct from c.company_after) as moved
  from (
    select
      seq, removed, before, company_before,
      min(seq) filter (where position_before = ${position}) over () as since,
      lead(before, 1, coalesce(p.metadata, '{}')) over (order by seq) as after,
      lead(company_before, 1, p.company_id) over (order by seq) as company_after
    from changes
    where environment_id = ${environmentId} and entity = ${entity} and ${isKey('key', text('id'))} and before is not null
  ) c
  left join lateral jsonb_object_keys(
    case when c.removed then c.before || c.after else sluice.difference(c.before, c.after) end
  ) d (name) on true
  where c.seq >= c.since`;

interface Yielded {
  readonly updated: number;
  readonly refused: readonly RefusedLine[];
}

const noneRemaining: Yielded = { updated: 0, refused: [] };

/**
 * Locks profiles that were changed after the patch was written, and restores their unchanged
 * properties.
 */
async function yieldToOthers(db: Database, entity: Entity, scope: PatchScope): Promise<Yielded> {
  const id = sql.ref(`p.${idColumn[entity]}`);
  await sql`
    select 1
    from ${sql.table(entity)} p
    where p.environment_id = ${scope.environmentId}
      and ${id} = any (array(select ${text('id')} from ${linesOf(entity, sql`not line ? 'kept'`)}))
      and p.position <> sluice.current_position()
    order by ${id}
    for update`.execute(db);
  const { rows } = await sql<RefusedLine & { isUpdated: boolean }>`
    with rest as materialized (
      select
        l.number, p.place, p.metadata as stored, p.company_id as stored_company,
        l.line ? 'removed' as removes,
        case when l.line ? 'position' then s.seen else '{}' end as seen,
        case when l.line ? 'position' then s.touched else array(select jsonb_object_keys(p.metadata)) end as touched,
        case when l.line ? 'position' then coalesce(s.moved, true) else p.company_id is not null end as moved,
        coalesce(l.line -> 'metadata', '{}') as wanted, ${text('company')} as wanted_company
      from ${linesOf(entity, sql`not line ? 'kept'`)}
      left join ${profileOf(entity, scope)} p on true
      cross join lateral (${touchedSince(entity, scope)}) s
      where p.position is distinct from sluice.current_position()
    ),
    aimed as materialized (
      select
        *,
        case
          when seen is null then stored
          else sluice.without_nulls(stored || (sluice.difference(seen, wanted) - touched))
        end as metadata,
        case when moved then stored_company else wanted_company end as company
      from rest
    ),
    updated as (
      update ${sql.table(entity)} p
      set ${written(entity, scope, sql`a.metadata`, sql`a.company`)}
      from aimed a
      where p.ctid = a.place and (a.metadata <> a.stored or a.company is distinct from a.stored_company)
      returning a.number
    )
    select
      (a.number - ${first})::int as line,
      ${entity} as entity,
      array(
        select jsonb_object_keys(sluice.difference(coalesce(a.seen, a.stored, '{}'), a.wanted)) name
        order by name
      ) as names,
      u.number is not null as "isUpdated"
    from aimed a
    left join updated u using (number)
    where u.number is not null
      or (a.stored is null and not a.removes)
      or a.stored <> a.wanted
      or a.stored_company is distinct from a.wanted_company`.execute(db);
  const refused = rows.flatMap(({ isUpdated, ...line }) => (isUpdated ? [] : [line]));
  return { updated: rows.length - refused.length, refused };
}
