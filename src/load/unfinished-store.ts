import { type RawBuilder, sql } from 'kysely';
import type { TaskClaim } from '../domain/task.ts';
import { countOf, type Database, rowsOf } from '../postgres/database.ts';

/*
 * Unfinished loads at the start of an export. Dry runs and plans are excluded, because they change
 * nothing.
 */

const writes: RawBuilder<unknown> = sql`l.pass not in ('dry_run', 'plan')`;

/** Finds the unfinished loads of an environment, in the order of its lane. */
export async function findUnfinishedLoads(db: Database, environmentId: number): Promise<string[]> {
  const rows = await rowsOf<{ jobId: string }>(db)`
    select l.job_id as "jobId"
    from loads l
    where l.environment_id = ${environmentId} and l.status in ('queued', 'processing', 'held') and ${writes}
    order by l.lane_position`;
  return rows.map(({ jobId }) => jobId);
}

/**
 * Counts the loads for which a queued export is waiting. Returns 0 if the export was not requested
 * to wait.
 */
export function countAwaitedLoads(db: Database, { subjectId: exportId }: TaskClaim): Promise<number> {
  return countOf(db)`
    select count(*)
    from exports e
    join loads l on l.environment_id = e.environment_id
    where e.export_id = ${exportId}
      and e.status = 'queued'
      and (e.request ->> 'waitForLoads')::boolean
      and l.status in ('queued', 'processing')
      and l.accepted_at <= e.requested_at
      and ${writes}`;
}
