import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { EARLIEST_EVENT } from '../../domain/limits.ts';
import { changedBy, type Transaction } from '../database.ts';
import { copyText, incomingTable, type MergeScope, outcomeOf } from './incoming.ts';

/*
 * Dated rows: each may say since when it holds, and counts property by property only against what is older
 * (docs/decisions/loading.md, "Times of properties"). COPY into a table of their own, one row per record; folded by key into the
 * table that all batches come from, each property with its time; then the merge is that of all batches, but for what it sets.
 */

const datedTable = { users: 'dated_users', companies: 'dated_companies' } as const satisfies Record<
  Entity,
  string
>;

/** Properties that only fill in are dated before it (see `fillingTime`), and say nothing of when a profile was seen. */
const EARLIEST_SEEN = sql`${new Date(EARLIEST_EVENT)}::timestamptz`;

/** Companies that the batch's users name, those of records that lose too. */
export const namedByDated = sql`select company, min(at) filter (where at >= ${EARLIEST_SEEN}) as seen from dated_users where company <> '' group by company`;

async function prepareDated(client: pg.PoolClient): Promise<void> {
  await client.query(
    Object.values(datedTable)
      .map(
        (table) => `
          create temporary table if not exists ${table} (
            key text collate "C" not null,
            seq integer not null,
            at timestamptz,
            properties jsonb not null,
            company text collate "C",
            flags smallint not null
          ) on commit delete rows;`,
      )
      .join(''),
  );
}

/** Sends COPY text (see `DatedBuffer`) and folds it, by key, into the session's table for `entity`; returns how many keys. */
export async function copyDated(
  { client, db }: Transaction,
  entity: Entity,
  text: Buffer,
  scope: MergeScope,
): Promise<number> {
  await prepareDated(client);
  await copyText(client, `${datedTable[entity]} (key, seq, at, properties, company, flags)`, text);
  return changedBy(db)`
    insert into ${sql.table(incomingTable[entity])} (key, properties, company, flags, seen, times)
    select
      key,
      properties,
      company,
      flags,
      seen,
      sluice.incoming_times(properties, times, company, company_at, is_dated, ${accepted(scope)})
    from (
      select
        key,
        sluice.merged_properties(properties order by micros, seq) as properties,
        sluice.merged_properties(
          -- Most rows of users of events have none, and asking for their names would cost a tenth of the statement.
          case when properties <> '{}' then (select jsonb_object_agg(name, micros) from jsonb_object_keys(properties) name) end
          order by micros, seq
        ) as times,
        (array_agg(company order by micros desc, seq desc) filter (where company is not null))[1] as company,
        max(micros) filter (where company is not null) as company_at,
        bool_or(micros < ${accepted(scope)}) as is_dated,
        least(min(at) filter (where at >= ${EARLIEST_SEEN}), ${scope.acceptedAt}::timestamptz) as seen,
        bit_or(flags & 1::smallint) | bit_and(flags & 2::smallint) as flags
      from (
        select
          d.*,
          least(sluice.micros(d.at), ${accepted(scope)}) as micros
        from ${sql.table(datedTable[entity])} d
      ) records
      group by key
    ) folded`;
}

/** The time of records without a time of their own. */
const accepted = ({ acceptedAt }: Pick<MergeScope, 'acceptedAt'>): RawBuilder<number> =>
  sql<number>`sluice.micros(${acceptedAt}::timestamptz)`;

/** Lays the incoming row over `stored`, as a row `merged, merged_times, merged_company`. */
export function mergedDated(
  entity: Entity,
  stored: string,
  incoming: { readonly properties: string; readonly times: string; readonly company: string },
  scope: Pick<MergeScope, 'acceptedAt'>,
): RawBuilder<unknown> {
  const own = (column: string) => sql.ref(`${stored}.${column}`);
  const company = (column: RawBuilder<unknown>) => (entity === 'users' ? column : sql`null`);
  return sql`sluice.merge_dated(
    ${own('metadata')}, ${own('times')}, ${company(own('company_id'))}, ${own('last_seen_at')},
    ${sql.ref(incoming.properties)}, ${sql.ref(incoming.times)}, ${company(sql.ref(incoming.company))},
    ${accepted(scope)}
  )`;
}

export const ofBatch = { properties: 'i.properties', times: 'i.times', company: 'i.company' };
export const excluded = {
  properties: 'excluded.metadata',
  times: 'excluded.times',
  company: 'excluded.company_id',
};

/** Tells whether laying the incoming row `i` over the stored row `p` changes nothing, its times included. */
export function holdsDated(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  return sql<boolean>`(
    select m.merged = p.metadata
      ${entity === 'users' ? sql`and m.merged_company is not distinct from p.company_id` : sql``}
      and m.merged_times is not distinct from p.times
      and (i.seen >= p.first_seen_at) is not false
    from ${mergedDated(entity, 'p', ofBatch, scope)} m
  )`;
}

/**
 * Lays the batch over the table in key order. A row of which only times change keeps the marks it has: it is as if this load had
 * found nothing to change.
 */
export function upsertDated(entity: Entity, scope: MergeScope): RawBuilder<unknown> {
  const { isNew, touches, lastChunk } = outcomeOf(entity, scope);
  const table = sql.table(entity);
  const id = sql.ref(idColumn[entity]);
  const own = (column: string) => sql.ref(`${entity}.${column}`);
  const isUser = entity === 'users';
  return sql`
    insert into ${table} (
      environment_id, ${id}, metadata, times, first_seen_at, load_id, load_chunk, load_touches${isUser ? sql`, company_id` : sql``}
    )
    select
      ${scope.environmentId}::int, i.key, i.properties, i.times, i.seen, ${scope.loadId}::bigint, ${scope.chunkNo}::int, 1
      ${isUser ? sql`, i.company` : sql``}
    from ${sql.table(incomingTable[entity])} i
    order by i.key
    on conflict (environment_id, ${id}) do update set
      (
        metadata, times, first_seen_at, load_id, load_chunk, load_touches, last_seen_at, updated_at, position
        ${isUser ? sql`, company_id` : sql``}
      ) = (
        select
          m.merged,
          m.merged_times,
          least(${own('first_seen_at')}, excluded.first_seen_at),
          case when w.again or w.changed then excluded.load_id else ${own('load_id')} end,
          case
            when w.again then greatest(${own('load_chunk')}, excluded.load_chunk)
            when w.changed then excluded.load_chunk
            else ${own('load_chunk')}
          end,
          case when w.again then ${own('load_touches')} + 1 when w.changed then 1 else ${own('load_touches')} end,
          excluded.last_seen_at,
          case when w.again or w.changed then excluded.updated_at else ${own('updated_at')} end,
          case when w.again or w.changed then excluded.position else ${own('position')} end
          ${isUser ? sql`, m.merged_company` : sql``}
        from ${mergedDated(entity, entity, excluded, scope)} m
        cross join lateral (
          select
            coalesce(${own('load_id')} = excluded.load_id, false) as again,
            m.merged <> ${own('metadata')}
              ${isUser ? sql`or m.merged_company is distinct from ${own('company_id')}` : sql``} as changed
        ) w
      )
    returning ${id} as key, ${isNew} as is_new, ${touches} as touches, ${lastChunk} as last_chunk`;
}
