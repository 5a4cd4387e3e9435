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
      count(*) filter (where line ? 'removed')::int as removed
    from ${linesOf('events', sql`true`)}
    group by 1`.execute(db);
  const kinds = byEventKind(() => noOutcomes);
  for (const { kind, ...counts } of rows) kinds[kind] = addOutcomes(noOutcomes, counts);
  return kinds;
}

/**
 * Removes or brings back events, with the ids that callers gave them. One that is neither where it was added nor brought back by an undo
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
      where o.environment_id = ${environmentId} and o.type = 'undo'
    ),
    gone as (
      delete from events e
      using (
        select f.part, f.place
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
      returning e.event_id, e.user_id, e.inserted_at, e.event_type
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
      (select count(*)::int from gone where event_type = l.kind) as removed
    from (
      select ${text('type')} as kind, count(*) as lines from ${linesOf('events', sql`true`)} group by 1
    ) l`.execute(db);
  for (const { kind, lines, ...moved } of rows) {
    const unchanged = lines - moved.inserted - moved.removed;
    kinds[kind] = addOutcomes(noOutcomes, { ...moved, unchanged });
  }
  return kinds;
}
