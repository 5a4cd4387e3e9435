import pLimit from 'p-limit';
import { addOutcomes, noOutcomes, sumByKind, toTally } from '../../domain/load.ts';
import { renderExportRun } from '../../export/manifest.ts';
import { type Export, readExports } from '../../export/store.ts';
import { exportUrl, loadUrl, renderRun } from '../../http/render.ts';
import { type Load, readLoads } from '../../load/read-store.ts';
import type { Database } from '../../postgres/database.ts';
import { type JobHistory, showOptions } from '../../tasks/job-store.ts';
import { MAX_TOLD_ITEMS, NEXT_DUE_TIMES, SHOWN_RUNS } from './api.ts';
import { nextDueTimes } from './due-times.ts';
import { countRejectsOfRuns, type RunItem, readItemsOfRuns } from './run-item-store.ts';
import { readRuns, type ScheduleRun } from './run-store.ts';
import {
  type LoadDefinition,
  type RunDefinition,
  type Schedule,
  type ScheduleDefinition,
  sourceKinds,
} from './schema.ts';

/** Number of runs whose items and jobs are read together. A run has at most MAX_RUN_ITEMS items. */
const RUNS_AT_A_TIME = 10;

/**
 * Shows the first MAX_TOLD_ITEMS items. If an earlier job had already loaded the bytes of an item,
 * the files, counts and rejects of that job are not included.
 */
export async function renderScheduleRuns(db: Database, runs: readonly ScheduleRun[], baseUrl: string) {
  const documents: ReturnType<typeof renderDocument>[] = [];
  for (let from = 0; from < runs.length; from += RUNS_AT_A_TIME) {
    const page = runs.slice(from, from + RUNS_AT_A_TIME);
    const work = await readWork(db, page);
    documents.push(...page.map((run) => renderDocument(run, work, baseUrl)));
  }
  return documents;
}

export async function renderScheduleRun(db: Database, run: ScheduleRun, baseUrl: string) {
  return renderDocument(run, await readWork(db, [run]), baseUrl);
}

interface RunWork {
  readonly items: ReadonlyMap<number, readonly RunItem[]>;
  readonly loads: ReadonlyMap<string, Load>;
  readonly exports: ReadonlyMap<string, Export>;
  readonly rejects: ReadonlyMap<number, Readonly<Record<string, number>>>;
}

async function readWork(db: Database, runs: readonly ScheduleRun[]): Promise<RunWork> {
  const runIds = runs.map(({ runId }) => runId);
  const items = await readItemsOfRuns(db, runIds);
  const loads = new Map<string, Load>();
  const exports = new Map<string, Export>();
  for (const environmentId of new Set(runs.map((run) => run.environmentId))) {
    const jobIdsOf = (kind: 'load' | 'export') =>
      runs
        .filter((run) => run.environmentId === environmentId && kindOf(run) === kind)
        .flatMap(({ runId }) => items.get(runId) ?? [])
        .flatMap(({ jobId }) => jobId ?? []);
    for (const job of await readLoads({ db }, environmentId, jobIdsOf('load'))) loads.set(job.jobId, job);
    for (const job of await readExports(db, environmentId, jobIdsOf('export'))) exports.set(job.jobId, job);
  }
  const hasRejects = [...loads.values()].some(({ tally }) => tally.rejected > 0);
  const rejects = hasRejects ? await countRejectsOfRuns(db, runIds) : new Map<number, never>();
  return { items, loads, exports, rejects };
}

function kindOf({ definition }: { readonly definition: object }): 'load' | 'export' {
  return (definition as RunDefinition).load === undefined ? 'export' : 'load';
}

function renderDocument(run: ScheduleRun, work: RunWork, baseUrl: string) {
  const items = work.items.get(run.runId) ?? [];
  const isLoad = kindOf(run) === 'load';
  const linkOf = isLoad ? loadUrl : exportUrl;
  const { document, countsByKind, statuses } = (isLoad ? ofLoads : ofExports)(run, items, work, baseUrl);
  return {
    ...document,
    type: 'schedule' as const,
    status: run.status,
    schedule: run.name,
    environment: run.environment,
    due_at: run.dueAt.toISOString(),
    cause: run.cause,
    missed: run.missed,
    held_job: run.heldJob,
    last_error: run.lastError,
    attempts: run.attempts,
    counts_by_kind: countsByKind,
    range_from: run.rangeFrom?.toISOString() ?? null,
    range_to: run.rangeTo?.toISOString() ?? null,
    delivered_to: run.deliveredTo,
    items: items.slice(0, MAX_TOLD_ITEMS).map(({ item, jobId, isNew, error }) => ({
      item,
      job_id: jobId,
      status: statuses.get(jobId) ?? null,
      is_new: isNew,
      error_code: error?.code ?? null,
      message: error?.message ?? null,
      links: jobId === null ? null : linkOf(baseUrl, jobId),
    })),
    item_count: items.length,
  };
}

export function renderShortRun(run: ScheduleRun) {
  const failure = failureOf(run);
  return {
    due_at: run.dueAt.toISOString(),
    status: run.status,
    cause: run.cause,
    missed: run.missed,
    started_at: run.startedAt?.toISOString() ?? null,
    ended_at: run.endedAt?.toISOString() ?? null,
    failure: failure && { error_code: failure.code, message: failure.message },
    held_job: run.heldJob,
    last_error: run.lastError,
  };
}

function ofLoads(run: ScheduleRun, items: readonly RunItem[], work: RunWork, baseUrl: string) {
  const loads = inOrder(items, work.loads);
  const created = loads.filter(({ item }) => item.isNew).map(({ job }) => job);
  const counts = toTally(created.reduce((total, { tally }) => addOutcomes(total, tally), noOutcomes));
  const refused = created
    .filter(({ tally }) => tally.rejected > 0)
    .map(({ jobId, tally: { rejected } }) => ({
      job_id: jobId,
      count: rejected,
      links: `${loadUrl(baseUrl, jobId)}/rejects`,
    }));
  const [first, ...others] = refused;
  const rejects = {
    count: counts.rejected,
    by_code: work.rejects.get(run.runId) ?? {},
    links: others.length > 0 ? null : (first?.links ?? null),
    jobs: refused.slice(0, MAX_TOLD_ITEMS),
  };
  const sources = created.slice(0, MAX_TOLD_ITEMS).map(({ filename, fileSize, totalRows, sha256 }) => {
    return { filename, bytes: fileSize, rows: totalRows, sha256 };
  });
  const facts = { ...factsOf(run), ...historyOf(run) };
  return {
    document: { ...renderRun({ ...facts, sources, files: [], counts, rejects, cursor: null }), rejects },
    countsByKind: sumByKind(created.map(({ tallyByKind }) => tallyByKind)),
    statuses: statusesOf(loads),
  };
}

function ofExports(run: ScheduleRun, items: readonly RunItem[], work: RunWork) {
  const exports = inOrder(items, work.exports);
  const written = exports.flatMap(({ job }) => job.written);
  const cursor = exports.at(-1)?.job.cursor ?? null;
  const document = renderExportRun({ ...factsOf(run), written, cursor }, historyOf(run));
  return {
    document: { ...document, rejects: { ...document.rejects, jobs: [] } },
    countsByKind: null,
    statuses: statusesOf(exports),
  };
}

function factsOf(run: ScheduleRun) {
  return { jobId: null, type: 'schedule', status: run.status, failure: failureOf(run) };
}

function failureOf({ code, reason }: ScheduleRun) {
  return code === null ? null : { code, message: reason ?? code };
}

function historyOf({ name, definition, status, createdAt, startedAt, endedAt }: ScheduleRun): JobHistory {
  return {
    requestId: null,
    origin: { kind: 'schedule', name },
    ...optionsOf(definition as RunDefinition),
    phases: [
      { phase: 'accepted', at: createdAt },
      ...(startedAt === null ? [] : [{ phase: 'started', at: startedAt }]),
      ...(endedAt === null ? [] : [{ phase: status, at: endedAt }]),
    ],
  };
}

/** Members that are not shown, because they may contain secrets or addresses. */
const unshown: readonly string[] = [...sourceKinds, 'emails'];

function optionsOf({ load, export: exported }: RunDefinition) {
  const members = Object.entries(load ?? exported ?? {});
  return showOptions(Object.fromEntries(members.filter(([name]) => !unshown.includes(name))));
}

interface ItemJob<T> {
  readonly item: RunItem;
  readonly job: T;
}

function inOrder<T>(items: readonly RunItem[], jobs: ReadonlyMap<string, T>): readonly ItemJob<T>[] {
  return items.flatMap((item) => {
    const job = jobs.get(item.jobId ?? '');
    return job === undefined ? [] : [{ item, job }];
  });
}

function statusesOf(jobs: readonly ItemJob<{ readonly jobId: string; readonly status: string }>[]) {
  return new Map<string | null, string>(jobs.map(({ job }) => [job.jobId, job.status]));
}

const runsAtATime = 4;

export async function renderSchedules(db: Database, schedules: readonly Schedule[], now: Date) {
  const atATime = pLimit(runsAtATime);
  return Promise.all(
    schedules.map((schedule) =>
      atATime(async () => {
        const { environmentId, definition } = schedule;
        const runs = await readRuns(db, { environmentId, name: definition.name }, SHOWN_RUNS);
        return renderSchedule(schedule, runs, now);
      }),
    ),
  );
}

function renderSchedule({ definition, pausedAt }: Schedule, runs: readonly ScheduleRun[], now: Date) {
  const { name, cron, timezone, enabled, load } = definition;
  const isDue = enabled && pausedAt === null;
  const due = isDue ? nextDueTimes(cron, timezone, now.getTime(), NEXT_DUE_TIMES) : [];
  const text = (ms: number): string => new Date(ms).toISOString();
  return {
    schedule: name,
    kind: kindOf({ definition }),
    definition,
    what: load === undefined ? describeExport(definition.export) : describeSource(load),
    cron,
    time_zone: timezone,
    enabled,
    paused_at: pausedAt?.toISOString() ?? null,
    missed: definition.missed,
    overlap: definition.overlap,
    next_due: due[0] === undefined ? null : text(due[0]),
    next_times: due.map(text),
    runs: runs.map(renderShortRun),
  };
}

/** Omits headers, keys and parameters, because they may be secret. */
function describeSource(load: LoadDefinition): string {
  const { files, http, s3, command } = load;
  if (files !== undefined) return `files ${files.pattern}`;
  if (http !== undefined) return `http ${http.url.replace(/[?#].*$/s, '')}`;
  return s3?.url ?? `command ${command?.name}`;
}

function describeExport({ range, to_dir }: ScheduleDefinition['export'] = {}): string {
  const what = range === undefined ? 'export' : `export of ${range.replaceAll('_', ' ')}`;
  return to_dir === undefined ? what : `${what} to ${to_dir}`;
}
