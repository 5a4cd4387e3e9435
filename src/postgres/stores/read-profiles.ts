/** The SQL that reads profiles back, one or a page of them, as JSON text: their numbers keep every digit. */
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import type { Database } from '../database.ts';
import type { Reader } from '../reader.ts';

/** What conditions call the table. */
export const profileAlias = 'profile';

/** In the order of the answer. */
const columns = {
  users: ['user_id', 'company_id', 'metadata', 'first_seen_at', 'last_seen_at', 'updated_at'],
  companies: ['company_id', 'metadata', 'first_seen_at', 'last_seen_at', 'updated_at'],
} as const satisfies Record<Entity, readonly string[]>;

/** An instant with its microseconds, in UTC. */
export function instantText(column: RawBuilder<unknown>): RawBuilder<string> {
  return sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** One JSON text for each row of `profiles`, which is a select of the columns. Made last: what is sorted is what is stored. */
function rendered(entity: Entity, profiles: RawBuilder<unknown>): RawBuilder<unknown> {
  const members = columns[entity].map((name) => {
    const column = sql.ref(`stored.${name}`);
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

/** Null: there is none. Prepared, since it is asked for one at a time. */
export async function readProfile(
  { db, pool }: Pick<Reader, 'db' | 'pool'>,
  entity: Entity,
  environmentId: number,
  id: string,
): Promise<string | null> {
  const one = sql`${stored(entity, environmentId)} and ${sql.ref(idColumn[entity])} = ${id}`;
  const { sql: text, parameters } = sql`${rendered(entity, one)}`.compile(db);
  const query = { name: `read-${entity}`, text, values: [...parameters] };
  const { rows } = await pool.query<{ json: string }>(query);
  return rows[0]?.json ?? null;
}

/** Which profiles, by id: those after one, and up to another where the search is to end there. */
export interface KeyRange {
  /** Null: from the first. */
  readonly after: string | null;
  /** Included. Null: to the last. */
  readonly upTo: string | null;
  /** What all of them begin with; null: anything. */
  readonly prefix?: string | null;
}

export interface PageSize {
  readonly rows: number;
  /** Of JSON; the last row may be beyond it. */
  readonly bytes: number;
}

export interface ReadProfile {
  readonly key: string;
  readonly json: string;
}

/** In the order of their ids. `more`: there are others that match in the range. */
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
      from (${rendered(entity, page)}) made
    ) counted
    where before < ${size.bytes}
    order by key
    limit ${size.rows}`.execute(db);
  return { profiles: rows, more: (rows[0]?.found ?? 0) > rows.length };
}

/** The id up to which the next `rows` profiles stand, whatever they hold; null: there are fewer. By the index alone. */
export async function findRangeEnd(
  db: Database,
  entity: Entity,
  environmentId: number,
  after: string | null,
  rows: number,
  prefix: string | null,
): Promise<string | null> {
  const key = sql.ref(idColumn[entity]);
  const { rows: found } = await sql<{ key: string }>`
    select ${key} as key
    from ${sql.table(entity)}
    where environment_id = ${environmentId} ${inRange(key, { after, upTo: null, prefix })}
    order by ${key}
    offset ${rows - 1}
    limit 1`.execute(db);
  return found[0]?.key ?? null;
}

/** Ids are in the order of their bytes (collation C), so that the primary key finds those of a prefix. */
function inRange(key: RawBuilder<unknown>, { after, upTo, prefix = null }: KeyRange): RawBuilder<unknown> {
  const conditions = [
    ...(after === null ? [] : [sql`and ${key} > ${after}`]),
    ...(upTo === null ? [] : [sql`and ${key} <= ${upTo}`]),
    ...(prefix === null ? [] : [sql`and ${key} like ${`${prefix.replace(/[\\%_]/g, '\\$&')}%`}`]),
  ];
  return sql.join(conditions, sql` `);
}

/** One of these JSON objects, each with one member, is part of the metadata: an index on it could answer that. */
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
