import { setTimeout as delay } from 'node:timers/promises';
import { endedStatuses, type Load } from '../../domain/load.ts';
import type { LoadContext } from '../../load/context.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { isTransient } from '../../postgres/sqlstate.ts';
import { CommandFailed } from '../exit-codes.ts';

const firstPollMs = 20;
const longestPollMs = 200;
/** A database that restarts is back within this time. */
const outageMs = 60_000;

export interface FollowOptions {
  readonly environmentId: number;
  readonly jobId: string;
  readonly signal: AbortSignal;
  readonly onChange: (load: Load) => void;
}

export function hasEnded(load: Load): boolean {
  return (endedStatuses as readonly string[]).includes(load.status);
}

/** Looks at the load until it has ended or the signal aborts; returns how it was seen last. */
export async function followLoad(context: Pick<LoadContext, 'db'>, options: FollowOptions): Promise<Load> {
  const { environmentId, jobId, signal, onChange } = options;
  let seen: Load | null = null;
  let seenAt = performance.now();
  // A small load ends within a moment, a large one does not care: look often first, then less.
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.3, longestPollMs)) {
    try {
      seen = await requireLoad(context, environmentId, jobId);
      seenAt = performance.now();
      onChange(seen);
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - seenAt > outageMs) throw gone(jobId);
    }
    if (seen !== null && (hasEnded(seen) || signal.aborted)) return seen;
    if (signal.aborted) throw gone(jobId);
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}

function gone(jobId: string): CommandFailed {
  return new CommandFailed(
    `The database went away. Job ${jobId} is safe in it, and goes on when database and workers run again: \`sluice start\`.`,
  );
}
