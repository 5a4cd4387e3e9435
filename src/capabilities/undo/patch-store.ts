/** The lines of a reverse patch, in a temporary table of the session. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type RawBuilder, sql } from 'kysely';
import { from as copyFrom } from 'pg-copy-streams';
import { byEventKind, type Entity, type EventKind } from '../../domain/entity.ts';
import { addOutcomes, noOutcomes, type Outcomes } from '../../domain/load.ts';
import { type Database, findValue, rowsOf, type Transaction } from '../../postgres/database.ts';

export interface PatchScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
}

export type PatchContent = Readonly<Record<string, number>>;

/** Returns the number of lines by kind. */
export async function copyPatch({ client, db }: Transaction, lines: Buffer): Promise<PatchContent> {
  await client.query(`
    create temporary table if not exists patch_lines (number bigint generated always as identity, line jsonb not null)
    on commit delete rows`);
  // Neither the quote nor the delimiter can occur in JSON, so COPY reads each line as one cell.
  const options = "format csv, quote E'\\x01', delimiter E'\\x02'";
  await pipeline(
    Readable.from([lines], { objectMode: false }),
    client.query(copyFrom(`copy patch_lines (line) from stdin (${options})`)),
  );
  const content = await findValue<PatchContent>(db)`
    select coalesce(json_object_agg(does, lines), '{}') as content
    from (
      select
        line ->> 'entity' || case
          when line ? 'kept' then ' kept'
          when line ? 'removed' then ' removed'
          when line ? 'position' then ' restored'
          else ' back'
        end as does,
        count(*) as lines
      from patch_lines
      group by 1
    ) counted`;
  return content ?? {};
}

export const text = (name: string) => sql`l.line ->> ${sql.lit(name)}`;

export const linesOf = (
  entity: Entity | 'events',
  condition: RawBuilder<unknown>,
): RawBuilder<unknown> => sql`(
  select * from patch_lines l where ${text('entity')} = ${entity} and ${condition} order by number
) l`;

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

/** Removes the events and the ids that callers gave them. Counts missing events as unchanged. */
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
