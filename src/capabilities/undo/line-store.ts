import { type RawBuilder, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { isKey } from '../../postgres/change-log.ts';
import type { UndoSource } from './store.ts';

/*
 * Selects the lines of an undo's reverse patch from the log of changes. For a profile that only the
 * undone loads and their undos changed, the query computes the finished line (`{…}`). For any other
 * profile, the lines (`[…]`) contain its changes and its state, and `ProfileWalk` computes the
 * result.
 */

/**
 * Profiles that the loads changed or removed, and profiles that they created and that have been
 * changed since.
 */
export function changedProfiles(entity: Entity, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, loads, undos, loadsOfUndos, all } = parameters(source);
  const changed = sql`
    select
      k.*,
      row_number() over (partition by key order by seq) as nth,
      count(*) over of_profile as changes,
      count(*) filter (where is_foreign) over of_profile as foreigns,
      bool_and(((is_theirs and not removed) or (is_undo and not is_foreign)) is true and is_others is not true) over of_profile as is_simple,
      bool_or(is_theirs or is_created) over of_profile as is_concerned
    from (
      select
        key, seq, position, removed, before, company_before, first_seen_before,
        ${isOneOf(sql`load_id`, loads)} as is_theirs,
        ${isOneOf(sql`load_id`, undos)} as is_undo,
        ${isOneOf(sql`load_before`, all)} is not true as is_foreign,
        ${isCreatedBy(entity, source, loads, sql`load_before`, sql`position_before`)} as is_created,
        ${isOneOf(sql`load_id`, loadsOfUndos)} or ${isOneOf(sql`load_before`, loadsOfUndos)} as is_others
      from changes
      where environment_id = ${environment} and entity = ${sql.lit(entity)} and position >= ${first}
    ) k
    where is_theirs or is_undo or is_others or is_created
    window of_profile as (partition by key)`;
  // True if nobody else has changed the profile since the change `c`.
  const isTheirs = sql`
    case
      when c.changes = 1 and c.position = p.position then true
      when p.key is not null and ${isOneOf(sql`p.written_by`, all)} is not true then false
      else c.changes = (
        select count(*)
        from changes l
        where l.environment_id = ${environment} and l.entity = ${sql.lit(entity)} and ${isKey('l.key', sql`c.key`)} and l.seq >= c.seq
      )
    end`;
  const line = (members: RawBuilder<unknown>) =>
    sql`'{"entity":"${sql.raw(entity)}","id":' || to_json(c.key)::text || ${members} || '}'`;
  const company = entity === 'users' ? sql`coalesce(to_json(c.company_before)::text, 'null')` : sql`'null'`;
  const state = sql`',"company":' || ${company} || ',"metadata":' || c.before::text`;
  const restored = line(sql`',"position":' || p.position || ${state}`);
  const removed =
    entity === 'users' ? line(sql`',"position":' || p.position || ',"removed":true'`) : sql`null`;
  const finished = sql`
    case
      when not (c.is_simple and c.foreigns = c.is_foreign::integer and ${isTheirs}) then null
      when c.is_created is not true then case when p.key is not null then ${restored} end
      when p.key is not null then ${removed}
      else ''
    end`;
  return linesOf(
    entity,
    source,
    sql`
      select c.key, ${finished} as line
      from (${changed}) c
      left join ${profile(entity, environment)} on p.key = c.key
      where c.is_concerned and c.nth = 1`,
  );
}

/** Profiles that the loads created and that nobody has changed since. */
export function madeProfiles(entity: Entity, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, loads, positions } = parameters(source);
  const isAlone = entity === 'users' ? sql`p.position in (select unnest(${positions}))` : sql`false`;
  return linesOf(
    entity,
    source,
    sql`
      select
        p.key, row_number() over (order by p.key) as nth,
        case when ${isAlone}
          then '{"entity":"${sql.raw(entity)}","id":' || to_json(p.key)::text || ',"position":' || p.position || ',"removed":true}'
        end as line
      from ${profile(entity, environment)}
      where p.position >= ${first}
        and ${isCreatedBy(entity, source, loads, sql`p.written_by`, sql`p.position`)}
        and not exists (${changesByLoads(entity, sql`p.key`, source)})`,
  );
}

/**
 * Condition that a load created the profile. A company that was created only because users refer to
 * it has no load id, so its position is compared with the positions of the loads.
 */
function isCreatedBy(
  entity: Entity,
  source: UndoSource,
  loads: RawBuilder<unknown>,
  load: RawBuilder<unknown>,
  position: RawBuilder<unknown>,
): RawBuilder<unknown> {
  if (entity === 'users') return isOneOf(load, loads);
  return sql`(${isOneOf(load, loads)} or (${load} is null and ${position} in (select unnest(${parameters(source).positions}))))`;
}

/**
 * Changes that the loads made to a profile, and changes that replaced a state written by the loads.
 */
function changesByLoads(entity: Entity, key: RawBuilder<unknown>, source: UndoSource): RawBuilder<unknown> {
  const { environment, first, loads } = parameters(source);
  return sql`
    select 1
    from changes t
    where t.environment_id = ${environment} and t.entity = ${sql.lit(entity)} and ${isKey('t.key', key)} and t.position >= ${first}
      and (${isOneOf(sql`t.load_id`, loads)} or ${isCreatedBy(entity, source, loads, sql`t.load_before`, sql`t.position_before`)})`;
}

const profile = (entity: Entity, environment: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
  select ${sql.ref(idColumn[entity])} as key, position, metadata, load_id as written_by,
    ${entity === 'users' ? sql`company_id` : sql`null::text`} as company
  from ${sql.table(entity)}
  where environment_id = ${environment}
) p`;

/**
 * For each profile, selects one finished line, or one line for each change and then one for the
 * state. A window function in `picked` prevents a parallel join. With `offset 0`, PostgreSQL
 * computes the finished line only once.
 */
function linesOf(entity: Entity, source: UndoSource, picked: RawBuilder<unknown>): RawBuilder<unknown> {
  const { environment, loads, positions } = parameters(source);
  const hasOtherUsers =
    entity === 'users'
      ? sql`false`
      : sql`exists (
          select 1
          from users m
          where m.environment_id = ${environment} and m.company_id = k.key
            and (${isOneOf(sql`m.load_id`, loads)} is not true or m.position not in (select unnest(${positions})))
            and not exists (${changesByLoads('users', sql`m.user_id`, source)})
        )`;
  return sql`
    select coalesce(k.line, s.line)
    from (${picked} offset 0) k
    left join lateral (
      (
        select '[' || json_build_object(
          'by', l.load_id, 'writtenBy', l.load_before, 'position', l.position_before, 'removed', l.removed, 'company', l.company_before,
          'properties', l.before::text, 'firstSeen', l.first_seen_before
        )::text as line
        from changes l
        where k.line is null and l.environment_id = ${environment} and l.entity = ${sql.lit(entity)} and ${isKey('l.key', sql`k.key`)}
        order by l.seq
      )
      union all
      (
        select '[' || json_build_object(
          'entity', '${sql.raw(entity)}', 'id', k.key, 'hasOtherUsers', ${hasOtherUsers},
          'now', (
            select json_build_object(
              'position', p.position, 'writtenBy', p.written_by, 'company', p.company, 'properties', p.metadata::text
            )
            from ${profile(entity, environment)}
            where p.key = k.key
          )
        )::text
        where k.line is null
      )
    ) s on true
    where k.line is distinct from ''`;
}

export function addedEvents(source: UndoSource): RawBuilder<unknown> {
  const { environment, positions } = parameters(source);
  return sql`
    select
      '{"entity":"events","removed":true,"from":' || e.position || ','
        || substr(json_build_object('user', e.user_id, 'id', e.event_id, 'at', e.inserted_at, 'type', e.event_type)::text, 2)
    from events e
    where e.environment_id = ${environment} and e.position = any(${positions})`;
}

const isOneOf = (load: RawBuilder<unknown>, loads: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`(${load} = any(${loads}))`;

/** Returns the values as SQL text, because COPY does not accept parameters. */
function parameters({ environmentId, loads, undos, loadsOfUndos, allUndone }: UndoSource) {
  const list = (items: readonly (number | string)[]) => sql`${`{${items.join()}}`}::bigint[]`;
  const positionsOf = (of: readonly number[]) => of.flatMap((load) => allUndone.get(load) ?? []);
  const first = positionsOf([...loads, ...loadsOfUndos]).reduce(
    (least, at) => Math.min(least, Number(at)),
    Number.MAX_SAFE_INTEGER,
  );
  return {
    environment: sql`${String(environmentId)}::integer`,
    first: sql`${String(first)}::bigint`,
    loads: list(loads),
    undos: list(undos),
    loadsOfUndos: list(loadsOfUndos),
    all: list([...loads, ...undos]),
    positions: list(positionsOf(loads)),
  };
}
