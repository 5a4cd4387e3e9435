import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely';
import { MAX_PAGE_BYTES, MiB } from '../base/limits.ts';
import { nextOf } from '../base/pages.ts';
import { type Entity, idColumn, namingProperties } from '../domain/entity.ts';
import { isKey } from '../postgres/change-log.ts';
import { instantText } from '../postgres/columns.ts';
import { type Database, escapeLike, findValue, rowsOf } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import type { ChangeMaker, ProfileChange } from './api.ts';

export const profileAlias = 'profile';

const columns = {
  users: ['user_id', 'company_id', 'metadata', 'first_seen_at', 'last_seen_at', 'updated_at'],
  companies: ['company_id', 'metadata', 'first_seen_at', 'last_seen_at', 'updated_at'],
} as const satisfies Record<Entity, readonly string[]>;

const companyName = (environmentId: number) => sql`
  (
    select nullif(metadata ->> 'name', '')
    from companies
    where environment_id = ${environmentId} and company_id = stored.company_id
  ) as company_name`;

/** `profiles` is a complete query: PostgreSQL sorts and limits the rows before it renders them. */
function rendered(entity: Entity, environmentId: number, profiles: RawBuilder<unknown>): RawBuilder<unknown> {
  const members = columns[entity].flatMap((name) => {
    const column = sql.ref(`stored.${name}`);
    if (name === 'company_id' && entity === 'users') return [column, companyName(environmentId)];
    return name.endsWith('_at') ? sql`${instantText(column)} as ${sql.ref(name)}` : column;
  });
  return sql`
    select ${sql.ref(`stored.${idColumn[entity]}`)} as key, row_to_json(shown)::text as json
    from (${profiles}) stored
    cross join lateral (select ${sql.join(members)}) shown`;
}

function stored(entity: Entity, environmentId: number): RawBuilder<unknown> {
  return sql`
    select ${sql.join(columns[entity].map((name) => sql.ref(name)))}
    from ${sql.table(entity)} as ${sql.ref(profileAlias)}
    where environment_id = ${environmentId}`;
}

/** Returns a profile as JSON, or `null`. Uses a prepared statement, because calls are frequent. */
export async function readProfile(
  { db, pool }: Pick<Reader, 'db' | 'pool'>,
  entity: Entity,
  environmentId: number,
  id: string,
): Promise<string | null> {
  const profile = sql`${stored(entity, environmentId)} and ${sql.ref(idColumn[entity])} = ${id}`;
  const { sql: text, parameters } = rendered(entity, environmentId, profile).compile(db);
  const query = { name: `read-${entity}`, text, values: [...parameters] };
  const { rows } = await pool.query<{ json: string }>(query);
  return rows[0]?.json ?? null;
}

export interface KeyRange {
  readonly after: string | null;
  readonly upTo: string | null;
  readonly prefix?: string | null;
}

interface PageSize {
  readonly rows: number;
  /** Maximum size of a page as JSON, in bytes. Only the last row may exceed the limit. */
  readonly bytes: number;
}

export interface ReadProfile {
  readonly key: string;
  readonly json: string;
}

export async function readProfiles(
  db: Database,
  entity: Entity,
  environmentId: number,
  conditions: readonly Expression<SqlBool>[],
  range: KeyRange,
  size: PageSize,
): Promise<{ readonly profiles: readonly ReadProfile[]; readonly more: boolean }> {
  const key = sql.ref(idColumn[entity]);
  const page = sql`
    ${stored(entity, environmentId)} ${inRange(key, range)} ${sql.join(
      conditions.map((condition) => sql`and ${condition}`),
      sql` `,
    )}
    order by ${key}
    limit ${size.rows + 1}`;
  const { rows } = await sql<ReadProfile & { found: number }>`
    select key, json, found
    from (
      select
        key, json,
        count(*) over () as found,
        sum(octet_length(json)) over (order by key rows unbounded preceding) - octet_length(json) as before
      from (${rendered(entity, environmentId, page)}) made
    ) counted
    where before < ${size.bytes}
    order by key
    limit ${size.rows}`.execute(db);
  return { profiles: rows, more: (rows[0]?.found ?? 0) > rows.length };
}

/**
 * Takes the next `rows` profiles after the id `after`, and returns the id of the last one. `null`
 * if fewer profiles follow. Reads only the index.
 */
export function findRangeEnd(
  db: Database,
  entity: Entity,
  environmentId: number,
  after: string | null,
  rows: number,
  prefix: string | null,
): Promise<string | null> {
  const key = sql.ref(idColumn[entity]);
  return findValue<string>(db)`
    select ${key} as key
    from ${sql.table(entity)}
    where environment_id = ${environmentId} ${inRange(key, { after, upTo: null, prefix })}
    order by ${key}
    offset ${rows - 1}
    limit 1`;
}

/** Ids are sorted by their bytes (collation C), so the primary key also supports `prefix`. */
function inRange(key: RawBuilder<unknown>, { after, upTo, prefix = null }: KeyRange): RawBuilder<unknown> {
  const conditions = [
    ...(after === null ? [] : [sql`and ${key} > ${after}`]),
    ...(upTo === null ? [] : [sql`and ${key} <= ${upTo}`]),
    ...(prefix === null ? [] : [sql`and ${key} like ${`${escapeLike(prefix)}%`}`]),
  ];
  return sql.join(conditions, sql` `);
}

/**
 * True if the text is part of the id or of a property that may contain the profile's name. Ignores
 * case.
 */
export function isCalled(entity: Entity, text: string): RawBuilder<SqlBool> {
  const id = sql.ref(`${profileAlias}.${idColumn[entity]}`);
  const metadata = sql.ref(`${profileAlias}.metadata`);
  const names = sql.join([id, ...namingProperties.map((name) => sql`${metadata} ->> ${sql.lit(name)}`)]);
  const lower = (of: unknown) => sql`lower(${of} collate "default") collate "C"`;
  // ILIKE would take more than twice as long: it converts the pattern to lower case for each row.
  return sql<SqlBool>`${lower(sql`concat_ws(E'\\n', ${names})`)} like ${lower(`%${escapeLike(text)}%`)}`;
}

export function holdsOneOf(objects: readonly string[]): RawBuilder<SqlBool> {
  const metadata = sql.ref(`${profileAlias}.metadata`);
  return sql<SqlBool>`(${sql.join(
    objects.map((object) => sql`${metadata} @> ${object}::jsonb`),
    sql` or `,
  )})`;
}

export function isOfCompany(companyId: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`${sql.ref(`${profileAlias}.company_id`)} = ${companyId}`;
}

export function isWrittenBy(environmentId: number, jobId: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`${sql.ref(`${profileAlias}.load_id`)} = (
    select load_id from loads where environment_id = ${environmentId} and job_id = ${jobId}
  )`;
}

/** Maximum size of the stored versions on a page. */
const MAX_HISTORY_BYTES = 8 * MiB;

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
 * Reads the changes that precede `after`, newest first. A page is limited by the bytes of its JSON
 * and of the stored versions, because unpacking them takes time. The first change is returned even
 * if it exceeds these limits.
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

/** Returns the time since which all changes are logged. `null` if changes are not logged. */
export function readChangesKeptSince(db: Database): Promise<string | null> {
  const since = instantText(sql`complete_since_at`);
  return findValue<string>(db)`select ${since} from change_log where complete_since_at is not null`;
}
