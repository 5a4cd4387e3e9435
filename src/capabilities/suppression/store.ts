import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { TaskClaim } from '../../domain/task.ts';
import { changedBy, countOf, type Database } from '../../postgres/database.ts';

export const SUPPRESSED_CONSTRAINT = 'suppressions_pkey';

/** Returns SQL that evaluates to the id, or fails if the user with that id is suppressed. */
export function guardUser(id: string, environment: string): string {
  return `coalesce(
    (
      select sluice.refuse_suppressed(s.id_hash)
      from sluice.suppression_keys h
      join sluice.suppressions s on s.environment_id = h.environment_id and s.id_hash = sluice.id_hash(h.secret, ${id})
      where h.environment_id = ${environment}
    ),
    ${id}
  )`;
}

export async function suppressIds(db: Database, { subjectId, environmentId }: TaskClaim): Promise<void> {
  await sql`
    insert into suppression_keys (environment_id, secret)
    values (${environmentId}, ${randomBytes(32)})
    on conflict do nothing`.execute(db);
  await sql`
    insert into suppressions (environment_id, id_hash)
    select k.environment_id, id_hash(k.secret, i.id)
    from suppression_keys k
    cross join deletion_ids i
    where k.environment_id = ${environmentId} and i.deletion_id = ${subjectId}
    on conflict do nothing`.execute(db);
}

/** `ids` may be a binary text[]. The `limit` makes PostgreSQL look up each id in the index. */
export async function findSuppressed(
  db: Database,
  environmentId: number,
  ids: readonly string[] | Buffer,
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    select given.id
    from suppression_keys k
    cross join unnest(${Buffer.isBuffer(ids) ? ids : [...ids]}::text[]) given (id)
    where k.environment_id = ${environmentId}
      and (
        select true
        from suppressions s
        where s.environment_id = ${environmentId} and s.id_hash = id_hash(k.secret, given.id)
        limit 1
      )`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

export function countSuppressions(db: Database, environmentId: number): Promise<number> {
  return countOf(db)`select count(*) from suppressions where environment_id = ${environmentId}`;
}

export function liftSuppressions(
  db: Database,
  environmentId: number,
  ids: readonly string[],
): Promise<number> {
  return changedBy(db)`
    delete from suppressions s
    using suppression_keys k, unnest(${[...ids]}::text[]) given (id)
    where k.environment_id = ${environmentId} and s.environment_id = k.environment_id
      and s.id_hash = id_hash(k.secret, given.id)`;
}
