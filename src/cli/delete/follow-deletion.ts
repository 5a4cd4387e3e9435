import { setTimeout as delay } from 'node:timers/promises';
import { requireDeletion } from '../../deletion/inspect-deletions.ts';
import type { Deletion } from '../../domain/deletion.ts';
import type { Database } from '../../postgres/database.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { CommandFailed } from '../exit-codes.ts';

const firstPollMs = 20;
const longestPollMs = 200;
/** A database that restarts is back within this time. */
const outageMs = 60_000;

/** Looks at the deletion until it has ended or the signal aborts; returns how it was seen last. */
export async function followDeletion(
  context: { readonly db: Database },
  environmentId: number,
  jobId: string,
  signal: AbortSignal,
): Promise<Deletion> {
  let seen: Deletion | null = null;
  let seenAt = performance.now();
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.3, longestPollMs)) {
    try {
      seen = await requireDeletion(context, environmentId, jobId);
      seenAt = performance.now();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - seenAt > outageMs) throw gone(jobId);
    }
    if (seen !== null && (seen.endedAt !== null || signal.aborted)) return seen;
    if (signal.aborted) throw gone(jobId);
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

function gone(jobId: string): CommandFailed {
  return new CommandFailed(
    `The database went away. Deletion ${jobId} is safe in it, and goes on when database and workers run again: \`sluice start\`.`,
  );
}
