/** Loads as they are listed and shown. `loads.ts` has the steps of a load, `running-loads.ts` what its tasks read. */
import { type InferResult, sql } from 'kysely';
import { inputError } from '../../domain/errors.ts';
import { MAX_COUNTED_REJECTS, MAX_SHOWN_AMENDMENTS } from '../../domain/limits.ts';
import {
  type Amendment,
  countedKinds,
  type Load,
  type LoadOptions,
  type LoadPass,
  noOutcomes,
  type Outcomes,
  type StoredFormat,
  type Tally,
  type TallyByKind,
  toTally,
} from '../../domain/load.ts';
import type { ReadAs } from '../../domain/source.ts';
import { camel, hex, toFailure } from '../columns.ts';
import type { Database } from '../database.ts';
import { aheadInLane } from './lanes.ts';
import { tally } from './running-loads.ts';

/** Reads the environment's loads of these ids, in no order, without their places in the lane. */
export async function readLoads(
  context: { readonly db: Database },
  environmentId: number,
  jobIds: readonly string[],
): Promise<Load[]> {
  if (jobIds.length === 0) return [];
  const rows = await selectLoads(context.db, environmentId, jobIds).execute();
  return rows.map((row) => ({ ...toLoad(row, null), readAs: null, amends: null, amendments: [] }));
}

/** Throws `InputError` `not_found`, also for another environment's job. */
export async function requireLoad(
  context: { readonly db: Database },
  environmentId: number,
  jobId: string,
): Promise<Load> {
  const row = await selectLoads(context.db, environmentId, [jobId])
    .select(['read_as as readAs', aheadInLane('loads').as('ahead'), amendedJob, amendments])
    .executeTakeFirst();
  if (row === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  const { ahead, readAs, amends, amendments: amending, ...load } = row;
  return { ...toLoad(load, ahead), readAs, amends, amendments: amending ?? [] };
}

/** Counts the rejects of a load by code, most frequent first; beyond MAX_COUNTED_REJECTS, only the first in file order. */
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

/** The last error of an unfinished task of the load. */
const lastError = sql<string | null>`(
  select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
  from tasks t
  where t.subject_id = loads.load_id and t.kind in ('begin', 'chunk', 'finish') and t.last_error is not null
  order by t.part
  limit 1
)`.as('lastError');

type KindCounts = Readonly<Record<string, Outcomes & Pick<Tally, 'amended'>>>;

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
) end`.as('outcomesByKind');

const amendedJob = sql<string | null>`(
  select a.job_id
  from loads a
  where a.load_id = loads.amends
)`.as('amends');

/** The latest MAX_SHOWN_AMENDMENTS. */
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

function selectLoads(db: Database, environmentId: number, jobIds: readonly string[]) {
  return db
    .selectFrom('loads')
    .select(camel('job_id', 'type', 'entity', 'status', 'pass', 'filename', 'file_size', 'total_rows'))
    .select(camel('accepted_at', 'work_started_at', 'work_rows_before', 'ended_at', 'attempts'))
    .select(camel('plan', 'planned_at', 'applied_at', 'on_drift', 'duplicate_of'))
    .select(camel('failure_code', 'failure_message'))
    .select([tally, outcomesByKind, lastError, hex('sha256', 'sha256')])
    .select(sql<boolean>`file_ref is not null`.as('hasFile'))
    .where('environment_id', '=', environmentId)
    .where('job_id', 'in', jobIds);
}

type LoadRow = InferResult<ReturnType<typeof selectLoads>>[number];

function toLoad(row: LoadRow, ahead: number | null): Omit<Load, 'amends' | 'amendments' | 'readAs'> {
  const {
    plan,
    plannedAt,
    appliedAt,
    onDrift,
    failureCode,
    failureMessage,
    outcomesByKind: counts,
    ...load
  } = row;
  const { status, pass } = load;
  // Until its chunks start, a plan that is applied has the counts that it was planned with.
  const begins = pass === 'apply' && (status === 'queued' || status === 'processing');
  return {
    ...load,
    tally: begins ? toTally(noOutcomes) : load.tally,
    tallyByKind: begins ? null : counts && toTallyByKind(counts),
    dryRun: writeNothing.includes(pass),
    plan: plan === null || plannedAt === null ? null : { summary: plan, plannedAt, appliedAt, onDrift },
    failure: toFailure(failureCode, failureMessage),
    queuePosition: status === 'queued' ? ahead : status === 'processing' ? 0 : null,
  };
}

/** The passes of loads that were asked to write nothing, or of which it is not known yet whether they will. */
const writeNothing: readonly LoadPass[] = ['dry_run', 'plan', 'apply'];

function toTallyByKind(counts: KindCounts): TallyByKind {
  const entries = countedKinds.map(
    (kind) => [kind, toTally(counts[kind] ?? noOutcomes, counts[kind]?.amended)] as const,
  );
  return Object.fromEntries(entries) as TallyByKind;
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

/** The options with which a load reads its file. */
export interface StoredReading extends Pick<LoadOptions, 'entity' | 'map' | 'preset' | 'source'> {
  readonly fileFormat: StoredFormat;
}

export function readReading(db: Database, jobId: string): Promise<StoredReading> {
  return db
    .selectFrom('loads')
    .select([
      'entity',
      'column_map as map',
      'preset',
      'source_options as source',
      'file_format as fileFormat',
    ])
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
}

/** Returns the newest completed load of the same bytes, read in the same way. */
export async function findDuplicate(
  db: Database,
  environmentId: number,
  reading: StoredReading & { readonly sha256: string },
): Promise<string | null> {
  const row = await db
    .selectFrom('loads')
    .select('job_id')
    .where((eb) =>
      eb.and({
        environment_id: environmentId,
        sha256: Buffer.from(reading.sha256, 'hex'),
        status: 'completed',
        entity: reading.entity,
        file_format: reading.fileFormat,
      }),
    )
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

/** Returns `null` also if the load is gone. */
export async function readReadAs(db: Database, environmentId: number, jobId: string): Promise<ReadAs | null> {
  const row = await db
    .selectFrom('loads')
    .select('read_as')
    .where((eb) => eb.and({ environment_id: environmentId, job_id: jobId }))
    .executeTakeFirst();
  return row?.read_as ?? null;
}

export function readLoadEnd(db: Database, environmentId: number, jobId: string) {
  return db
    .selectFrom('loads')
    .select(['status', 'rows_rejected'])
    .where((eb) => eb.and({ environment_id: environmentId, job_id: jobId }))
    .executeTakeFirstOrThrow();
}
