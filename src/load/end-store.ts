import { type RawBuilder, sql, type UpdateObject } from 'kysely';
import type { FileFigures, Surprise, VolumeGuard } from '../domain/guards.ts';
import {
  ALL_RECORDS_REFUSED,
  FIRST_RECORDS_REFUSED,
  GUARD_EXCEEDED,
  HOLD_EXPIRED,
  JOB_EXPIRED,
  type LoadStatus,
} from '../domain/load.ts';
import type { Origin, TaskFailure } from '../domain/task.ts';
import { camel, daysAgo, type Tables } from '../postgres/columns.ts';
import {
  columnOf,
  type Database,
  firstRow,
  hasRows,
  inSavepoint,
  type Transaction,
  updateWhere,
} from '../postgres/database.ts';
import { deleteTasks, hasTasks } from '../tasks/store.ts';
import { forgetRepeats, forgetReplays } from './merge/repeats.ts';
import type { LoadSeam } from './seam.ts';
import { loadOf } from './store.ts';

const ends = { ended_at: sql<Date>`now()` };

/**
 * Deletes the data that was needed only while the load ran, except for the hashes of keys that
 * applying a plan needs. Must be called in the transaction that ends the `finish` task.
 */
export async function completeLoad(db: Database, loadId: number): Promise<void> {
  const completed = await updateWhere(db, 'loads', { loadId, status: 'processing' })
    .set({ status: 'completed', ...ends })
    .returning('pass')
    .executeTakeFirst();
  await (completed?.pass === 'plan' ? forgetReplays : forgetRepeats)(db, [loadId]);
}

const failsFrom: Readonly<Record<string, readonly LoadStatus[]>> = {
  [HOLD_EXPIRED]: ['held'],
  [JOB_EXPIRED]: ['processing', 'held'],
};

/** Fails a load. Its written rows remain. Returns `null` if the load has already ended. */
export function failLoad(transaction: Transaction, loadId: number, { code, message }: TaskFailure) {
  return end(transaction, loadId, failsFrom[code] ?? ['processing'], {
    status: 'failed',
    failure_code: code,
    failure_message: sql<string>`${message}::text || ' (' || (${applied})
      || case when ${applied} = 1 then ' row' else ' rows' end || ' had been applied)'`,
  });
}

const applied = sql`(case when dry_run then 0 else rows_inserted + rows_updated + rows_removed end)`;

/** Cancels a load. Returns `null` if the load is not in the environment or has ended. */
export async function cancelLoad(
  transaction: Transaction,
  environmentId: number,
  jobId: string,
  by: Origin | null,
) {
  const { db } = transaction;
  const load = await loadOf(db, environmentId, jobId).select('load_id').executeTakeFirst();
  if (load === undefined) return null;
  const ended = await end(transaction, load.load_id, ['queued', 'processing', 'held'], {
    status: 'cancelled',
  });
  if (ended !== null) await recordDecision(db, load.load_id, by);
  return ended;
}

/** Records who decided about a held load, and when. Does nothing if no decision is pending. */
export async function recordDecision(db: Database, loadId: number, by: Origin | null): Promise<void> {
  await updateWhere(db, 'load_guards', { loadId })
    .set({ decided_at: sql<Date>`now()`, decided_by: by && JSON.stringify(by) })
    .where('held_at', 'is not', null)
    .where('decided_at', 'is', null)
    .execute();
}

/** Thrown if the load has got new tasks since its tasks were deleted. */
class TasksAdded extends Error {}

/**
 * Ends a load and deletes its tasks. The tasks are deleted first, because a worker locks its task
 * before its load. The deletion may wait for a commit that adds other tasks, such as the `finish`
 * after the last chunk. If their worker waits for the load, deleting them now would be a deadlock.
 * Therefore, the savepoint unlocks the load again, and the new tasks are deleted first, too.
 */
async function end(
  { client, db }: Transaction,
  loadId: number,
  from: readonly LoadStatus[],
  to: UpdateObject<Tables, 'loads'>,
) {
  const mayHaveTasks = from.includes('processing');
  while (true) {
    if (mayHaveTasks) await deleteTasks(db, loadTasks, loadId);
    const update = async () => {
      const ended = await updateWhere(db, 'loads', { loadId })
        .set({ ...to, ...ends })
        .where('status', 'in', from)
        .returning(camel('load_id', 'job_id', 'request_id', 'environment_id', 'failure_message'))
        .returning(['source_options as source', sql<Date>`now()`.as('at')])
        .executeTakeFirst();
      if (ended === undefined) return null;
      if (mayHaveTasks && (await hasTasks(db, loadTasks, loadId))) throw new TasksAdded();
      return ended;
    };
    const attempt = await inSavepoint(client, update, (error) => error instanceof TasksAdded);
    if ('result' in attempt) return attempt.result;
  }
}

export type StoppedLoad = NonNullable<Awaited<ReturnType<typeof end>>>;

const loadTasks = ['begin', 'chunk', 'finish'] as const;

/** Columns of a load that is queued again, as the last one in its lane. */
export const queuedAgain = {
  status: 'queued',
  work_started_at: null,
  ended_at: null,
  failure_code: null,
  failure_message: null,
  lane_position: sql<number>`nextval('sluice.lane_positions')`,
} as const;

/**
 * First pass of a retry that lifts the exceeded limit. If the load has a volume guard, this guard
 * must check the records again.
 */
const accepted = sql`case
  when exists (select 1 from load_guards g where g.load_id = loads.load_id and g.guard is not null) then 'validate'
  else 'load'
end`;

const isGuarded = sql`coalesce(failure_code = ${GUARD_EXCEEDED}, false)`;

/**
 * Queues a failed or cancelled load. In the pass `load`, only unfinished chunks run again. The
 * passes `plan`, `guard`, `validate` and `apply` start over. Returns false if the load cannot be
 * retried (`retryLoad` then explains why). Must be called under the lane's lock.
 */
export async function requeueLoad(
  db: Database,
  seams: readonly LoadSeam[],
  environmentId: number,
  jobId: string,
): Promise<boolean> {
  const earlier = await loadOf(db, environmentId, jobId)
    .select(['failure_code', 'total_rows as totalRows'])
    .forUpdate()
    .executeTakeFirst();
  const load = await updateWhere(db, 'loads', { environmentId, jobId })
    .set((eb) => ({
      ...queuedAgain,
      attempts: eb('attempts', '+', 1),
      pass: sql<string>`case
        when pass = 'guard' and ${isGuarded} then ${accepted}
        when pass = 'validate' and failure_code = 'too_many_rejects' then ${accepted}
        when pass = 'apply' then 'plan'
        else pass
      end`,
      begins_anew: sql<boolean>`begins_anew or pass in ('plan', 'guard', 'validate', 'apply')`,
    }))
    .where('status', 'in', ['failed', 'cancelled'])
    .where('failure_code', 'is distinct from', ALL_RECORDS_REFUSED)
    .where((eb) => eb.not(isTakenBack(seams)))
    .where((eb) =>
      eb.or([eb('file_ref', 'is not', null), eb.and([eb('own_file', '=', true), eb('chunk_count', '=', 0)])]),
    )
    .returning('load_id as loadId')
    .executeTakeFirst();
  if (load !== undefined && earlier !== undefined) await acceptRefused(db, load.loadId, earlier);
  return load !== undefined;
}

/** Lifts the limit that the load exceeded. Otherwise, the retry would fail for the same reason. */
async function acceptRefused(
  db: Database,
  loadId: number,
  { failure_code: code, totalRows }: { readonly failure_code: string | null; readonly totalRows: number },
): Promise<void> {
  const limits = updateWhere(db, 'load_guards', { loadId });
  if (code === GUARD_EXCEEDED) await limits.set({ max_changed: null, max_removed_values: null }).execute();
  if (code === 'too_many_rejects') await limits.set({ max_errors: null }).execute();
  if (code === FIRST_RECORDS_REFUSED)
    await db
      .insertInto('load_guards')
      .values({ load_id: loadId, max_errors: totalRows })
      .onConflict((at) => at.column('load_id').doUpdateSet({ max_errors: totalRows }))
      .execute();
}

/** Condition for queries of `loads`. True if another load has begun to take back this one. */
export const hasBeenTakenBack = sql<boolean>`exists (
  select 1 from load_lineage n where n.load_id = loads.load_id and n.taken_back_by is not null
)`;

/** True if another load has taken back this one, or is queued or running to do so. */
export function isTakenBack(seams: readonly LoadSeam[]): RawBuilder<boolean> {
  const kinds = seams.flatMap(({ kind }) => kind ?? []);
  return sql<boolean>`(${sql.join(
    [hasBeenTakenBack, ...kinds.map(({ takesBack }) => takesBack)],
    sql` or `,
  )})`;
}

export function isLoadTakenBack(
  db: Database,
  seams: readonly LoadSeam[],
  environmentId: number,
  jobId: string,
): Promise<boolean> {
  return hasRows(db)`
    select 1
    from loads
    where environment_id = ${environmentId} and job_id = ${jobId} and ${isTakenBack(seams)}`;
}

/**
 * Maximum number of earlier loads with which a load is compared. These loads have the same source,
 * and are among the USUAL_AMONG latest loads of the environment.
 */
const USUAL_LOADS = 10;
const USUAL_AMONG = 10_000;

/* A volume guard holds a load if its file differs from the usual files of its source. */

interface Guarded {
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
 * Source of a load: its origin, and its file name without digits, because most digits belong to
 * dates.
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
 * Reads the figures of files that a volume guard compares. `past` are the latest loads of the same
 * source, newest first. Returns `null` if the load has no guard.
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

/**
 * Holds a load until a person decides about it. Must be called in the transaction that ends the
 * load's last task.
 */
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
