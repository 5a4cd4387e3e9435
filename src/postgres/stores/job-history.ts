import { sql } from 'kysely';
import { inputError } from '../../domain/errors.ts';
import { type ExportRequest, toGivenRequest } from '../../domain/export.ts';
import { MAX_SHOWN_PARAMETERS } from '../../domain/limits.ts';
import type { Origin } from '../../domain/origin.ts';
import type { SourceOptions } from '../../domain/source.ts';
import { toGivenSource } from '../../domain/source-options.ts';
import type { Database } from '../database.ts';
import { chunkColumns, type LiveChunk } from './live.ts';

/* What came before a job, and how it went: who started it with what, and when it reached each of its phases. */

export interface JobHistory {
  readonly requestId: string | null;
  readonly origin: Origin | null;
  /** Names and values; of long lists the first MAX_SHOWN_PARAMETERS items. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** There is more of the parameters than that. */
  readonly isCut: boolean;
  /** The phases that were reached, oldest first. */
  readonly phases: readonly { readonly phase: string; readonly at: Date }[];
}

interface HistoryRow {
  readonly requestId: string | null;
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly status: string;
  readonly acceptedAt: Date;
  readonly startedAt: Date | null;
  readonly begunAgainAt: Date | null;
  readonly plannedAt: Date | null;
  readonly appliedAt: Date | null;
  readonly mergedAt: Date | null;
  readonly finishingAt: Date | null;
  readonly endedAt: Date | null;
}

/** Throws `InputError` `not_found`, also for another environment's job. */
export async function readJobHistory(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<JobHistory> {
  const { rows } = await sql<HistoryRow>`
    select
      request_id as "requestId", origin, origin_name as "originName", status, accepted_at as "acceptedAt",
      started_at as "startedAt",
      nullif(work_started_at, started_at) as "begunAgainAt",
      json_build_object(
        'entity', entity, 'map', column_map, 'preset', preset, 'max_errors', max_errors, 'max_changed', max_changed,
        'max_removed_values', max_removed_values, 'dry_run', pass = 'dry_run',
        'plan', pass in ('plan', 'apply') or applied_at is not null, 'options', source_options,
        'format', coalesce(read_as ->> 'format', file_format), 'file_of', file_of,
        'amends', (select a.job_id from loads a where a.load_id = loads.amends), 'wins', wins, 'chunks', chunk_count
      ) as parameters,
      plan_ended_at as "plannedAt",
      applied_at as "appliedAt",
      case when pass in ('load', 'dry_run') and chunks_done = chunk_count then (
        select max(done_at) from load_chunks c where c.load_id = loads.load_id
      ) end as "mergedAt",
      repeats_resolved_at as "finishingAt",
      ended_at as "endedAt"
    from loads
    where environment_id = ${environmentId} and job_id = ${jobId}
    union all
    select
      request_id, origin, origin_name, status, requested_at, started_at, null,
      json_build_object(
        'request', case when pg_column_size(request) < 65536 then request end, 'emails', emails,
        'retention_days', retention_days
      ),
      null, null, null, snapshot_at, ended_at
    from exports
    where environment_id = ${environmentId} and job_id = ${jobId}
    union all
    select
      request_id, origin, origin_name, status, accepted_at, started_at, null,
      json_build_object('entity', entity, 'purge_exports', purge_exports, 'ids', ids_requested),
      null, null, null, null, ended_at
    from deletions
    where environment_id = ${environmentId} and job_id = ${jobId}`.execute(db);
  const [row] = rows;
  if (row === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  const isExport = 'request' in row.parameters;
  const phases = [
    ['accepted', row.acceptedAt],
    ['started', row.startedAt],
    ['planned', row.plannedAt],
    ['applied', row.appliedAt],
    ['resumed', row.begunAgainAt],
    ['merged', row.mergedAt],
    [isExport ? 'snapshot' : 'repeats_resolved', row.finishingAt],
  ] as const;
  const reached = phases.flatMap(([phase, at]) => (at === null ? [] : [{ phase: phase as string, at }]));
  reached.sort((a, b) => a.at.getTime() - b.at.getTime());
  // Its time is the start of the transaction that ended the job; others may have committed at later times meanwhile.
  if (row.endedAt !== null) reached.push({ phase: row.status, at: row.endedAt });
  const parameters = named(row.parameters);
  return {
    requestId: row.requestId,
    origin: row.origin === null ? null : { kind: row.origin, name: row.originName },
    parameters: shorten(parameters) as JobHistory['parameters'],
    isCut: isCut(parameters),
    phases: reached,
  };
}

/** As callers write them. */
function named({ options, request, ...rest }: HistoryRow['parameters']): object {
  if (options !== undefined) return { ...rest, options: toGivenSource(options as SourceOptions) };
  if (request === undefined) return rest;
  return { ...rest, request: request === null ? null : toGivenRequest(request as ExportRequest) };
}

/** A list is longer than what is shown of it, or the request of an export than can be shown. */
function isCut(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > MAX_SHOWN_PARAMETERS || value.some(isCut);
  if (typeof value !== 'object' || value === null) return false;
  return ('request' in value && value.request === null) || Object.values(value).some(isCut);
}

function shorten(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, MAX_SHOWN_PARAMETERS).map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shorten(part)]));
}

export interface ChunkPage {
  readonly chunks: readonly LiveChunk[];
  /** Of the load, on all pages. */
  readonly total: number;
  /** Others follow. */
  readonly more: boolean;
}

/** The chunks of a load behind the first `after`. Throws `InputError` `not_found`, also for a job that is no load. */
export async function readChunks(
  db: Database,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number },
): Promise<ChunkPage> {
  const load = await db
    .selectFrom('loads')
    .select(['load_id', 'chunk_count'])
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  if (load === undefined) throw inputError('not_found', 'there is no such load', `job_id: ${jobId}`);
  const { rows } = await sql<LiveChunk>`
    select ${sql.raw(chunkColumns)}
    from loads l
    join load_chunks c on c.load_id = l.load_id
    left join tasks t on t.kind = 'chunk' and t.subject_id = c.load_id and t.part = c.chunk_no
    where l.load_id = ${load.load_id} and c.chunk_no >= ${page.after}
    order by c.chunk_no
    limit ${page.limit + 1}`.execute(db);
  return { chunks: rows.slice(0, page.limit), total: load.chunk_count, more: rows.length > page.limit };
}
