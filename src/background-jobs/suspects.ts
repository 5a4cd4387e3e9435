import type { Logger } from 'pino';
import { runDeletion } from '../deletion/run-deletion.ts';
import { RECONCILE_MS } from '../domain/limits.ts';
import type { ExportContext } from '../export/context.ts';
import { type ExportWriter, runExport } from '../export/run-export.ts';
import type { LoadContext } from '../load/context.ts';
import { finishLoad } from '../load/finish-load.ts';
import { processChunk } from '../load/process-chunk.ts';
import type { Database } from '../postgres/database.ts';
import { findSuspect, type Suspect } from '../postgres/ledger/next-tasks.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { StopSignals } from './do-next-task.ts';

/*
 * A task that keeps ending its worker ends what that worker does besides, and its losses would be counted against all of it.
 * So a task that lost its worker SUSPECT_LOSSES times is done where it is alone: `runAlone` of a worker process is another
 * process. The losses that are one too many are then its own, and the workers go on with everything else.
 */

/** Does one task where it can harm no other; resolves when that has ended, however it did. */
export type RunAlone = (suspect: Suspect, signals: StopSignals) => Promise<void>;

/** Looks for suspects every RECONCILE_MS, and does one at a time. */
export function startSuspects(
  { db, log }: { readonly db: Database; readonly log: Logger },
  runAlone: RunAlone,
  signals: StopSignals,
): Rounds {
  return startRounds(RECONCILE_MS, async () => {
    try {
      const suspect = await findSuspect(db);
      if (suspect !== null && !signals.stopping.aborted) await runAlone(suspect, signals);
    } catch (error) {
      log.warn({ err: error }, 'a task that lost its worker before is left for later');
    }
  });
}

/** The task itself, in this process. */
export async function doSuspect(
  context: LoadContext & ExportContext,
  write: ExportWriter,
  suspect: Suspect,
  { stopping, hurry }: StopSignals,
): Promise<void> {
  switch (suspect.kind) {
    case 'chunk':
      return processChunk(context, suspect.id, suspect.chunkNo, hurry);
    case 'finish':
      return void (await finishLoad(context, suspect.id, hurry));
    case 'deletion':
      return void (await runDeletion(context, suspect.id, stopping));
    case 'export':
      return void (await runExport(context, suspect.id, write, stopping));
  }
}
