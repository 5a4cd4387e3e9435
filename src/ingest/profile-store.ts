import { sql } from 'kysely';
import type pg from 'pg';
import { type Entity, idColumn, kindOfEntity } from '../domain/entity.ts';
import { type Database, inTransaction, isTrue, readQuery, rowOf, runQuery } from '../postgres/database.ts';
import type { Guard } from '../postgres/uses.ts';

export interface ProfileRow {
  readonly environmentId: number;
  readonly key: string;
  /** JSON object. Properties whose value is null are removed. */
  readonly properties: string;
  /** True if a property is null, or `companyId` is ''. */
  readonly removes: boolean;
}

export interface UserRow extends ProfileRow {
  /** Company of the user. `null` to keep the stored company, '' to remove it. */
  readonly companyId: string | null;
}

const upsertUsers = readQuery('upsert-users');
const upsertCompanies = readQuery('upsert-companies');
const insertNamed = readQuery('insert-named-users');
const applyUserRemovals = readQuery('apply-user-removals');
const applyCompanyRemovals = readQuery('apply-company-removals');

/**
 * Writes all users or none. Each key may occur only once. If `connection` is a client, the write is
 * part of its transaction.
 */
export async function writeUsers(
  connection: pg.Pool | pg.PoolClient,
  users: readonly UserRow[],
  companies: readonly ProfileRow[],
  guard: Guard,
): Promise<void> {
  const upsert = guard.compose(upsertUsers);
  const composedFor = [guard.environments, guard.uses];
  const userList = listOf(users, userText);
  const companyList = companies.length === 0 ? null : listOf(companies, profileText);
  const lists = [userList, companyList];
  const removes = users.some(isRemoving) || companies.some(isRemoving);
  if (!removes) return runQuery(connection, upsert, [...lists, false, ...composedFor]);
  await together(connection, async (client) => {
    await runQuery(client, upsert, [...lists, true, ...composedFor]);
    await runQuery(client, applyUserRemovals, [userList]);
    if (companies.length > 0) await runQuery(client, applyCompanyRemovals, [companyList]);
  });
}

export async function createNamedUsers(
  connection: pg.Pool | pg.PoolClient,
  users: readonly { readonly environmentId: number; readonly userId: string }[],
): Promise<void> {
  const keys = new Set(users.map(({ environmentId: e, userId: k }) => JSON.stringify({ e, k })));
  await runQuery(connection, insertNamed, [`[${[...keys].join(',')}]`]);
}

/** See `writeUsers`. */
export async function writeCompanies(
  connection: pg.Pool | pg.PoolClient,
  companies: readonly ProfileRow[],
  guard: Guard,
): Promise<void> {
  const companyList = listOf(companies, profileText);
  const upsert = guard.compose(upsertCompanies);
  const composedFor = [guard.environments, guard.uses];
  if (!companies.some(isRemoving)) return runQuery(connection, upsert, [companyList, false, ...composedFor]);
  await together(connection, async (client) => {
    await runQuery(client, upsert, [companyList, true, ...composedFor]);
    await runQuery(client, applyCompanyRemovals, [companyList]);
  });
}

function together(
  connection: pg.Pool | pg.PoolClient,
  work: (client: pg.PoolClient) => Promise<void>,
): Promise<void> {
  if ('release' in connection) return work(connection);
  return inTransaction(connection, ({ client }) => work(client));
}

function listOf<T>(rows: readonly T[], text: (row: T) => string): string {
  return `[${rows.map(text).join(',')}]`;
}

function profileText({ environmentId, key, properties }: ProfileRow): string {
  return `{"e":${environmentId},"k":${JSON.stringify(key)},"p":${properties}}`;
}

function userText(row: UserRow): string {
  const { environmentId, key, companyId, properties } = row;
  const company = companyId === null ? '' : `"c":${JSON.stringify(companyId)},`;
  return `{"e":${environmentId},"k":${JSON.stringify(key)},${company}"p":${properties}}`;
}

function isRemoving({ removes }: ProfileRow): boolean {
  return removes;
}

export interface LoadedBack {
  readonly rows: number;
  readonly same: number;
  readonly dated: number;
}

/**
 * Restores the times at which profiles were first and last seen, if a load created these profiles
 * and they have not changed since. `rows` are the exported profiles that the load read. Each key
 * may occur only once.
 */
export async function restoreTimes(
  db: Database,
  environmentId: number,
  entity: Entity,
  jobId: string,
  rows: string,
): Promise<LoadedBack> {
  const id = sql.ref(idColumn[entity]);
  const sameCompany = entity === 'users' ? sql`p.company_id is not distinct from r.company_id` : sql`true`;
  return rowOf<LoadedBack>(db)`
    with given as materialized (
      select *
      from json_to_recordset(${rows}::json) as r (
        event_type text, user_id text, company_id text, metadata jsonb, first_seen_at timestamptz, last_seen_at timestamptz
      )
      where event_type is null or event_type = ${kindOfEntity[entity]}
    ),
    load as (
      select load_id, accepted_at, ended_at
      from loads
      where environment_id = ${environmentId} and job_id = ${jobId}
    ),
    dated as (
      update ${sql.table(entity)} p
      set
        first_seen_at = r.first_seen_at,
        last_seen_at = case when p.last_seen_at > l.ended_at then p.last_seen_at else r.last_seen_at end
      from given r, load l
      where p.environment_id = ${environmentId} and p.${id} = r.${id} and p.load_id = l.load_id
        and p.first_seen_at between l.accepted_at and l.ended_at and r.first_seen_at is not null
      returning 1
    )
    select
      count(*)::int as rows,
      count(*) filter (where p.${id} is not null and p.metadata = r.metadata and ${sameCompany})::int as same,
      (select count(*)::int from dated) as dated
    from given r
    left join ${sql.table(entity)} p on p.environment_id = ${environmentId} and p.${id} = r.${id}`;
}

export function hasNoUsers(db: Database, environmentId: number): Promise<boolean> {
  return isTrue(db)`
    select not exists (select 1 from users where environment_id = ${environmentId}) as none`;
}
