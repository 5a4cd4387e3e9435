import { setTimeout as delay } from 'node:timers/promises';
import { endedStatuses, type Load } from '../../domain/load.ts';
import type { LoadContext } from '../../load/context.ts';
import { requireLoad } from '../../load/inspect-load.ts';

const firstPollMs = 20;
const longestPollMs = 200;

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
  // A small load ends within a moment, a large one does not care: look often first, then less.
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.3, longestPollMs)) {
    const load = await requireLoad(context, environmentId, jobId);
    onChange(load);
    if (hasEnded(load) || signal.aborted) return load;
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}
