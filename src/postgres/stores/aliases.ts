import { type RawBuilder, sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { UserAlias } from '../../api/alias.ts';
import { type Link, type Linked, link, type ShownLink } from '../../domain/identities.ts';
import { MAX_DISTINCT_IDS } from '../../domain/limits.ts';
import { type JobIdentity, type Origin, originColumns } from '../../domain/task.ts';
import { camel, instantText } from '../columns.ts';
import { columnOf, type Database, findValue, hasRows, isTrue, rowsOf, updateWhere } from '../database.ts';
import { lockAliases } from './joins.ts';
import { insertPatch, loadOf } from './loads.ts';
import { findSuppressed } from './suppressions.ts';

/*
 * Aliases: ids that belong to another user. A transaction that writes records looks up aliases under a lock (`namesAliases`, the
 * row locks of the hot statements), which it holds until it ends. So a join knows for whom to wait (`readersOfAliases`).
 */

/** Returns the person whom the id belongs to: itself, if it is no alias. */
export async function findPerson(db: Database, environmentId: number, id: string): Promise<string> {
  return (await findValue<string>(db)`select person_of(${environmentId}, ${id}) as id`) ?? id;
}

export function hasAliases(db: Database, environmentId: number): Promise<boolean> {
  return hasRows(db)`select 1 from aliases where environment_id = ${environmentId} limit 1`;
}

/** Finds the persons of the ids that are aliases. */
export async function findPersons(
  db: Database,
  environmentId: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<Link>`
    select alias, user_id as "userId"
    from aliases
    where environment_id = ${environmentId} and alias = any(${[...ids]}::text[])`.execute(db);
  return new Map(rows.map(({ alias, userId }) => [alias, userId]));
}

/** Follows links and writes the aliases that they make, with a job that moves what is stored under them. Call it in a transaction. */
export async function writeLinks(
  db: Database,
  environmentId: number,
  links: readonly ShownLink[],
  job: JoinRequest,
): Promise<{ readonly outcomes: Linked['outcomes']; readonly jobId: string | null }> {
  await lockAliases(db, environmentId);
  const ids = [...new Set(links.flatMap(({ alias, userId }) => [alias, userId]))];
  const persons = await findPersons(db, environmentId, ids);
  const rows = await rowsOf<{ id: string }>(db)`
    select id
    from unnest(${ids}::text[]) id
    where exists (select 1 from aliases where environment_id = ${environmentId} and user_id = id)`;
  const owners = new Set(rows.map(({ id }) => id));
  const suppressed = await findSuppressed(db, environmentId, ids);
  const { outcomes, aliases } = link(links, { persons, owners, suppressed });
  if (aliases.length === 0) return { outcomes, jobId: null };
  const join = await queueJoin(db, environmentId, job);
  await sql`
    with made as (
      insert into aliases (environment_id, alias, user_id, given_to, load_id)
      select ${environmentId}, alias, "userId", "givenTo", ${join.loadId}
      from json_to_recordset(${JSON.stringify(aliases)}) as n (alias text, "userId" text, "givenTo" text)
      returning alias, user_id
    )
    update aliases a
    set user_id = made.user_id
    from made
    where a.environment_id = ${environmentId} and a.user_id = made.alias`.execute(db);
  return { outcomes, jobId: join.jobId };
}

export interface JoinRequest extends JobIdentity {
  /** `null`: nobody waits for it, so it may gather what comes for a while. */
  readonly origin: Origin | null;
}

/** Queues a join, unless one waits that has not begun. */
async function queueJoin(db: Database, environmentId: number, { origin, ...job }: JoinRequest) {
  const waiting = await updateWhere(db, 'loads', {
    environmentId,
    type: 'join',
    status: 'queued',
    chunkCount: 0,
  })
    .set(origin === null ? { type: 'join' } : originColumns(origin))
    .returning(camel('load_id', 'job_id'))
    .executeTakeFirst();
  if (waiting !== undefined) return waiting;
  await insertPatch(db, { ...job, origin, environmentId, type: 'join', filename: 'aliases' });
  return loadOf(db, environmentId, job.jobId).select(camel('load_id', 'job_id')).executeTakeFirstOrThrow();
}

/**
 * Tells whether the environment has aliases, under the lock by which a join finds this transaction. Call it before what is written
 * depends on it.
 */
export function knowsAliases(db: Database, environmentId: number): Promise<boolean> {
  return isTrue(db)`
    select
      exists (select 1 from aliases where environment_id = ${environmentId}) as some,
      (select alias from aliases where environment_id = 0 and alias = '' for key share) as nothing`;
}

/** Tells whether any of these ids is an alias: a text[] in binary, asked for only if there are aliases. Locks as `knowsAliases` does. */
export async function namesAliases(
  db: Database,
  environmentId: number,
  userIds: () => Buffer,
): Promise<boolean> {
  if (!(await knowsAliases(db, environmentId))) return false;
  return hasRows(db)`
    select 1
    from unnest(${userIds()}::text[]) id
    join aliases a on a.environment_id = ${environmentId} and a.alias = id
    limit 1`;
}

/** The persons of `ids`, an array, and all their aliases. */
export const allIdsOf = (environmentId: number, ids: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select person_of(${environmentId}, id) as id
  from unnest(${ids}) id
  union
  select a.alias
  from unnest(${ids}) id
  join aliases a on a.environment_id = ${environmentId} and a.user_id = person_of(${environmentId}, id)`;

export function findAllIds(db: Database, environmentId: number, ids: readonly string[]): Promise<string[]> {
  return columnOf<string>(db)`${allIdsOf(environmentId, sql`${[...ids]}::text[]`)}`;
}

/** A page of the aliases of a person. */
export function readAliases(
  db: Database,
  environmentId: number,
  userId: string,
  { limit, after }: { readonly limit: number; readonly after: string | null },
): Promise<UserAlias[]> {
  return rowsOf<UserAlias>(db)`
    select a.alias, ${instantText(sql`a.created_at`)} as created_at, l.job_id
    from aliases a
    left join loads l using (load_id)
    where a.environment_id = ${environmentId} and a.user_id = ${userId} and (${after}::text is null or a.alias > ${after})
    order by a.alias
    limit ${limit}`;
}

/** Selects the ids of a user as a JSON array: its own, and its aliases, sorted. */
export const distinctIdsOf = (
  environmentId: RawBuilder<unknown>,
  userId: RawBuilder<unknown>,
  limit = sql``,
): RawBuilder<string> => sql`array_to_json(array[${userId}] || array(
  select a.alias
  from aliases a
  where a.environment_id = ${environmentId} and a.user_id = ${userId}
  order by a.alias
  ${limit}
))`;

/** Adds `distinct_ids` to users written as JSON, at most `MAX_DISTINCT_IDS` aliases of each. */
export async function withDistinctIds<User extends { readonly key: string; readonly json: string }>(
  db: Database,
  environmentId: number,
  users: readonly User[],
): Promise<User[]> {
  const { rows } = await sql<{ ids: string }>`
    select ${distinctIdsOf(sql`${environmentId}`, sql.ref('u.id'), sql`limit ${MAX_DISTINCT_IDS}`)}::text as ids
    from unnest(${users.map(({ key }) => key)}::text[]) with ordinality u (id, place)
    order by u.place`.execute(db);
  return users.map((user, at) => ({
    ...user,
    json: `${user.json.slice(0, -1)},"distinct_ids":${rows[at]?.ids}}`,
  }));
}

/** Removes the aliases of persons, and those among these ids. Returns what went. */
export function removeAliases(
  db: Database,
  environmentId: number,
  ids: readonly string[],
): Promise<string[]> {
  return columnOf<string>(db)`
    delete from aliases
    where environment_id = ${environmentId} and (alias = any(${[...ids]}::text[]) or user_id = any(${[...ids]}::text[]))
    returning alias`;
}

/** Makes the aliases that links show, passing over those that are known. Call it in a transaction. */
export async function writeShownLinks(
  db: Database,
  environmentId: number,
  links: readonly ShownLink[],
): Promise<void> {
  const ids = new Set(links.flatMap(({ alias, userId }) => [alias, userId]));
  const persons = await findPersons(db, environmentId, [...ids]);
  const personOf = (id: string): string => persons.get(id) ?? id;
  const unknown = links.filter(({ alias, userId }) => personOf(alias) !== personOf(userId));
  if (unknown.length === 0) return;
  await writeLinks(db, environmentId, unknown, { jobId: uuidv7(), requestId: null, origin: null });
}

/** Makes the aliases that the records of a load showed. Call it in the transaction that completes it. */
export async function writeLinksOfLoad(db: Database, environmentId: number, loadId: number): Promise<void> {
  const { rows } = await sql<{ links: readonly ShownLink[] }>`
    select links
    from load_chunks
    where load_id = ${loadId} and links is not null
    order by chunk_no`.execute(db);
  for (const { links } of rows) await writeShownLinks(db, environmentId, links);
}
