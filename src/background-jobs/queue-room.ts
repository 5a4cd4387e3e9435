import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';

/**
 * A caller that floods is refused before anything of its request is done; a request that was answered before is let in, to be
 * answered again. Callers that come at the same moment may pass the bound by as many as they are.
 * @throws InputError `rate_limited`.
 */
export async function requireQueueRoom(
  db: Database,
  environmentId: number,
  idempotencyKey: string | null,
  maxUnfinished: number,
): Promise<void> {
  if (maxUnfinished === 0 || (await hasRoom(db, environmentId, maxUnfinished))) return;
  if (idempotencyKey !== null && (await isKnown(db, environmentId, idempotencyKey))) return;
  const message = `This environment has ${maxUnfinished} jobs that have not ended; try again when some have`;
  throw inputError('rate_limited', message, 'MAX_QUEUED_JOBS');
}

/** Reads as many entries of an index as there are unfinished jobs, and no more than count. */
async function hasRoom(db: Database, environmentId: number, most: number): Promise<boolean> {
  const of = (table: 'loads' | 'exports' | 'deletions') => sql`(
    select count(*)
    from (
      select
      from ${sql.table(table)}
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      limit ${most}
    ) unfinished
  )`;
  const { rows } = await sql<{ unfinished: number }>`
    select ${of('loads')} + ${of('exports')} + ${of('deletions')} as unfinished`.execute(db);
  return (rows[0]?.unfinished ?? 0) < most;
}

async function isKnown(db: Database, environmentId: number, idempotencyKey: string): Promise<boolean> {
  const known = await db
    .selectFrom('idempotency_keys')
    .select('idempotency_key')
    .where('environment_id', '=', environmentId)
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirst();
  return known !== undefined;
}
