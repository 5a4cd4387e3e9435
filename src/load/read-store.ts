import { type RawBuilder, sql } from 'kysely';
import { inputError } from '../base/errors.ts';
import { MAX_COUNTED_REJECTS } from '../base/limits.ts';
import {
  countedKinds,
  type LoadOptions,
  type LoadPass,
  type LoadStatus,
  noOutcomes,
  type Outcomes,
  type StoredFormat,
  type TallyByKind,
  toTally,
} from '../domain/load.ts';
import type { TaskClaim } from '../domain/task.ts';
import { camel, hex, toFailure } from '../postgres/columns.ts';
import {
  countOf,
  type Database,
  findValue,
  hasRows,
  prepared,
  rowsOf,
  selectWhere,
} from '../postgres/database.ts';
import { usesOfLoad } from '../postgres/uses.ts';
import { readJobHistory } from '../tasks/job-store.ts';
import { aheadInLane } from '../tasks/lane-store.ts';
import { storedFormat } from './chunk-store.ts';
import { isTakenBack } from './end-store.ts';
import { type LoadedSince, loadedSince } from './rejects/store.ts';
import { countsOf, tally } from './running-store.ts';
import type { LoadField, LoadSeam } from './seam.ts';
import { loadOf } from './store.ts';

/* Reads loads for lists and details. `store.ts` contains the steps of a load. */

interface Context {
  readonly db: Database;
}

interface SeamsContext extends Context {
  readonly loads: readonly LoadSeam[];
}

/**
 * Counts rejects by code, most frequent code first. Only the first MAX_COUNTED_REJECTS rejects of
 * the file are counted.
 */
export async function countRejects(
  { db }: Context,
  environmentId: number,
  jobId: string,
): Promise<Record<string, number>> {
  const rows = await rowsOf<{ code: string; count: number }>(prepared(db))`
    select error_code as code, count(*) as count
    from (
      select error_code
      from load_rejects
      where load_id = (select load_id from loads where environment_id = ${environmentId} and job_id = ${jobId})
      order by row_number
      limit ${MAX_COUNTED_REJECTS}
    ) first
    group by 1
    order by 2 desc`;
  return Object.fromEntries(rows.map(({ code, count }) => [code, count]));
}

/** Reads the history of a load, and the number of its rejects by code. */
export async function readLoadResult(
  db: Database,
  environmentId: number,
  { jobId, tally: { rejected } }: Pick<Load, 'jobId' | 'tally'>,
) {
  const history = await readJobHistory(db, environmentId, jobId);
  return { history, byCode: rejected === 0 ? {} : await countRejects({ db }, environmentId, jobId) };
}
export type LoadResult = Awaited<ReturnType<typeof readLoadResult>>;

const lastError = sql<string | null>`(
  select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
  from tasks t
  where t.subject_id = loads.load_id and t.kind in ('begin', 'chunk', 'finish') and t.last_error is not null
  order by t.part
  limit 1
)`.as('lastError');

type KindCounts = Readonly<Record<string, Outcomes>>;

const outcomesByKind = sql<KindCounts | null>`case when loads.has_event_types then (
  select coalesce(json_object_agg(n.kind, ${countsOf('n')}), '{}')
  from load_kinds n
  where n.load_id = loads.load_id
) end`.as('outcomesByKind');

const mendedJob = sql<string | null>`(
  select m.job_id from load_lineage n join loads m on m.load_id = n.mends where n.load_id = loads.load_id
)`.as('mends');

/** Number of records that earlier attempts have read. A retry continues where the load stopped. */
const rowsBefore = sql<number>`case when loads.attempts > 1 then (
  select coalesce(sum(c.row_count), 0)::bigint
  from load_chunks c
  where c.load_id = loads.load_id and c.done_at < loads.work_started_at
) else 0 end`.as('rowsBefore');

const mendedSince = sql<LoadedSince | null>`case
  when exists (select 1 from load_mends m where m.load_id = loads.load_id) then ${loadedSince(sql.ref('loads.load_id'))}
end`.as('loadedSince');

export type Load = Awaited<ReturnType<typeof readLoads>>[number];

/**
 * Returns the loads in no particular order. The position in the lane is read only if there is just
 * one job.
 */
export async function readLoads({ db }: Context, environmentId: number, jobIds: readonly string[]) {
  if (jobIds.length === 0) return [];
  const rows = await (jobIds.length === 1 ? prepared(db) : db)
    .selectFrom('loads')
    .leftJoin('load_guards', 'load_guards.load_id', 'loads.load_id')
    .leftJoin('load_plans', 'load_plans.load_id', 'loads.load_id')
    .leftJoin('load_lineage', 'load_lineage.load_id', 'loads.load_id')
    .where('loads.environment_id', '=', environmentId)
    .select(camel('job_id', 'type', 'entity', 'status', 'pass', 'filename', 'file_size', 'total_rows'))
    .select(camel('accepted_at', 'ended_at', 'attempts', 'duplicate_of', 'read_as'))
    .select(camel('dropped_properties', 'own_file'))
    .select(camel('held_at', 'held_for', 'decided_at', 'decided_by'))
    .select(usesOfLoad)
    .select(camel('plan', 'planned_at', 'applied_at', 'on_drift', 'failure_code', 'failure_message'))
    .select(['source_options as source'])
    .select(['work_started_at as startedAt', tally, outcomesByKind, lastError, hex('sha256', 'sha256')])
    .select([sql<boolean>`file_ref is not null`.as('hasFile')])
    .select([sql<boolean>`taken_back_by is not null`.as('isTakenBack'), rowsBefore, mendedJob, mendedSince])
    .$if(jobIds.length === 1, (query) => query.select(aheadInLane('loads').as('ahead')))
    .where('job_id', 'in', jobIds)
    .execute();
  return rows.map((row) => {
    const { plan, plannedAt, appliedAt, onDrift, failureCode, failureMessage, ahead, ...rest } = row;
    const { heldAt, heldFor, decidedAt, decidedBy, ...others } = rest;
    const { outcomesByKind: counts, ...load } = others;
    const { status, pass } = load;
    // When a plan is applied, the row keeps the counts from planning until the first chunk starts.
    const begins = pass === 'apply' && (status === 'queued' || status === 'processing');
    return {
      ...load,
      tally: begins ? toTally(noOutcomes) : load.tally,
      /** Counts by kind of record. `null` if no record has an `event_type`. */
      tallyByKind: begins ? null : counts && toTallyByKind(counts),
      /** True if the load never writes anything, or has not written anything yet. */
      dryRun: writeNothing.includes(pass),
      plan: plan === null || plannedAt === null ? null : { summary: plan, plannedAt, appliedAt, onDrift },
      failure: toFailure(failureCode, failureMessage),
      /** When and why a guard has held the load. `null` if no guard has held it. */
      held: heldAt === null ? null : { at: heldAt, reasons: heldFor ?? [], decidedAt, decidedBy },
      /**
       * Number of jobs ahead in the lane. 0 while the job is running, `null` after its end and in
       * lists.
       */
      queuePosition: queuePosition(status, ahead),
    };
  });
}

/** @throws InputError `not_found`, also for jobs of another environment */
export async function requireLoad(context: Context, environmentId: number, jobId: string): Promise<Load> {
  const [load] = await readLoads(context, environmentId, [jobId]);
  if (load === undefined) throw inputError('not_found', 'There is no such job', `job_id: ${jobId}`);
  return load;
}

/** Passes that write nothing. After `apply`, the load starts to write. */
const writeNothing: readonly LoadPass[] = ['dry_run', 'plan', 'apply'];

function queuePosition(status: LoadStatus, ahead: number | undefined): number | null {
  if (status === 'queued') return ahead ?? null;
  return status === 'processing' ? 0 : null;
}

function toTallyByKind(counts: KindCounts): TallyByKind {
  const entries = countedKinds.map((kind) => [kind, toTally(counts[kind] ?? noOutcomes)] as const);
  return Object.fromEntries(entries) as TallyByKind;
}

export function isInLedger(db: Database, jobId: string): Promise<boolean> {
  return hasRows(db)`select 1 from loads where job_id = ${jobId}`;
}

export async function readLoadId(db: Database, jobId: string): Promise<number> {
  const { load_id } = await selectWhere(prepared(db), 'loads', { jobId })
    .select('load_id')
    .executeTakeFirstOrThrow();
  return load_id;
}

export interface StoredReading extends Pick<LoadOptions, 'entity' | 'map' | 'preset' | 'source'> {
  readonly fileFormat: StoredFormat;
}

export function readReading(db: Database, jobId: string): Promise<StoredReading> {
  return selectWhere(db, 'loads', { jobId })
    .select([
      'entity',
      'column_map as map',
      'preset',
      'source_options as source',
      storedFormat.as('fileFormat'),
    ])
    .executeTakeFirstOrThrow();
}

/**
 * Reads the options of a load. Returns `null` if there is no such load, or if it wrote its own
 * file.
 */
export async function readLoadOptions(db: Database, environmentId: number, jobId: string) {
  const row = await loadOf(db, environmentId, jobId)
    .leftJoin('load_guards', 'load_guards.load_id', 'loads.load_id')
    .select(['entity', 'column_map as map', 'preset', 'source_options as source'])
    .select(camel('max_errors', 'max_changed', 'max_removed_values'))
    .where('own_file', '=', false)
    .executeTakeFirst();
  return row ?? null;
}

/** "BYTE" in ASCII. First of the two keys of an advisory lock. */
const bytesLock = 0x42595445;

/** Takes a lock, so that other transactions that accept the same bytes wait until this one ends. */
export async function lockBytes(db: Database, environmentId: number, sha256: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(${bytesLock}, hashtext(${`${environmentId}:${sha256}`}))`.execute(
    db,
  );
}

/** Newest load with the same bytes and options that is completed or has one of `statuses`. */
export function findDuplicate(
  db: Database,
  seams: readonly LoadSeam[],
  environmentId: number,
  { sha256, entity, fileFormat, preset, map, source }: StoredReading & { readonly sha256: string },
  statuses: readonly LoadStatus[] = [],
): Promise<string | null> {
  return findValue<string>(prepared(db))`
    select job_id
    from loads
    where environment_id = ${environmentId} and sha256 = decode(${sha256}, 'hex')
      and status in ('queued', 'processing', 'held', 'completed')
      and (status = 'completed' or status = any (${[...statuses]}::text[]))
      and entity = ${entity} and (header is not null) = ${fileFormat === 'csv'} and preset is not distinct from ${preset}
      and column_map = ${JSON.stringify(map)}::jsonb and source_options = ${JSON.stringify(source)}::jsonb
      and pass not in ('dry_run', 'plan') and not own_file and not ${isTakenBack(seams)}
    order by job_id desc
    limit 1`;
}

/**
 * Fields that capabilities add to the job. Runs a query only if one of these fields applies to the
 * load.
 */
export async function readShown(
  { db, loads }: SeamsContext,
  environmentId: number,
  load: Pick<Load, 'jobId' | 'type' | 'source' | 'tally' | 'uses' | 'isTakenBack'>,
) {
  const all = loads.flatMap(({ fields }) => fields ?? []);
  const applicable = all.filter((field) => field.isOf(load));
  const values = applicable.length === 0 ? {} : await readFields(db, environmentId, load.jobId, applicable);
  const fields = all.map((field) => [
    field.name,
    applicable.includes(field) ? field.render(load, values[field.name]) : field.absent,
  ]);
  return {
    fields: Object.fromEntries(fields) as Readonly<Record<string, unknown>>,
    isPartial: applicable.some((field) => field.isPartial?.(values[field.name])),
    isOpen: applicable.some((field) => field.isOpen?.(values[field.name])),
  };
}
export type Shown = Awaited<ReturnType<typeof readShown>>;

async function readFields(
  db: Database,
  environmentId: number,
  jobId: string,
  fields: readonly LoadField[],
): Promise<Readonly<Record<string, unknown>>> {
  const pairs = fields.map(({ name, select }) => sql`${sql.lit(name)}, ${select}`);
  const values = sql<Record<string, unknown>>`json_build_object(${sql.join(pairs)})`.as('values');
  const row = await loadOf(prepared(db), environmentId, jobId).select(values).executeTakeFirstOrThrow();
  return row.values;
}

export async function readLoadEnd(context: SeamsContext, environmentId: number, jobId: string) {
  const row = await loadOf(prepared(context.db), environmentId, jobId)
    .select(['load_id as loadId', 'type', 'status', 'rows_rejected', 'source_options as source'])
    .select([tally, usesOfLoad])
    .executeTakeFirstOrThrow();
  return { ...row, ...(await readShown(context, environmentId, { ...row, jobId, isTakenBack: false })) };
}

/** Dry runs and plans change nothing. */
const writes: RawBuilder<unknown> = sql`l.pass not in ('dry_run', 'plan')`;

/** Returns job ids in the order of the lane. */
export async function findUnfinishedLoads(db: Database, environmentId: number): Promise<string[]> {
  const rows = await rowsOf<{ jobId: string }>(db)`
    select l.job_id as "jobId"
    from loads l
    where l.environment_id = ${environmentId} and l.status in ('queued', 'processing', 'held') and ${writes}
    order by l.lane_position`;
  return rows.map(({ jobId }) => jobId);
}

/** Number of loads for which a queued export is waiting. 0 if the export does not have to wait. */
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
