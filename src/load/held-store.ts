import { sql } from 'kysely';
import type { FileFigures, Surprise, VolumeGuard } from '../domain/guards.ts';
import type { Origin } from '../domain/task.ts';
import { daysAgo } from '../postgres/columns.ts';
import { columnOf, type Database, firstRow, updateWhere } from '../postgres/database.ts';
import { hasBeenTakenBack, queuedAgain, recordDecision } from './end-store.ts';

/**
 * The usual figures of a source are those of its latest USUAL_LOADS loads. These loads are searched
 * for only among the latest USUAL_AMONG loads of the environment.
 */
const USUAL_LOADS = 10;
const USUAL_AMONG = 10_000;

/* Volume guards. A guard holds a load if its file differs from the usual files of its source. */

export interface Guarded {
  readonly guard: VolumeGuard;
  readonly file: FileFigures;
  readonly past: readonly FileFigures[];
}

const figures = (load: string) => sql`json_build_object(
  'rows', ${sql.ref(`${load}.total_rows`)},
  'rejected', ${sql.ref(`${load}.rows_rejected`)},
  'columns', ${sql.ref(`${load}.header`)} -> 'columns'
)`;

/**
 * Identifies the source of a load: its origin and file name. Digits in the name are removed,
 * because most of them belong to dates.
 */
const sourceOf = (load: string) => {
  const [origin, name, filename] = ['origin', 'origin_name', 'filename'].map((each) =>
    sql.ref(`${load}.${each}`),
  );
  return sql`(
    ${origin}, case ${origin} when 'inbox' then regexp_replace(${name}, '[^/]*$', '') else ${name} end,
    regexp_replace(${filename}, '[0-9]+', '', 'g')
  )`;
};

/**
 * Returns the figures of the file and those of the source's latest loads, newest first. Returns
 * `null` if the load has no guard.
 */
export function readGuarded(db: Database, loadId: number): Promise<Guarded | null> {
  return firstRow<Guarded>(db)`
    select
      g.guard,
      ${figures('l')} as file,
      array(
        select ${figures('p')}
        from (
          select *, ${hasBeenTakenBack} as is_taken_back
          from loads
          where environment_id = l.environment_id
          order by job_id desc
          limit ${USUAL_AMONG}
        ) p
        where p.status = 'completed' and not p.dry_run and not p.is_taken_back
          and p.type = l.type and ${sourceOf('p')} is not distinct from ${sourceOf('l')}
        order by p.job_id desc
        limit ${USUAL_LOADS}
      ) as past
    from loads l
    join load_guards g using (load_id)
    where l.load_id = ${loadId} and g.guard is not null`;
}

/** Holds a load. Must be called in the transaction that ends the load's last task. */
export async function holdLoad(db: Database, loadId: number, reasons: readonly Surprise[]): Promise<void> {
  await updateWhere(db, 'loads', { loadId, status: 'processing' }).set({ status: 'held' }).execute();
  await updateWhere(db, 'load_guards', { loadId })
    .set({
      held_at: sql<Date>`now()`,
      held_for: JSON.stringify(reasons),
      decided_at: null,
      decided_by: null,
    })
    .execute();
}

/**
 * Queues a held load. Returns false if the load is not held. Must be called under the lane's lock.
 */
export async function releaseHeld(
  db: Database,
  environmentId: number,
  jobId: string,
  by: Origin,
): Promise<boolean> {
  const load = await updateWhere(db, 'loads', { environmentId, jobId, status: 'held' })
    .set({ ...queuedAgain, pass: 'load', begins_anew: true })
    .returning('load_id')
    .executeTakeFirst();
  if (load === undefined) return false;
  await recordDecision(db, load.load_id, by);
  return true;
}

export function findExpiredHolds(db: Database, fileDays: number, limit: number): Promise<number[]> {
  return columnOf<number>(db)`
    select load_id
    from loads
    join load_guards using (load_id)
    where status = 'held' and held_at < ${daysAgo(fileDays)}
    limit ${limit}`;
}
