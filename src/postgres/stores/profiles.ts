import { sql } from 'kysely';
import type pg from 'pg';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import { type Database, inTransaction, readQuery, runQuery } from '../database.ts';

/** A profile to be laid over what is stored. */
export interface ProfileRow {
  readonly environmentId: number;
  readonly key: string;
  /** A JSON object; a null removes the property. */
  readonly properties: string;
  /** Some property is null, or the company is ''. */
  readonly removes: boolean;
}

export interface UserRow extends ProfileRow {
  /** null leaves the company as it is, '' removes it. */
  readonly companyId: string | null;
}

/** One record of a profile, which may say since when it holds. */
export interface DatedProfileRow extends ProfileRow {
  /** As `Instant` writes it; null, and a time that lies ahead, is now. */
  readonly at: string | null;
}

export interface DatedUserRow extends DatedProfileRow, UserRow {}

const upsertUsers = readQuery('upsert-users');
const upsertCompanies = readQuery('upsert-companies');
const mergeDatedUsers = readQuery('merge-dated-users');
const mergeDatedCompanies = readQuery('merge-dated-companies');
const applyUserRemovals = readQuery('apply-user-removals');
const applyCompanyRemovals = readQuery('apply-company-removals');

/** Writes users and the companies they name, all or nothing; each key once. Given a client: in its transaction. */
export async function writeUsers(
  connection: pg.Pool | pg.PoolClient,
  users: readonly UserRow[],
  companies: readonly ProfileRow[],
): Promise<void> {
  const given = [listOf(users, userText), companies.length === 0 ? null : listOf(companies, profileText)];
  const removes = users.some(isRemoving) || companies.some(isRemoving);
  if (!removes) return runQuery(connection, upsertUsers, [...given, false]);
  await together(connection, async (client) => {
    await runQuery(client, upsertUsers, [...given, true]);
    await runQuery(client, applyUserRemovals, [given[0]]);
    if (companies.length > 0) await runQuery(client, applyCompanyRemovals, [given[1]]);
  });
}

/** Writes companies, all or nothing; each key once. Given a client: in its transaction. */
export async function writeCompanies(
  connection: pg.Pool | pg.PoolClient,
  companies: readonly ProfileRow[],
): Promise<void> {
  const given = listOf(companies, profileText);
  if (!companies.some(isRemoving)) return runQuery(connection, upsertCompanies, [given, false]);
  await together(connection, async (client) => {
    await runQuery(client, upsertCompanies, [given, true]);
    await runQuery(client, applyCompanyRemovals, [given]);
  });
}

/**
 * Lays records that may have times over what is stored, all or nothing: property by property the later counts, of those with one time
 * the later record. In the order in which they came; a key may have several. `companies`: those with records of their own, and all
 * that users name, with `{}` where no more is said of them. Given a client: in its transaction.
 */
export async function writeDatedProfiles(
  connection: pg.Pool | pg.PoolClient,
  users: readonly DatedUserRow[],
  companies: readonly DatedProfileRow[],
): Promise<void> {
  await together(connection, async (client) => {
    if (users.length > 0) {
      const given = listOf(users, datedUserText);
      await runQuery(client, mergeDatedUsers, [given]);
      if (users.some(isRemoving)) await runQuery(client, applyUserRemovals, [given]);
    }
    if (companies.length > 0) {
      const given = listOf(companies, datedProfileText);
      await runQuery(client, mergeDatedCompanies, [given]);
      if (companies.some(isRemoving)) await runQuery(client, applyCompanyRemovals, [given]);
    }
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

function datedUserText(row: DatedUserRow): string {
  return withTime(userText(row), row);
}

function datedProfileText(row: DatedProfileRow): string {
  return withTime(profileText(row), row);
}

/** The row's text with its time as one more member. */
function withTime(text: string, { at }: DatedProfileRow): string {
  return at === null ? text : `{"t":"${at}",${text.slice(1)}`;
}

function isRemoving({ removes }: ProfileRow): boolean {
  return removes;
}

/** Which of some keys are stored. */
export async function findStored(
  db: Database,
  environmentId: number,
  entity: Entity,
  keys: readonly string[],
): Promise<string[]> {
  if (keys.length === 0) return [];
  const id = sql.ref(idColumn[entity]);
  const { rows } = await sql<{ key: string }>`
    select ${id} as key
    from ${sql.table(entity)}
    where environment_id = ${environmentId} and ${id} = any (${keys}::text[])`.execute(db);
  return rows.map(({ key }) => key);
}

/** How rows of an export compare with what is stored after a load of them. */
export interface LoadedBack {
  readonly rows: number;
  /** Stored as the rows say, apart from the times. */
  readonly same: number;
  /** Those that got their times by this call. */
  readonly dated: number;
}

/**
 * Gives profiles that a load has created, and that nobody has touched since, the times that the rows of an export say. `rows` is
 * a JSON array of such rows, of the file that the load had; of each key one.
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
  const found = await sql<LoadedBack>`
    with given as materialized (
      select *
      from json_to_recordset(${rows}::json)
        as r (user_id text, company_id text, metadata jsonb, first_seen_at timestamptz, last_seen_at timestamptz)
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
        and p.first_seen_at between l.accepted_at and l.ended_at
      returning 1
    )
    select
      count(*)::int as rows,
      count(*) filter (where p.${id} is not null and p.metadata = r.metadata and ${sameCompany})::int as same,
      (select count(*)::int from dated) as dated
    from given r
    left join ${sql.table(entity)} p on p.environment_id = ${environmentId} and p.${id} = r.${id}`.execute(
    db,
  );
  const [row] = found.rows;
  if (row === undefined) throw new Fault('an aggregate gave no row');
  return row;
}

export async function hasNoUsers(db: Database, environmentId: number): Promise<boolean> {
  const { rows } = await sql<{ none: boolean }>`
    select not exists (select 1 from users where environment_id = ${environmentId}) as none`.execute(db);
  return rows[0]?.none ?? false;
}
