import { ConflictError, InputError, Interrupted } from '../../domain/errors.ts';
import { HEARTBEAT_MS, MAX_RUN_FAILURES } from '../../domain/limits.ts';
import { dropRefusedItems } from '../../postgres/stores/schedule-run-items.ts';
import {
  holdRun,
  leaveWaiting,
  noteRunFailure,
  type RunClaim,
  releaseRun,
  renewRun,
} from '../../postgres/stores/schedule-runs.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { keepAlive } from '../../tasks/run-task.ts';
import type { ScheduleContext } from './context.ts';
import { NotYet, runExportRun } from './run-export.ts';
import { noteRefused, runLoad } from './run-load.ts';
import type { RunDefinition } from './schedule.ts';
import { SourceFailure } from './source.ts';

/** The first pause after an error that may pass; each next one is twice as long: half an hour in all. */
const pauseMs = 15_000;

/**
 * Does what is to be done of one run before its jobs: afterwards it waits for them, held by nobody. An error that may
 * pass gives it back; any other is noted as what it failed of.
 */
export async function doRun(context: ScheduleContext, claim: RunClaim, stopping: AbortSignal): Promise<void> {
  const lost = new AbortController();
  const heartbeat = keepAlive(HEARTBEAT_MS, async () => {
    const ours = await renewRun(context.db, claim);
    if (!ours) lost.abort(new ConflictError('another worker has the run'));
    return ours;
  });
  const signal = AbortSignal.any([lost.signal, stopping]);
  try {
    await inTransaction(context.pool, async ({ db }) => {
      await holdRun(db, claim);
      await dropRefusedItems(db, claim.runId);
    });
    await work(context, claim, signal);
    await leaveWaiting(context.db, claim);
  } catch (error) {
    heartbeat.stop();
    await giveBack(context, claim, signal.aborted ? signal.reason : error);
  } finally {
    heartbeat.stop();
  }
}

async function work(context: ScheduleContext, claim: RunClaim, signal: AbortSignal): Promise<void> {
  const definition = claim.definition as RunDefinition;
  try {
    if (definition.work.kind === 'load') await runLoad(context, claim, definition.work, signal);
    else await runExportRun(context, claim, definition.work, definition.timeZone, signal);
  } catch (error) {
    const isFinal = error instanceof InputError || (error instanceof SourceFailure && !error.passing);
    if (!isFinal || signal.aborted) throw error;
    await noteRefused(context, claim, 'source', { code: codeOf(error), message: error.message });
  }
}

function codeOf(error: InputError | SourceFailure): string {
  return error instanceof SourceFailure ? error.code : error.problems[0].code;
}

async function giveBack(context: ScheduleContext, claim: RunClaim, error: unknown): Promise<void> {
  const fields = { schedule: claim.name, due_at: claim.dueAt, attempt: claim.attempt };
  if (error instanceof ConflictError) return context.log.info(fields, error.message);
  if (error instanceof Interrupted) {
    const pause = error instanceof NotYet ? error.pauseMs : 0;
    await releaseRun(context.db, claim, pause).catch(() => undefined);
    return;
  }
  context.log.warn({ ...fields, err: error }, 'an attempt at a run failed');
  const message = error instanceof Error ? error.message : String(error);
  try {
    if (await isLastAttempt(context, claim)) {
      const code = error instanceof SourceFailure ? error.code : 'run_failed';
      await noteRefused(context, claim, 'source', { code, message });
      await leaveWaiting(context.db, claim);
    } else await noteRunFailure(context.db, claim, message, pauseMs);
  } catch (failure) {
    // The database is away: the lease runs out instead.
    context.log.debug({ err: failure }, 'the run could not be given back');
  }
}

async function isLastAttempt({ db }: ScheduleContext, { runId }: RunClaim): Promise<boolean> {
  const row = await db
    .selectFrom('schedule_runs')
    .select('failures')
    .where('run_id', '=', runId)
    .executeTakeFirst();
  return (row?.failures ?? 0) + 1 >= MAX_RUN_FAILURES;
}
