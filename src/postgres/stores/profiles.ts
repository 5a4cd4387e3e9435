import { sql } from 'kysely';
import type pg from 'pg';
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

const upsertUsers = readQuery('upsert-users');
const upsertCompanies = readQuery('upsert-companies');
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

export async function hasNoUsers(db: Database, environmentId: number): Promise<boolean> {
  const { rows } = await sql<{ none: boolean }>`
    select not exists (select from users where environment_id = ${environmentId}) as none`.execute(db);
  return rows[0]?.none ?? false;
}
