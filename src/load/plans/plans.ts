import { inputError } from '../../base/errors.ts';
import { defuse } from '../../base/formula.ts';
import { walkPages } from '../../base/pages.ts';
import type { LoadPlan } from '../../domain/load.ts';
import type { LoadContext } from '../context.ts';
import { readLoadId, requireLoad } from '../read-store.ts';
import { csvCell } from '../rejects/text.ts';
import {
  firstPlannedPlace,
  type PlannedPage,
  type PlannedPlace,
  type PlannedValue,
  readPlannedLines,
  readPlannedValues,
  readPlanSample,
  type SampledRow,
} from './rows-store.ts';

/* Shows plans to callers: a summary with some of the rows, or all rows as a file. */

type Context = Pick<LoadContext, 'db'>;

export interface ShownPlan extends LoadPlan {
  readonly jobId: string;
  /** Some rows of the plan. Empty once the rows have expired. */
  readonly sample: readonly SampledRow[];
}

/** @throws InputError `not_found` if the job does not exist or has no complete plan */
export async function showPlan(context: Context, environmentId: number, jobId: string): Promise<ShownPlan> {
  const plan = await requirePlan(context, environmentId, jobId);
  const profiles = Object.values(plan.summary.profiles);
  const sample = profiles.every(({ changed, removed }) => changed + removed === 0)
    ? []
    : await readPlanSample(context.db, await readLoadId(context.db, jobId));
  return { ...plan, jobId, sample };
}

async function requirePlan(context: Context, environmentId: number, jobId: string): Promise<LoadPlan> {
  const { plan, status } = await requireLoad(context, environmentId, jobId);
  if (plan !== null) return plan;
  const isUnderWay = status === 'queued' || status === 'processing';
  const message = isUnderWay ? 'The job has no plan yet' : 'The job has no plan';
  throw inputError('not_found', message, `job_id: ${jobId}`);
}

/**
 * @throws InputError `not_found`, or `job_expired` if the rows have been removed together with the
 * file
 */
export async function requirePlannedRows(
  context: Context,
  environmentId: number,
  jobId: string,
): Promise<{ readonly jobId: string }> {
  await requirePlan(context, environmentId, jobId);
  const { hasFile } = await requireLoad(context, environmentId, jobId);
  if (hasFile) return { jobId };
  throw inputError('job_expired', 'The rows of this plan have expired', `job_id: ${jobId}`);
}

export const planFormats = ['csv', 'ndjson'] as const;
export type PlanFormat = (typeof planFormats)[number];

/**
 * A line of NDJSON contains a profile before and after the load. A line of CSV contains one
 * difference.
 */
export async function* exportPlan(
  { db }: Context,
  jobId: string,
  format: PlanFormat,
): AsyncGenerator<Buffer> {
  const loadId = await readLoadId(db, jobId);
  if (format === 'ndjson') {
    yield* pieces(
      (after) => readPlannedLines(db, loadId, after),
      (line) => line,
    );
    return;
  }
  yield Buffer.from('entity,id,outcome,property,before,after\n');
  yield* pieces((after) => readPlannedValues(db, loadId, after), csvLine);
}

async function* pieces<T>(
  read: (after: PlannedPlace) => Promise<PlannedPage<T>>,
  line: (row: T) => string,
): AsyncGenerator<Buffer> {
  for await (const { rows } of walkPages(firstPlannedPlace, read)) {
    if (rows.length > 0) yield Buffer.from(rows.map((row) => `${line(row)}\n`).join(''));
  }
}

function csvLine({ entity, key, outcome, name, before, after }: PlannedValue): string {
  const cells = [entity, key, outcome, name ?? '', before ?? '', after ?? ''];
  return cells.map((cell) => csvCell(defuse(cell), ',')).join(',');
}
