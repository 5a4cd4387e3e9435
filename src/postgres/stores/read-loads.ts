import { sql } from 'kysely';
import type { LoadEntity } from '../../domain/entity.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_COUNTED_REJECTS, MAX_SHOWN_AMENDMENTS } from '../../domain/limits.ts';
import {
  type Amendment,
  countedKinds,
  type Load,
  type LoadOptions,
  type LoadPass,
  type LoadPlan,
  type LoadStatus,
  type LoadType,
  noOutcomes,
  type OnDrift,
  type Outcomes,
  type PlanSummary,
  type StoredFormat,
  type Tally,
  type TallyByKind,
  toTally,
} from '../../domain/load.ts';
import type { ReadAs } from '../../domain/source.ts';
import type { Database } from '../database.ts';
import { aheadInLane } from './lanes.ts';

/** The environment's loads of these ids, in no order; how many are before them is not looked at. */
export async function readLoads(
  context: { readonly db: Database },
  environmentId: number,
  jobIds: readonly string[],
): Promise<Load[]> {
  if (jobIds.length === 0) return [];
  const rows = await context.db
    .selectFrom('loads')
    .select(loadColumns)
    .where('loads.environment_id', '=', environmentId)
    .where('loads.job_id', 'in', jobIds)
    .execute();
  return rows.map((row) => toLoad(row, null));
}

/** Throws `InputError` `not_found`, also for another environment's job. */
export async function requireLoad(
  context: { readonly db: Database },
  environmentId: number,
  jobId: string,
): Promise<Load> {
  const row = await context.db
    .selectFrom('loads')
    .select([...loadColumns, 'loads.read_as', aheadInLane('loads').as('ahead'), amendedJob, amendments])
    .where('loads.environment_id', '=', environmentId)
    .where('loads.job_id', '=', jobId)
    .executeTakeFirst();
  if (row === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return {
    ...toLoad(row, row.ahead),
    readAs: row.read_as as ReadAs | null,
    amends: row.amended_job,
    amendments: row.amendments ?? [],
  };
}

/** Rejects of a load by code, most frequent first; of a load with more of them than MAX_COUNTED_REJECTS, those that stand first. */
export async function countRejects(
  context: { readonly db: Database },
  environmentId: number,
  jobId: string,
): Promise<Record<string, number>> {
  const rows = await context.db
    .selectFrom((eb) =>
      eb
        .selectFrom('load_rejects')
        .where('load_id', '=', ({ selectFrom }) =>
          selectFrom('loads')
            .select('load_id')
            .where('environment_id', '=', environmentId)
            .where('job_id', '=', jobId),
        )
        .orderBy('row_number')
        .limit(MAX_COUNTED_REJECTS)
        .select('error_code')
        .as('first'),
    )
    .groupBy('error_code')
    .select((eb) => ['error_code', eb.fn.countAll<number>().as('count')])
    .orderBy('count', 'desc')
    .execute();
  return Object.fromEntries(rows.map((row) => [row.error_code, row.count]));
}

/** What the last try of a task ran into that is still to be done; of a load that runs, of which there is one a lane. */
const lastError = sql<string | null>`(
  select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
  from tasks t
  where t.subject_id = loads.load_id and t.kind in ('begin', 'chunk', 'finish') and t.last_error is not null
  order by t.part
  limit 1
)`.as('last_error');

type KindCounts = Readonly<Record<string, Outcomes & Pick<Tally, 'amended'>>>;

/** By kind of record, of a load whose records say what they are. */
const outcomesByKind = sql<KindCounts | null>`case when loads.has_event_types then (
  select coalesce(
    json_object_agg(
      n.kind,
      json_build_object(
        'inserted', n.rows_inserted,
        'updated', n.rows_updated,
        'unchanged', n.rows_unchanged,
        'superseded', n.rows_superseded,
        'rejected', n.rows_rejected,
        'amended', n.rows_amended
      )
    ),
    '{}'
  )
  from load_kinds n
  where n.load_id = loads.load_id
) end`.as('outcomes_by_kind');

const amendedJob = sql<string | null>`(
  select a.job_id
  from loads a
  where a.load_id = loads.amends
)`.as('amended_job');

/** Of a load that was mended in more jobs than are shown, the latest. */
const amendments = sql<readonly Amendment[] | null>`(
  select json_agg(json_build_object('jobId', a.job_id, 'status', a.status, 'totalRows', a.total_rows))
  from (
    select *
    from loads a
    where a.amends = loads.load_id
    order by a.load_id desc
    limit ${sql.lit(MAX_SHOWN_AMENDMENTS)}
  ) a
)`.as('amendments');

const loadColumns = [
  'loads.job_id',
  'loads.type',
  'loads.entity',
  'loads.status',
  'loads.filename',
  'loads.file_size',
  'loads.total_rows',
  'loads.accepted_at',
  'loads.work_started_at',
  'loads.work_rows_before',
  'loads.ended_at',
  'loads.rows_read',
  'loads.rows_inserted',
  'loads.rows_updated',
  'loads.rows_unchanged',
  'loads.rows_superseded',
  'loads.rows_rejected',
  'loads.rows_amended',
  outcomesByKind,
  'loads.pass',
  sql<boolean>`loads.file_ref is not null`.as('has_file'),
  'loads.plan',
  'loads.planned_at',
  'loads.applied_at',
  'loads.on_drift',
  'loads.failure_code',
  'loads.failure_message',
  lastError,
  'loads.attempts',
  'loads.sha256',
  'loads.duplicate_of',
] as const;

interface LoadRow {
  job_id: string;
  type: string;
  entity: string;
  status: string;
  filename: string;
  file_size: number;
  total_rows: number;
  accepted_at: Date;
  work_started_at: Date | null;
  work_rows_before: number;
  ended_at: Date | null;
  rows_read: number;
  rows_inserted: number;
  rows_updated: number;
  rows_unchanged: number;
  rows_superseded: number;
  rows_rejected: number;
  rows_amended: number;
  outcomes_by_kind: KindCounts | null;
  pass: string;
  has_file: boolean;
  plan: unknown;
  planned_at: Date | null;
  applied_at: Date | null;
  on_drift: string | null;
  failure_code: string | null;
  failure_message: string | null;
  last_error: string | null;
  attempts: number;
  sha256: Buffer;
  duplicate_of: string | null;
}

function toLoad(row: LoadRow, ahead: number | null): Load {
  const status = row.status as LoadStatus;
  // Until its chunks start, a plan that is applied has the counts that it was planned with.
  const begins = row.pass === 'apply' && (status === 'queued' || status === 'processing');
  return {
    jobId: row.job_id,
    type: row.type as LoadType,
    entity: row.entity as LoadEntity,
    status,
    filename: row.filename,
    fileSize: row.file_size,
    totalRows: row.total_rows,
    acceptedAt: row.accepted_at,
    workStartedAt: row.work_started_at,
    workRowsBefore: row.work_rows_before,
    endedAt: row.ended_at,
    tally: begins
      ? noTally
      : {
          read: row.rows_read,
          inserted: row.rows_inserted,
          updated: row.rows_updated,
          unchanged: row.rows_unchanged,
          superseded: row.rows_superseded,
          rejected: row.rows_rejected,
          amended: row.rows_amended,
        },
    tallyByKind: begins ? null : row.outcomes_by_kind && toTallyByKind(row.outcomes_by_kind),
    dryRun: asksForNothing.includes(row.pass),
    pass: row.pass as LoadPass,
    hasFile: row.has_file,
    plan: toPlan(row),
    failure:
      row.failure_code === null
        ? null
        : { code: row.failure_code, message: row.failure_message ?? row.failure_code },
    lastError: row.last_error,
    attempts: row.attempts,
    queuePosition: status === 'queued' ? ahead : status === 'processing' ? 0 : null,
    sha256: row.sha256.toString('hex'),
    duplicateOf: row.duplicate_of,
    amends: null,
    amendments: [],
    readAs: null,
  };
}

const noTally = toTally(noOutcomes);

/** Passes of loads whose caller has not asked for anything to be written, or of whose plan it is not known yet whether it can be. */
const asksForNothing: readonly string[] = ['dry_run', 'plan', 'apply'] satisfies LoadPass[];

function toPlan({ plan, planned_at, applied_at, on_drift }: LoadRow): LoadPlan | null {
  if (plan === null || planned_at === null) return null;
  return {
    summary: plan as PlanSummary,
    plannedAt: planned_at,
    appliedAt: applied_at,
    onDrift: on_drift as OnDrift | null,
  };
}

export async function isInLedger(db: Database, jobId: string): Promise<boolean> {
  const row = await db.selectFrom('loads').select('job_id').where('job_id', '=', jobId).executeTakeFirst();
  return row !== undefined;
}

/** Throws if there is no such load. */
export async function readLoadId(db: Database, jobId: string): Promise<number> {
  const { load_id } = await db
    .selectFrom('loads')
    .select('load_id')
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  return load_id;
}

/** Bytes, and what decides how they are read. */
interface Reading extends Pick<LoadOptions, 'entity' | 'map' | 'preset' | 'source'> {
  /** Hex. */
  readonly sha256: string;
  readonly fileFormat: StoredFormat;
}

/** The newest completed load of the same bytes, read in the same way. */
export async function findDuplicate(
  db: Database,
  environmentId: number,
  reading: Reading,
): Promise<string | null> {
  const row = await db
    .selectFrom('loads')
    .select('job_id')
    .where('environment_id', '=', environmentId)
    .where('sha256', '=', Buffer.from(reading.sha256, 'hex'))
    .where('status', '=', 'completed')
    .where('entity', '=', reading.entity)
    .where('file_format', '=', reading.fileFormat)
    .where('preset', 'is not distinct from', reading.preset)
    .where(sql<boolean>`column_map = ${JSON.stringify(reading.map)}::jsonb`)
    .where(sql<boolean>`source_options = ${JSON.stringify(reading.source)}::jsonb`)
    .where('dry_run', '=', false)
    .where('amends', 'is', null)
    .orderBy('job_id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.job_id ?? null;
}

/** Null if the load is gone. */
export async function readReadAs(db: Database, environmentId: number, jobId: string): Promise<ReadAs | null> {
  const row = await db
    .selectFrom('loads')
    .select('read_as')
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  return (row?.read_as ?? null) as ReadAs | null;
}

/** How a load stands. */
export function readLoadEnd(db: Database, environmentId: number, jobId: string) {
  return db
    .selectFrom('loads')
    .select(['status', 'rows_rejected'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
}

function toTallyByKind(counts: KindCounts): TallyByKind {
  const entries = countedKinds.map(
    (kind) => [kind, toTally(counts[kind] ?? noOutcomes, counts[kind]?.amended)] as const,
  );
  return Object.fromEntries(entries) as TallyByKind;
}
