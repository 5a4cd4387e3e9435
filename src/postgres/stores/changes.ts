import { type RawBuilder, sql } from 'kysely';
import type { ChangeMaker, ProfileChange } from '../../api/profile.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { MAX_HISTORY_BYTES, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { instantText } from '../columns.ts';
import type { Database } from '../database.ts';
import type { Reader } from '../pool.ts';
import { isKey } from './change-log.ts';

/*
 * The log of changes, read for one profile. An image is the profile as it was before a change; the next newer image, or the profile as
 * it is, is what the change left. The making of a profile writes no image: it is told from the first image after it.
 */

export interface ProfileKey {
  readonly environmentId: number;
  readonly entity: Entity;
  readonly id: string;
}

const isComplete = (position: RawBuilder<unknown>) =>
  sql<boolean>`${position} >= (select complete_since from change_log)`;

/** Images from before the log was complete are left out: between them, changes may be missing. */
function imagesOf({ environmentId, entity, id }: ProfileKey): RawBuilder<unknown> {
  return sql`
    changes
    where environment_id = ${environmentId} and entity = ${entity} and ${isKey('key', sql`${id}::text`)} and ${isComplete(sql`position`)}`;
}

/**
 * The latest images up to a number and, beyond the first three, a size. `nth` counts them, `found` those that the number allows.
 * Uncompressed, since each is looked into often.
 */
const latest = (images: RawBuilder<unknown>, limit: number) => sql`
  select i.*, case when before is not null then before || '{}' end as content
  from (
    select
      i.*,
      count(*) over () as found,
      row_number() over w as nth,
      sum(pg_column_size(before)) over w as bytes
    from (select * from ${images} order by seq desc limit ${limit}::int) i
    window w as (order by seq desc rows unbounded preceding)
  ) i
  where nth <= 3 or bytes < ${MAX_HISTORY_BYTES}::int`;

/** The profile as it is, as an image has it. */
function current({ environmentId, entity, id }: ProfileKey): RawBuilder<unknown> {
  const company = entity === 'users' ? sql`company_id` : sql`null::text`;
  return sql`
    select metadata, ${company} as company, load_id, position, first_seen_at
    from ${sql.table(entity)}
    where environment_id = ${environmentId} and ${sql.ref(idColumn[entity])} = ${id}`;
}

/** Selects who made the changes `e`, and the load if it is still there. */
const madeBy = sql<ChangeMaker>`case
  when e.load_id is not null then 'load'
  when e.is_operator then 'operator'
  when e.action = 'removed' then 'deletion'
  else 'request'
end`;
const job = sql<ProfileChange['job']>`(
  select json_build_object('job_id', l.job_id, 'type', l.type, 'filename', l.filename)
  from loads l
  where l.load_id = e.load_id
)`;

/** The log that is off knows nothing from before now. */
const logBegins = sql`coalesce(complete_since_at, now())`;

/** Selects null if the log goes back to the first write, which was at `position`. */
const completeSince = (position: RawBuilder<unknown>) => sql<string | null>`(
  select case when ${position} >= complete_since is not true then ${instantText(logBegins)} end
  from change_log
)`;

const firstPosition = (images: RawBuilder<unknown>, now: RawBuilder<unknown>) => sql`coalesce(
  (select position_before from ${images} order by seq limit 1),
  (select position from ${now})
)`;

export interface HistoryPage {
  /** JSON, newest first. */
  readonly changes: readonly { readonly json: string }[];
  /** The place after which the next page begins; null: this is the last. */
  readonly next: number | null;
  readonly completeSince: string | null;
}

/** The images that a page needs, each with the state that the change left: that of the next newer image, if it is not the newest. */
const states = (profile: ProfileKey, limit: number, before: number) => sql`
  with images as materialized (
    ${latest(sql`${imagesOf(profile)} and seq <= ${Math.ceil(before / 2)}::bigint`, limit + 2)}
  ),
  now as materialized (${current(profile)}),
  states as (
    select
      *,
      lag(content) over w as newer,
      lag(company_before) over w as newer_company,
      nth = 1 as is_newest,
      -- A deletion may leave several rows.
      before is null and lag(before is null) over w is true as is_repeated,
      coalesce(
        lead(removed) over w,
        nth = found and found < ${limit + 2}::int and ${isComplete(sql`position_before`)}
      ) as was_made
    from images
    window w as (order by seq desc)
  )`;

/** Selects what the images tell: changes, removals, and that profiles were made. `all` has the images of this page and all newer ones. */
const entries = (all: RawBuilder<unknown>) => sql`
  select
    2 * seq as place, at, case when removed and not is_repeated then 'removed' else 'changed' end as action,
    s.load_id, is_operator, content as before, company_before,
    case when removed then null when is_newest then now.metadata else newer end as after,
    case when removed then null when is_newest then now.company else newer_company end as company_after
  from states s
  left join now on is_newest
  union all
  select
    2 * seq - 1,
    coalesce(
      (
        select r.first_seen_before
        from (select * from ${all}) r
        where r.seq >= s.seq and r.removed
        order by r.seq
        limit 1
      ),
      now.first_seen_at
    ),
    'made', load_before, false, null, null, content, company_before
  from states s
  left join now on true
  where was_made and before is not null
  union all
  select
    2 * coalesce(s.seq, 0) + 1, now.first_seen_at, 'made', now.load_id, false, null, null, now.metadata, now.company
  from now
  left join states s on is_newest
  where coalesce(s.removed, ${isComplete(sql`now.position`)})`;

/** Entries as the API has them; null where nothing differs. */
const shownEntries = sql`
  select
    place,
    case
      when action <> 'changed' or properties is not null or company_before is distinct from company_after
      then json_build_object(
        'at', ${instantText(sql`e.at`)},
        'action', action,
        'by', ${madeBy},
        'job', ${job},
        'properties', coalesce(properties, '[]'),
        'company', case
          when company_before is distinct from company_after
          then json_build_object('before', company_before, 'after', company_after)
        end
      )::text
    end as json
  from entries e
  cross join lateral (
    select
      json_agg(
        json_build_object('name', key, 'before', b.value, 'after', a.value) order by key collate "C"
      ) as properties
    from jsonb_each(before) b
    full join jsonb_each(after) a using (key)
    where b.value is distinct from a.value
  ) d`;

/**
 * Reads changes of a profile, newest first. The places of entries: twice the `seq` of a change; one less for the making of the
 * profile that it changed first. Changes that made no difference are passed over, so a page may be short.
 */
export async function readHistory(
  { db, pool }: Pick<Reader, 'db' | 'pool'>,
  profile: ProfileKey,
  { limit, after }: { readonly limit: number; readonly after: number | null },
): Promise<HistoryPage> {
  const before = after ?? Number.MAX_SAFE_INTEGER;
  // The first page looks into the log, of a partition a day, only once: opening the partitions is most of its time.
  const all = after === null ? sql`images` : imagesOf(profile);
  // The newest image is what a change of this page left; the oldest may be where a profile that was made anew had ended.
  const { sql: text, parameters } = sql`
    ${states(profile, limit, before)},
    entries as (${entries(all)}),
    shown as (${shownEntries} where place < ${before}::bigint)
    select
      coalesce(
        json_agg(json_build_object('place', place, 'json', json) order by place desc) filter (
          where bytes_before < ${MAX_PAGE_BYTES}::int and nth <= ${limit}::int
        ),
        '[]'
      ) as page,
      count(*)::int as found,
      (select max(nth) < max(found) from images) is true as "isCut",
      ${completeSince(firstPosition(sql`images`, sql`now`))} as "completeSince"
    from (
      select
        place, json, row_number() over w as nth,
        coalesce(sum(octet_length(json)) over w - octet_length(json), 0) as bytes_before
      from shown
      window w as (order by place desc rows unbounded preceding)
    ) counted`.compile(db);
  const name = `history-${profile.entity}-${after === null ? 'first' : 'next'}`;
  const { rows } = await pool.query<Found>({ name, text, values: [...parameters] });
  const [{ page, found, isCut, completeSince: since }] = rows as [Found];
  const changes = page.flatMap(({ json }) => (json === null ? [] : [{ json }]));
  const next = isCut || found > page.length ? (page.at(-1)?.place ?? null) : null;
  const isWhole = after === null && next === null;
  return { changes, next, completeSince: isWhole ? since : await readCompleteSince(db, profile) };
}

async function readCompleteSince(db: Database, profile: ProfileKey): Promise<string | null> {
  const first = firstPosition(imagesOf(profile), sql`(${current(profile)}) now`);
  const { rows } = await sql<Pick<Found, 'completeSince'>>`
    select ${completeSince(first)} as "completeSince"`.execute(db);
  return rows[0]?.completeSince ?? null;
}

interface Found {
  readonly page: readonly { readonly place: number; readonly json: string | null }[];
  readonly found: number;
  readonly isCut: boolean;
  readonly completeSince: string | null;
}
