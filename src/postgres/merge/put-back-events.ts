import { sql } from 'kysely';
import { byEventKind, type EventKind } from '../../domain/entity.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../../domain/load.ts';
import type { Database } from '../database.ts';
import { linesOf, type Moved, type PatchContent, type PatchScope, text } from './patch-lines.ts';

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
