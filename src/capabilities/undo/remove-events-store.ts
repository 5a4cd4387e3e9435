import { sql } from 'kysely';
import { byEventKind, type EventKind } from '../../domain/entity.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../../domain/load.ts';
import { type Database, rowsOf } from '../../postgres/database.ts';
import { linesOf, type PatchContent, type PatchScope, text } from './patch-store.ts';

type EventOutcomes = Readonly<Record<EventKind, Outcomes>>;

interface Removals {
  readonly kind: EventKind;
  readonly lines: number;
  readonly removed: number;
}

export async function planEvents(db: Database): Promise<EventOutcomes> {
  return outcomesOf(
    await rowsOf<Removals>(db)`
    select ${text('type')} as kind, count(*)::int as lines, count(*)::int as removed
    from ${linesOf('events', sql`true`)}
    group by 1`,
  );
}

/** Removes events and the ids that callers gave to them. Counts missing events as unchanged. */
export async function removeEvents(
  db: Database,
  { environmentId }: PatchScope,
  content: PatchContent,
): Promise<EventOutcomes> {
  if ((content['events removed'] ?? 0) === 0) return outcomesOf([]);
  return outcomesOf(
    await rowsOf<Removals>(db)`
    with gone as (
      delete from events e
      using (
        select f.part, f.place
        from ${linesOf('events', sql`true`)}
        cross join lateral (
          select s.tableoid as part, s.ctid as place
          from events s
          where s.environment_id = ${environmentId} and s.inserted_at = (${text('at')})::timestamptz
            and s.event_id = (${text('id')}) collate "C" and s.user_id = (${text('user')}) collate "C"
            and s.position = (${text('from')})::bigint
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
    select l.kind, l.lines::int, (select count(*)::int from gone where event_type = l.kind) as removed
    from (
      select ${text('type')} as kind, count(*) as lines from ${linesOf('events', sql`true`)} group by 1
    ) l`,
  );
}

function outcomesOf(rows: readonly Removals[]): EventOutcomes {
  const kinds = byEventKind(() => noOutcomes);
  for (const { kind, lines, removed } of rows)
    kinds[kind] = addOutcomes(noOutcomes, { removed, unchanged: lines - removed });
  return kinds;
}
