import type { ListedJob, ShownJob } from '../domain/job.ts';
import type { TaskFailure } from '../domain/task.ts';
import type { JobHistory } from '../tasks/job-store.ts';
import type { Run } from './run.ts';

type Snake<S extends string> = S extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : S;

type Shown<V> = V extends Date ? string : V;

export type Rendered<T> = { [Name in keyof T & string as Snake<Name>]: Shown<T[Name]> };

/** Converts names to snake case, and dates to strings. Nested values are not changed. */
export function render<T extends object>(row: T): Rendered<T> {
  const members = Object.entries(row).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value instanceof Date ? value.toISOString() : value,
  ]);
  return Object.fromEntries(members) as Rendered<T>;
}

export const loadUrl = (baseUrl: string, jobId: string): string => `${baseUrl}/v1/background_jobs/${jobId}`;

export const exportUrl = (baseUrl: string, jobId: string): string =>
  `${baseUrl}/api/v1/analytics/exports/jobs/${jobId}`;

export function renderJob<T extends ShownJob>(job: T, baseUrl: string) {
  return {
    job_id: job.jobId,
    type: job.type as T['type'],
    status: job.status,
    filename: job.filename,
    file_size: job.fileSize,
    total_rows: job.totalRows,
    start_time: job.acceptedAt.toISOString(),
    end_time: job.endedAt?.toISOString() ?? null,
    links: (job.type === 'export' ? exportUrl : loadUrl)(baseUrl, job.jobId),
  };
}

export function renderJobListItem<T extends ShownJob>(job: T, baseUrl: string, now = new Date()) {
  const ms = (job.endedAt ?? now).getTime() - job.acceptedAt.getTime();
  return {
    ...renderJob(job, baseUrl),
    processing_since: job.startedAt?.toISOString() ?? null,
    elapsed_time: Math.max(0, Math.floor(ms / 1000)),
  };
}

export function renderListedJob(job: ListedJob, baseUrl: string, now = new Date()) {
  const { counts, origin, originName } = job;
  return {
    ...renderJobListItem(job, baseUrl, now),
    counts,
    origin: origin && { kind: origin, name: originName },
  };
}

/** Rows per second of the current work. `null` if the work has not begun. */
export function rateOf(
  rows: number,
  { startedAt, endedAt }: Pick<ShownJob, 'startedAt' | 'endedAt'>,
  now: Date,
) {
  if (startedAt === null || rows <= 0) return null;
  const ms = (endedAt ?? now).getTime() - startedAt.getTime();
  return Math.round((rows * 1000) / Math.max(1, ms));
}

export interface RunFacts<Counts extends Run['counts']>
  extends JobHistory,
    Pick<Run, 'sources' | 'type' | 'status' | 'cursor'> {
  readonly jobId: string | null;
  readonly files: readonly Run['files'][number][];
  readonly counts: Counts;
  readonly rejects: Run['rejects'];
  readonly failure: TaskFailure | null;
}

export const noRejects: Run['rejects'] = { count: 0, by_code: {}, links: null };

export function renderRun<Counts extends Run['counts']>(facts: RunFacts<Counts>) {
  const { failure: reason, phases, origin: by } = facts;
  return {
    schema: 1 as const,
    job_id: facts.jobId,
    type: facts.type,
    status: facts.status,
    origin: by && { kind: by.kind, name: by.name },
    request_id: facts.requestId,
    sources: [...facts.sources],
    files: facts.files.map(({ filename, dataset, rows, bytes, sha256: hash }) => {
      return { filename, dataset, rows, bytes, sha256: hash };
    }),
    options: facts.options,
    options_cut: facts.optionsCut,
    counts: facts.counts,
    rejects: facts.rejects,
    phases: phases.map(render),
    failure: reason && { error_code: reason.code, message: reason.message },
    cursor: facts.cursor,
  };
}
