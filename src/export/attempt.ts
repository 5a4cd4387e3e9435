import { ConflictError } from '../domain/errors.ts';
import { HEARTBEAT_MS } from '../domain/limits.ts';
import { type ExportClaim, renewExport } from '../postgres/ledger/export-claims.ts';
import { keepAlive } from '../tasks/run-task.ts';
import type { ExportContext } from './context.ts';
import { ExportFailure } from './export-failure.ts';

export const notOurs = 'the export has ended, or another worker has it';

/** An attempt under way: it keeps its lease, tells how far it is, and says when it is to stop. */
export interface Attempt {
  /**
   * Aborted with the reason: `ConflictError` (cancelled, or another has it), `ExportFailure` (it takes too long), or what
   * `stopping` gives.
   */
  readonly signal: AbortSignal;
  expect(rows: number): void;
  reached(rows: number, bytes: number): void;
  end(): void;
}

/** Each beat notes the progress too, so that however fast it is made the ledger is written every two seconds. */
export function startAttempt(context: ExportContext, claim: ExportClaim, stopping: AbortSignal): Attempt {
  const lost = new AbortController();
  const late = new AbortController();
  const deadline = setTimeout(
    () => late.abort(tookTooLong(context.exportTimeoutMs)),
    context.exportTimeoutMs,
  );
  const progress = { rowsExpected: null as number | null, rowsWritten: 0, bytesWritten: 0 };
  const heartbeat = keepAlive(HEARTBEAT_MS, async () => {
    const ours = await renewExport(context.db, claim, progress);
    if (!ours) lost.abort(new ConflictError(notOurs));
    return ours;
  });
  return {
    signal: AbortSignal.any([lost.signal, late.signal, stopping]),
    expect(rows) {
      progress.rowsExpected = Math.max(0, Math.round(rows));
    },
    reached(rows, bytes) {
      progress.rowsWritten = rows;
      progress.bytesWritten = bytes;
    },
    end() {
      clearTimeout(deadline);
      heartbeat.stop();
    },
  };
}

/** Others wait meanwhile, and an attempt that is begun anew would take as long. */
function tookTooLong(timeoutMs: number): ExportFailure {
  const minutes = Math.round(timeoutMs / 60_000);
  return new ExportFailure(
    'export_timeout',
    `the export took longer than ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} (EXPORT_TIMEOUT_MINUTES); ask for less at a time`,
  );
}
