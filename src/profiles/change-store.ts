import { sql } from 'kysely';
import { MiB } from '../base/bytes.ts';
import { MAX_PAGE_BYTES } from '../base/limits.ts';
import { nextOf } from '../base/pages.ts';
import type { Entity } from '../domain/entity.ts';
import { isKey } from '../postgres/change-log.ts';
import { instantText } from '../postgres/columns.ts';
import { type Database, findValue, rowsOf } from '../postgres/database.ts';
import type { ChangeMaker, ProfileChange } from './api.ts';

/** Maximum size of the stored versions on a page. Only the first version may exceed the limit. */
const MAX_HISTORY_BYTES = 8 * MiB;

/*
 * Reads the logged changes of a profile. For each change, the log contains the version of the
 * profile before the change.
 */

export interface ProfileKey {
  readonly environmentId: number;
  readonly entity: Entity;
  readonly id: string;
}

const madeBy = sql<ChangeMaker>`case
  when c.load_id is not null then 'load'
  when c.is_operator then 'operator'
  when c.removed then 'deletion'
  else 'request'
end`;
const job = sql<ProfileChange['job']>`(
  select json_build_object('job_id', l.job_id, 'type', l.type, 'filename', l.filename)
  from loads l
  where l.load_id = c.load_id
)`;

export interface HistoryPage {
  /** JSON, newest first. */
  readonly changes: readonly { readonly json: string }[];
  readonly next: number | null;
}

/**
 * Reads the changes of a profile that precede `after`, newest first. A page is limited by the bytes
 * of its JSON and of the stored versions, because unpacking them takes time. Always returns at
 * least one change if there is one.
 */
export async function readHistory(
  db: Database,
  { environmentId, entity, id }: ProfileKey,
  { limit, after }: { readonly limit: number; readonly after: number | null },
): Promise<HistoryPage> {
  const rows = await rowsOf<{ place: number; json: string; count: number }>(db)`
    select place, json, count
    from (
      select place, json, count, sum(octet_length(json)) over w - octet_length(json) as bytes
      from (
        select
          c.seq as place, c.count,
          json_build_object(
            'at', ${instantText(sql`c.at`)},
            'action', case when c.removed then 'removed' else 'changed' end,
            'by', ${madeBy},
            'job', ${job},
            'before', case
              when c.before is not null then json_build_object('metadata', c.before, 'company_id', c.company_before)
            end
          )::text as json
        from (
          select
            *,
            count(*) over () as count,
            sum(pg_column_size(before)) over (order by seq desc rows unbounded preceding) - pg_column_size(before) as stored
          from (
            select *
            from changes
            where environment_id = ${environmentId} and entity = ${entity} and ${isKey('key', sql`${id}::text`)}
              and seq < ${after ?? Number.MAX_SAFE_INTEGER}::bigint
            order by seq desc
            limit ${limit + 1}
          ) newest
        ) c
        where coalesce(c.stored, 0) < ${MAX_HISTORY_BYTES}::int
        order by c.seq desc
        limit ${limit}
      ) images
      window w as (order by place desc rows unbounded preceding)
    ) sized
    where bytes < ${MAX_PAGE_BYTES}::int
    order by place desc`;
  const hasMore = (rows[0]?.count ?? 0) > rows.length;
  return { changes: rows, next: nextOf(rows, hasMore, ({ place }) => place) };
}

/** Returns the time since which changes have been logged. `null` if changes are not logged. */
export function readChangesKeptSince(db: Database): Promise<string | null> {
  const since = instantText(sql`complete_since_at`);
  return findValue<string>(db)`select ${since} from change_log where complete_since_at is not null`;
}
