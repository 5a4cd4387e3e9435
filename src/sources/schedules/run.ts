import { ConflictError, InputError } from '../../domain/errors.ts';
import { MAX_RUN_FAILURES } from '../../domain/limits.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  beginRun,
  dropRefusedItems,
  insertRunItem,
  markWaiting,
  uncountAttempt,
} from '../../postgres/stores/schedule-runs.ts';
import { deleteTasks, endTask, releaseTask } from '../../postgres/stores/tasks.ts';
import { holdRun, keepRefusal, notOurs, type RunAttempt, type ScheduleContext } from './context.ts';
import { endRunAndNotify } from './end-run.ts';
import { runExportRun } from './run-export.ts';
import { runLoad } from './run-load.ts';
import type { RunDefinition } from './schedule.ts';
import { SourceFailure } from './source.ts';

/** After an error that may pass: half an hour in all. `failures`: from 1. */
export function runPauseMs(failures: number): number {
  return 15_000 * 2 ** (failures - 1);
}

/**
 * Does what is to be done of one run before its jobs: afterwards it waits for them, and has no task. An error of the source that may
 * pass gives it back; any other is kept as what it failed of.
 */
export async function doRun(context: ScheduleContext, claim: TaskClaim, signal: AbortSignal): Promise<void> {
  const found = await beginRun(context.db, claim.subjectId);
  if (found === null) {
    await endTask(context.db, claim);
    return;
  }
  const run = { ...found, claim };
  await inTransaction(context.pool, async ({ db }) => {
    await holdRun(db, run);
    await dropRefusedItems(db, run.runId);
  });
  try {
    const isDone = await work(context, run, signal);
    if (!isDone) return;
  } catch (error) {
    const isOfSource = error instanceof InputError || error instanceof SourceFailure;
    if (!isOfSource || signal.aborted) throw error;
    const isFinal = error instanceof InputError || !error.passing;
    if (!isFinal && claim.failures + 1 < MAX_RUN_FAILURES) return tryLater(context, run, error);
    const code = error instanceof SourceFailure ? error.code : error.problems[0].code;
    await keepRefusal(context, run, sourceItem, { code, message: error.message });
  }
  await inTransaction(context.pool, async ({ db }) => {
    await markWaiting(db, run.runId);
    if (!(await endTask(db, claim))) throw new ConflictError(notOurs);
  });
}

/** Returns false if the run has to wait and was given back. */
async function work(context: ScheduleContext, run: RunAttempt, signal: AbortSignal): Promise<boolean> {
  const { work: wanted, timeZone } = run.definition as RunDefinition;
  if (wanted.kind === 'load') await runLoad(context, run, wanted, signal);
  else {
    const wait = await runExportRun(context, run, wanted, timeZone, signal);
    if (wait !== null) {
      await uncountAttempt(context.db, run.claim);
      await releaseTask(context.db, run.claim, { ...wait, counts: false });
      return false;
    }
  }
  return true;
}

async function tryLater({ db, log }: ScheduleContext, run: RunAttempt, error: SourceFailure): Promise<void> {
  const { claim } = run;
  const fields = { schedule: run.name, due_at: run.dueAt, attempt: claim.attempt };
  log.warn({ ...fields, err: error }, 'a source cannot be read now; it will be tried again');
  const pauseMs = runPauseMs(claim.failures + 1);
  await releaseTask(db, claim, { message: error.message, pauseMs, counts: true });
}

/** Stands for what a run was to take, where it came to nothing. */
const sourceItem = 'source';

/** A run that its workers were lost with ends now; one that met too many errors when the jobs that it made have ended. */
export async function failRun(
  context: Pick<ScheduleContext, 'pool' | 'log' | 'queue' | 'baseUrl'>,
  runId: number,
  failure: TaskFailure,
): Promise<void> {
  const { code, message } = failure;
  if (code === 'worker_lost') {
    await endRunAndNotify(context, runId, { status: 'failed', code, reason: message }, 'queued');
    return;
  }
  await inTransaction(context.pool, async ({ db }) => {
    const refused = { item: sourceItem, version: null, jobId: null, isNew: false, error: failure };
    await insertRunItem(db, runId, refused);
    await markWaiting(db, runId);
    await deleteTasks(db, ['run'], runId);
  });
}
