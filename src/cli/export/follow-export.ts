import { setTimeout as delay } from 'node:timers/promises';
import type { Export } from '../../domain/export.ts';
import type { ExportContext } from '../../export/context.ts';
import { requireExport } from '../../export/inspect-exports.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { CommandFailed } from '../exit-codes.ts';

const firstPollMs = 20;
const longestPollMs = 200;
/** A database that restarts is back within this time. */
const outageMs = 60_000;

/** Looks at the export until it has ended or the signal aborts; returns how it was seen last. */
export async function followExport(
  context: Pick<ExportContext, 'db'>,
  environmentId: number,
  jobId: string,
  options: { readonly signal: AbortSignal; readonly onChange: (seen: Export) => void },
): Promise<Export> {
  let seen: Export | null = null;
  let seenAt = performance.now();
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.3, longestPollMs)) {
    try {
      seen = await requireExport(context, environmentId, jobId);
      seenAt = performance.now();
      options.onChange(seen);
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - seenAt > outageMs) throw gone(jobId);
    }
    if (seen !== null && (seen.endedAt !== null || options.signal.aborted)) return seen;
    if (options.signal.aborted) throw gone(jobId);
    await delay(pollMs, undefined, { signal: options.signal }).catch(() => undefined);
  }
}

function gone(jobId: string): CommandFailed {
  return new CommandFailed(
    `The database went away. Export ${jobId} goes on when database and workers run again; nothing was written here.`,
  );
}
