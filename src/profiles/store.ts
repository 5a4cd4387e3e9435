import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely';
import { type Entity, idColumn, namingProperties } from '../domain/entity.ts';
import { instantText } from '../postgres/columns.ts';
import { type Database, escapeLike, findValue } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';

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

/**
 * Renders the rows of `profiles` as JSON. `profiles` is a complete query, so that PostgreSQL sorts
 * and limits the rows before it renders them.
 */
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

function renderedProfile(entity: Entity, environmentId: number, id: string): RawBuilder<unknown> {
  return rendered(
    entity,
    environmentId,
    sql`${stored(entity, environmentId)} and ${sql.ref(idColumn[entity])} = ${id}`,
  );
}

/** Returns a profile as JSON, or `null`. Uses a prepared statement, because calls are frequent. */
export async function readProfile(
  { db, pool }: Pick<Reader, 'db' | 'pool'>,
  entity: Entity,
  environmentId: number,
  id: string,
): Promise<string | null> {
  const { sql: text, parameters } = renderedProfile(entity, environmentId, id).compile(db);
  const query = { name: `read-${entity}`, text, values: [...parameters] };
  const { rows } = await pool.query<{ json: string }>(query);
  return rows[0]?.json ?? null;
}

export interface KeyRange {
  readonly after: string | null;
  readonly upTo: string | null;
  readonly prefix?: string | null;
}

export interface PageSize {
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
 * Returns the last id of a range of `rows` profiles. `null` if fewer profiles follow `after`. Reads
 * only the index.
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

/**
 * Condition on ids. Ids are sorted by their bytes (collation C), so the index of the primary key
 * also supports `prefix`.
 */
function inRange(key: RawBuilder<unknown>, { after, upTo, prefix = null }: KeyRange): RawBuilder<unknown> {
  const conditions = [
    ...(after === null ? [] : [sql`and ${key} > ${after}`]),
    ...(upTo === null ? [] : [sql`and ${key} <= ${upTo}`]),
    ...(prefix === null ? [] : [sql`and ${key} like ${`${escapeLike(prefix)}%`}`]),
  ];
  return sql.join(conditions, sql` `);
}

/**
 * Condition that the text occurs in the id, or in a property that may contain the name of the
 * profile. Ignores case.
 */
export function isCalled(entity: Entity, text: string): RawBuilder<SqlBool> {
  const id = sql.ref(`${profileAlias}.${idColumn[entity]}`);
  const metadata = sql.ref(`${profileAlias}.metadata`);
  const names = sql.join([id, ...namingProperties.map((name) => sql`${metadata} ->> ${sql.lit(name)}`)]);
  const lower = (of: unknown) => sql`lower(${of} collate "default") collate "C"`;
  // ILIKE would take more than twice as long, because it converts the pattern to lower case for
  // each row.
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
