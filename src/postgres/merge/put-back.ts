/*
 * Applies lines of a reverse patch: each profile becomes, as a whole, what it was. Whoever changed it since the patch was written wins,
 * property by property: then its position is no longer the one in the line, and the log has what the patch saw.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import { from as copyFrom } from 'pg-copy-streams';
import { byEventKind, type Entity, type EventKind, idColumn } from '../../domain/entity.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../../domain/load.ts';
import type { Database, Transaction } from '../database.ts';
import { isKey } from '../stores/change-log.ts';
import { excluded as filling, mergedDated } from './dated.ts';
import { sumsOf } from './plan-batch.ts';

export interface PatchScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
}

/** A line that was not applied, because somebody else has changed the profile. */
export interface RefusedLine {
  /** Its place in the chunk, from 0. */
  readonly line: number;
  readonly entity: Entity;
  /** The properties that it leaves as they are. */
  readonly names: readonly string[];
}

export interface AppliedLines {
  readonly outcomes: Outcomes;
  readonly refused: readonly RefusedLine[];
}

/** The number of lines by what they are about and what they do. */
export type PatchContent = Readonly<Record<string, number>>;

/** Brings the lines of a chunk into the session's table for them. Each ends with a newline. */
export async function copyPatch({ client, db }: Transaction, lines: Buffer): Promise<PatchContent> {
  await client.query(`
    create temporary table if not exists patch_lines (number bigint generated always as identity, line jsonb not null)
    on commit delete rows`);
  // JSON text has neither character: each line is one cell, as it is.
  const options = "format csv, quote E'\\x01', delimiter E'\\x02'";
  await pipeline(
    Readable.from([lines], { objectMode: false }),
    client.query(copyFrom(`copy patch_lines (line) from stdin (${options})`)),
  );
  const { rows } = await sql<{ content: PatchContent }>`
    select coalesce(json_object_agg(does, lines), '{}') as content
    from (
      select
        line ->> 'entity' || case
          when line ? 'kept' then ' kept'
          when line ? 'filled' then ' filled'
          when line ? 'removed' then ' removed'
          when line ? 'position' then ' restored'
          else ' back'
        end as does,
        count(*) as lines
      from patch_lines
      group by 1
    ) counted`.execute(db);
  return rows[0]?.content ?? {};
}

/** Applies the lines of users or of companies. */
export async function putBackProfiles(
  db: Database,
  entity: Entity,
  scope: PatchScope,
  content: PatchContent,
): Promise<AppliedLines> {
  const lines = (does: string): number => content[`${entity} ${does}`] ?? 0;
  const filled = lines('filled') === 0 ? 0 : await fillIn(db, scope);
  const inserted = lines('back') === 0 ? 0 : await bringBack(db, entity, scope);
  const updated = lines('restored') === 0 ? 0 : await restore(db, entity, scope);
  const removed = lines('removed') === 0 ? 0 : await remove(db, entity, scope);
  const refused = lines('kept') === 0 ? [] : await readKept(db, entity);
  const left = lines('back') + lines('restored') + lines('removed') - inserted - updated - removed;
  const yielded = left === 0 ? noneLeft : await yieldToOthers(db, entity, scope);
  if (entity === 'companies' && (content['users back'] ?? content['users restored'] ?? 0) > 0)
    await nameCompanies(db, scope);
  const rejected = refused.length + yielded.refused.length;
  const unchanged = left - yielded.updated - yielded.refused.length;
  const made = { inserted: inserted + filled, updated: updated + yielded.updated + lines('filled') - filled };
  const done = { ...made, removed, rejected, unchanged };
  return { outcomes: addOutcomes(noOutcomes, done), refused: [...refused, ...yielded.refused] };
}

type Moved = Pick<Outcomes, 'inserted' | 'updated' | 'removed'>;

/** Plans the lines of users or of companies instead: keeps the rows that they would change, beside what is stored. */
export async function planPutBack(
  db: Database,
  entity: Entity,
  scope: PatchScope,
  content: PatchContent,
): Promise<AppliedLines> {
  const place = sql`${scope.loadId}::bigint, ${scope.chunkNo}::int`;
  const { rows } = await sql<Moved>`
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
    from planned`.execute(db);
  const { inserted = 0, updated = 0, removed = 0 } = rows[0] ?? {};
  const refused = await readKept(db, entity);
  const lines = (does: string): number => content[`${entity} ${does}`] ?? 0;
  const unchanged = lines('back') + lines('restored') + lines('removed') - inserted - updated - removed;
  const done = { inserted, updated, removed, rejected: refused.length, unchanged };
  return { outcomes: addOutcomes(noOutcomes, done), refused };
}

/** Counts the lines of events as what they would do. */
export async function planEvents(db: Database): Promise<Readonly<Record<EventKind, Outcomes>>> {
  const { rows } = await sql<{ kind: EventKind } & Moved>`
    select
      ${text('type')} as kind, count(*) filter (where not line ? 'removed')::int as inserted,
      count(*) filter (where line ? 'to')::int as updated,
      count(*) filter (where line ? 'removed' and not line ? 'to')::int as removed
    from ${linesOf('events', sql`true`)}
    group by 1`.execute(db);
  const kinds = byEventKind(() => noOutcomes);
  for (const { kind, ...counts } of rows) kinds[kind] = addOutcomes(noOutcomes, counts);
  return kinds;
}

const text = (name: string) => sql`l.line ->> ${sql.lit(name)}`;
const position = sql`(${text('position')})::bigint`;
const first = sql`(select min(number) from patch_lines)`;

const linesOf = (entity: Entity | 'events', condition: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
  select * from patch_lines l where ${text('entity')} = ${entity} and ${condition} order by number
) l`;

/** The profile `p` of each line. With a limit it is always an index look-up per line, whatever the planner knows of the table. */
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

/** The lines whose profile is still as the patch saw it, each with its place. One that is changed meanwhile moves from there. */
const unmoved = (
  entity: Entity,
  scope: PatchScope,
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`(
  select l.line, f.place
  from ${linesOf(entity, condition)}
  cross join ${profileOf(entity, scope, sql`p.position = ${position}`)} f
) l`;

/** Lays under profiles of persons what their aliases had. Returns how many are new. */
async function fillIn(db: Database, scope: PatchScope): Promise<number> {
  const { rows } = await sql<{ inserted: number }>`
    with written as (
      insert into users (
        environment_id, user_id, metadata, times, company_id, first_seen_at, last_seen_at, load_id, load_chunk, load_touches
      )
      select
        ${scope.environmentId}::int, ${text('id')}, l.line -> 'metadata', l.line -> 'times', ${text('company')},
        (${text('first_seen_at')})::timestamptz, (${text('last_seen_at')})::timestamptz,
        ${scope.loadId}::bigint, ${scope.chunkNo}::int, 1
      from ${linesOf('users', sql`line ? 'filled'`)}
      on conflict (environment_id, user_id) do update set
        (metadata, times, company_id) = (
          select m.merged, m.merged_times, m.merged_company
          from ${mergedDated('users', 'users', filling, { acceptedAt: 'now' })} m
        ),
        first_seen_at = least(users.first_seen_at, excluded.first_seen_at),
        last_seen_at = greatest(users.last_seen_at, excluded.last_seen_at),
        digest = null,
        load_id = excluded.load_id,
        load_chunk = excluded.load_chunk,
        load_touches = 1,
        updated_at = excluded.updated_at,
        position = excluded.position
      returning xmax = 0 as is_new
    )
    select count(*) filter (where is_new)::int as inserted from written`.execute(db);
  return rows[0]?.inserted ?? 0;
}

async function bringBack(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  const isUser = entity === 'users';
  const { numAffectedRows } = await sql`
    insert into ${sql.table(entity)} (
      environment_id, ${sql.ref(idColumn[entity])}, metadata, first_seen_at, load_id, load_chunk, load_touches
      ${isUser ? sql`, company_id` : sql``}
    )
    select
      ${scope.environmentId}::int, ${text('id')}, l.line -> 'metadata', coalesce((${text('first_seen_at')})::timestamptz, now()),
      ${scope.loadId}::bigint, ${scope.chunkNo}::int, 1
      ${isUser ? sql`, ${text('company')}` : sql``}
    from ${linesOf(entity, sql`not line ?| array['kept', 'filled', 'removed', 'position']`)}
    where true
    ${isUser ? sql`and not exists (select 1 from aliases where environment_id = ${scope.environmentId} and alias = ${text('id')})` : sql``}
    on conflict do nothing`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Makes the companies that users belong to again, if they are still gone: the load that made them may be undone. */
async function nameCompanies(db: Database, { environmentId, loadId, chunkNo }: PatchScope): Promise<void> {
  await sql`
    insert into companies (environment_id, company_id, load_id, load_chunk, load_touches)
    select distinct ${environmentId}::int, ${text('company')}, ${loadId}::bigint, ${chunkNo}::int, 1
    from ${linesOf('users', sql`line ->> 'company' is not null`)}
    on conflict do nothing`.execute(db);
}

async function restore(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  const { numAffectedRows } = await sql`
    update ${sql.table(entity)} p
    set ${written(entity, scope, sql`l.line -> 'metadata'`, sql`${text('company')}`)}
    from ${unmoved(entity, scope, sql`line ?& array['metadata', 'position']`)}
    where p.ctid = l.place`.execute(db);
  return Number(numAffectedRows ?? 0);
}

async function remove(db: Database, entity: Entity, scope: PatchScope): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from ${sql.table(entity)} p
    using ${unmoved(entity, scope, sql`line ? 'removed'`)}
    where p.ctid = l.place`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** The columns of a profile that is written. What is put back counts as set now. */
function written(
  entity: Entity,
  { loadId, chunkNo }: PatchScope,
  metadata: RawBuilder<unknown>,
  company: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const isUser = entity === 'users';
  const stored = isUser ? sql`p.company_id` : sql`null`;
  const leavesCompany = isUser ? sql`(p.company_id is null or ${company} is not null)` : sql`true`;
  const moved = isUser
    ? sql`case when p.company_id is distinct from ${company} then coalesce(${company}, '') end`
    : sql`null`;
  return sql`
    metadata = ${metadata},
    ${isUser ? sql`company_id = ${company},` : sql``}
    times = case
      when p.times is null and ${metadata} ?& array(select jsonb_object_keys(p.metadata)) and ${leavesCompany} then null
      else sluice.touch_times(
        p.times, p.last_seen_at, p.metadata, ${stored}, sluice.difference(p.metadata, ${metadata}), ${moved}, now()
      )
    end,
    digest = null,
    load_id = ${loadId},
    load_chunk = ${chunkNo},
    load_touches = 1,
    last_seen_at = now(),
    updated_at = now(),
    position = sluice.current_position()`;
}

async function readKept(db: Database, entity: Entity): Promise<readonly RefusedLine[]> {
  const { rows } = await sql<RefusedLine>`
    select (number - ${first})::int as line, ${entity} as entity, line -> 'kept' as names
    from ${linesOf(entity, sql`line ? 'kept'`)}`.execute(db);
  return rows;
}

/**
 * Selects the state of the profile `p` that the patch saw, the names of the properties that somebody has set or removed since, even if
 * they are as they were again, and whether its company was moved.
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

const noneLeft: Yielded = { updated: 0, refused: [] };

/** Puts back, in profiles that are no longer as the patch saw them, the properties that are. Locks first, to see what others have committed. */
async function yieldToOthers(db: Database, entity: Entity, scope: PatchScope): Promise<Yielded> {
  const id = sql.ref(`p.${idColumn[entity]}`);
  await sql`
    select 1
    from ${sql.table(entity)} p
    where p.environment_id = ${scope.environmentId}
      and ${id} = any (array(select ${text('id')} from ${linesOf(entity, sql`not line ?| array['kept', 'filled']`)}))
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
      from ${linesOf(entity, sql`not line ?| array['kept', 'filled']`)}
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

/**
 * Removes, brings back or moves events, with the ids that callers gave them. One that is neither where it was added nor brought back by an undo
 * came with a later load: an undo may be retried after it.
 */
export async function putBackEvents(
  db: Database,
  { environmentId }: PatchScope,
  content: PatchContent,
): Promise<Readonly<Record<EventKind, Outcomes>>> {
  const kinds = byEventKind(() => noOutcomes);
  if ((content['events back'] ?? 0) + (content['events removed'] ?? 0) === 0) return kinds;
  const { rows } = await sql<{ kind: EventKind; lines: number } & Moved>`
    with back as (
      insert into events (inserted_at, environment_id, event_id, event_type, event_name, user_id, company_id, source, metadata)
      select
        (${text('at')})::timestamptz, ${environmentId}::int, ${text('id')}, ${text('type')}, ${text('name')},
        ${text('user')}, ${text('company')}, ${text('source')}, l.line -> 'metadata'
      from ${linesOf('events', sql`not line ? 'removed'`)}
      where not exists (
        select 1
        from event_ids i
        where (l.line -> 'once')::boolean
          and i.environment_id = ${environmentId} and i.event_id = ${text('id')} and i.user_id = ${text('user')}
      )
      on conflict do nothing
      returning event_id, user_id, inserted_at, event_type
    ),
    noted as (
      insert into event_ids (environment_id, event_id, user_id, inserted_at)
      select ${environmentId}::int, b.event_id, b.user_id, b.inserted_at
      from back b
      join ${linesOf('events', sql`(line -> 'once')::boolean`)} on ${text('id')} = b.event_id and ${text('user')} = b.user_id
      on conflict do nothing
    ),
    by_undos as (
      select unnest(c.positions) as position
      from loads o
      join load_chunks c using (load_id)
      where o.environment_id = ${environmentId} and o.type in ('undo', 'join')
    ),
    gone as (
      delete from events e
      using (
        select f.part, f.place, ${text('to')} as person, (l.line -> 'once')::boolean as once
        from ${linesOf('events', sql`line ? 'removed'`)}
        cross join lateral (
          select s.tableoid as part, s.ctid as place
          from events s
          where s.environment_id = ${environmentId} and s.inserted_at = (${text('at')})::timestamptz
            and s.event_id = (${text('id')}) collate "C" and s.user_id = (${text('user')}) collate "C"
            and (s.position = (${text('from')})::bigint or s.position in (select position from by_undos))
          limit 1
        ) f
      ) l
      where e.tableoid = l.part and e.ctid = l.place
      returning e.*, l.person, l.once
    ),
    going as (
      select inserted_at, environment_id, event_id, event_type, event_name, person as user_id, company_id, source, metadata, once
      from gone
      where person is not null
    ),
    moved as (
      insert into events (inserted_at, environment_id, event_id, event_type, event_name, user_id, company_id, source, metadata)
      select distinct on (event_id, user_id)
        inserted_at, environment_id, event_id, event_type, event_name, user_id, company_id, source, metadata
      from going g
      where not exists (
        select 1
        from event_ids i
        where i.environment_id = ${environmentId} and i.event_id = g.event_id and i.user_id = g.user_id
      )
      order by event_id, user_id, inserted_at
      on conflict do nothing
      returning event_id, user_id, inserted_at, event_type
    ),
    noted_again as (
      insert into event_ids (environment_id, event_id, user_id, inserted_at)
      select ${environmentId}::int, m.event_id, m.user_id, m.inserted_at
      from moved m
      where exists (select 1 from going g where g.once and g.event_id = m.event_id and g.user_id = m.user_id)
      on conflict do nothing
    ),
    forgotten as (
      delete from event_ids i
      using (
        select f.ctid as place
        from gone g
        cross join lateral (
          select s.ctid
          from event_ids s
          where s.environment_id = ${environmentId} and s.event_id = g.event_id and s.user_id = g.user_id
            and s.inserted_at = g.inserted_at
          limit 1
        ) f
      ) l
      where i.ctid = l.place
    )
    select
      l.kind, l.lines::int,
      (select count(*)::int from back where event_type = l.kind) as inserted,
      (select count(*)::int from gone where event_type = l.kind) - (select count(*)::int from moved where event_type = l.kind) as removed,
      (select count(*)::int from moved where event_type = l.kind) as updated
    from (
      select ${text('type')} as kind, count(*) as lines from ${linesOf('events', sql`true`)} group by 1
    ) l`.execute(db);
  for (const { kind, lines, ...moved } of rows) {
    const unchanged = lines - moved.inserted - moved.updated - moved.removed;
    kinds[kind] = addOutcomes(noOutcomes, { ...moved, unchanged });
  }
  return kinds;
}
