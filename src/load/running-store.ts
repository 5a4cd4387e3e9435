import { type NotNull, type RawBuilder, sql } from 'kysely';
import { Fault } from '../base/errors.ts';
import {
  keepsPlan,
  type LoadPass,
  type LoadType,
  type OnDrift,
  recordOutcomes,
  type Tally,
} from '../domain/load.ts';
import type { DueTask } from '../domain/task.ts';
import { camel, instantText } from '../postgres/columns.ts';
import { type Database, prepared, selectWhere, updateWhere } from '../postgres/database.ts';
import { usesOfLoad } from '../postgres/uses.ts';
import { maxErrors, storedFormat } from './chunk-store.ts';
import type { LoadContext } from './context.ts';
import { queuedAgain } from './end-store.ts';
import { forgetRepeats } from './merge/repeats.ts';
import { beginPlan, forgetPlan, forgetPlannedRows } from './plans/store.ts';
import { endsFor, type HookContext, kindOf, secretOf } from './seam.ts';
import { insertChunkTasks } from './store.ts';

/*
 * A pass is a run over all chunks of the file: to plan, to check a guard, or to load. Each pass
 * first deletes the results of the pass before it.
 */

/**
 * Properties of a load that its chunks need. They change only between two passes, when the load has
 * no chunk tasks.
 */
export type LoadSource = Awaited<ReturnType<typeof readLoadSource>>;

export async function readLoadSource(
  { db, loads, secrets }: Pick<HookContext, 'db' | 'loads' | 'secrets'>,
  loadId: number,
) {
  const row = await prepared(db)
    .selectFrom('loads')
    .innerJoin('environments', 'environments.environment_id', 'loads.environment_id')
    .leftJoin('load_guards', 'load_guards.load_id', 'loads.load_id')
    .select(camel('loads.load_id', 'loads.job_id', 'loads.environment_id', 'loads.type', 'loads.entity'))
    .select(camel('loads.preset'))
    .select(camel('loads.file_ref', 'loads.header', 'loads.column_map', 'max_errors'))
    .select(storedFormat.as('fileFormat'))
    .select(camel('loads.pass', 'loads.dry_run', 'loads.chunk_count', 'loads.attempts', 'record_key'))
    .select([
      instantText(sql`loads.accepted_at`).as('acceptedAt'),
      'loads.source_options as options',
      usesOfLoad,
    ])
    .where('loads.load_id', '=', loadId)
    .executeTakeFirst();
  if (row === undefined) throw new Fault(`load ${loadId} is not in the ledger`);
  const { options, ...load } = row;
  return {
    ...load,
    /**
     * True if the text of the load must not be stored. Rejects then contain only a place and a
     * reason.
     */
    isSecret: (await secretOf({ db, secrets }, load)) !== undefined,
    /** True if other chunks may contain the same keys, or if a capability needs the keys. */
    keepsKeys: load.chunkCount > 1 || endsFor(loads, options).length > 0,
    /** True if stored values take precedence over the file. Chunks then run one after another. */
    keepsExisting: options.existing === 'keep',
  };
}

export function countsOf(table: string, ...names: string[]): RawBuilder<unknown> {
  const pairs = [...names, ...recordOutcomes].map(
    (name) => sql`${sql.lit(name)}, ${sql.ref(`${table}.rows_${name}`)}`,
  );
  return sql`json_build_object(${sql.join(pairs)})`;
}

export const tally = sql<Tally>`${countsOf('loads', 'read')}`.as('tally');

export type FinishState = Awaited<ReturnType<typeof readFinishState>>;

const openChunks = sql<number>`(
  select count(*)
  from load_chunks c
  where c.load_id = loads.load_id and c.done_at is null
)`.as('openChunks');

const kindsAddUp = sql<boolean>`coalesce(
  (
    select ${sql.join(
      recordOutcomes.map((name) => sql`sum(n.${sql.ref(`rows_${name}`)}) = loads.${sql.ref(`rows_${name}`)}`),
      sql` and `,
    )}
    from load_kinds n
    where n.load_id = loads.load_id
  ),
  true
)`.as('kindsAddUp');

export async function readFinishState(db: Database, loadId: number) {
  return selectWhere(prepared(db), 'loads', { loadId })
    .select(camel('job_id', 'own_file', 'total_rows', 'pass'))
    .select([maxErrors.as('maxErrors'), tally, openChunks, kindsAddUp])
    .executeTakeFirstOrThrow();
}

/**
 * Reads the plan of a load and the limits for its changes. Returns `null` if the load has no limits
 * or has not been planned yet.
 */
export async function readLimitedPlan(db: Database, loadId: number) {
  const row = await db
    .selectFrom('load_guards')
    .innerJoin('load_plans', 'load_plans.load_id', 'load_guards.load_id')
    .select(camel('plan', 'max_changed', 'max_removed_values'))
    .where('load_guards.load_id', '=', loadId)
    .where('plan', 'is not', null)
    .$narrowType<{ plan: NotNull }>()
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Queues a plan to be applied. It must be complete, or an attempt to apply it must have failed or
 * been cancelled. Returns false if there is no such plan, or if it has no file. Must be called
 * under the lane's lock.
 */
export async function queueApply(
  db: Database,
  environmentId: number,
  jobId: string,
  onDrift: OnDrift,
): Promise<boolean> {
  const load = await updateWhere(db, 'loads', { environmentId, jobId })
    .set({ ...queuedAgain, pass: 'apply', begins_anew: true })
    .where(hasPlan)
    .where('file_ref', 'is not', null)
    .where((eb) =>
      eb.or([
        eb.and([eb('pass', '=', 'plan'), eb('status', '=', 'completed')]),
        eb.and([eb('pass', '=', 'apply'), eb('status', 'in', ['failed', 'cancelled'])]),
      ]),
    )
    .returning('load_id as loadId')
    .executeTakeFirst();
  if (load === undefined) return false;
  await updateWhere(db, 'load_plans', load).set({ on_drift: onDrift, applied_at: sql`now()` }).execute();
  return true;
}

const hasPlan = sql<boolean>`exists (
  select 1 from load_plans p where p.load_id = loads.load_id and p.plan is not null
)`;

/** The pass that the load is about to begin. `null` if the load is not running. */
export async function readBeginning(
  db: Database,
  loadId: number,
): Promise<{ readonly type: LoadType; readonly pass: LoadPass; readonly onDrift: OnDrift | null } | null> {
  const row = await db
    .selectFrom('loads')
    .leftJoin('load_plans', 'load_plans.load_id', 'loads.load_id')
    .select(['type', 'pass', 'on_drift as onDrift'])
    .where('loads.load_id', '=', loadId)
    .where('status', '=', 'processing')
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Deletes the results of the last pass and begins `pass`. The returned tasks must be passed to
 * `notifyQueue`. Must be called in the transaction that ends the caller's task.
 */
export async function beginPass(
  db: Database,
  { loads, records }: Pick<LoadContext, 'loads' | 'records'>,
  loadId: number,
  pass: LoadPass,
): Promise<DueTask[]> {
  const load = await updateWhere(db, 'loads', { loadId, status: 'processing' })
    .set({
      pass,
      begins_anew: false,
      work_started_at: sql`now()`,
      chunks_done: 0,
      rows_read: 0,
      dropped_properties: 0,
      ...rowCounts(0),
      repeats_resolved_at: null,
      has_event_types: false,
    })
    .returning(camel('job_id', 'request_id', 'environment_id', 'type'))
    .returning(usesOfLoad)
    .executeTakeFirst();
  if (load === undefined) throw new Fault(`load ${loadId} does not run`);
  await updateWhere(db, 'load_chunks', { loadId })
    .set({ done_at: null, ...rowCounts(null), attempts: 0, losses: 0 })
    .execute();
  await sql`delete from load_rejects where load_id = ${loadId}`.execute(db);
  await sql`delete from load_kinds where load_id = ${loadId}`.execute(db);
  await forgetRepeats(db, [loadId]);
  if (pass === 'load') await kindOf(loads, load.type)?.begins(db, loadId);
  for (const { hooks } of loads) await hooks?.end?.forget(db, loadId);
  if (records !== null && load.uses.includes(records.use)) await records.forget(db, loadId);
  if (keepsPlan(pass)) {
    await forgetPlan(db, loadId);
    await beginPlan(db, loadId);
  }
  if (pass === 'dry_run') await forgetPlannedRows(db, [loadId]);
  return insertChunkTasks(db, loadId, load);
}

function rowCounts<T extends 0 | null>(n: T) {
  const counts = recordOutcomes.map((outcome) => [`rows_${outcome}` as const, n] as const);
  return Object.fromEntries(counts) as Readonly<Record<(typeof counts)[number][0], T>>;
}
