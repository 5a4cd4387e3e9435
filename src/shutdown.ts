import type { Logger } from 'pino';
import { withDeadline } from './timers.ts';

/** A step of stopping. */
export interface Phase {
  readonly name: string;
  /** Milliseconds it may take; less if the whole has less left. */
  readonly deadlineMs: number;
  readonly run: () => Promise<void>;
  /** Called when it is late, to end by force what would not end by itself. */
  readonly force?: () => void;
}

/** The least time of a phase, however late the ones before it were: enough to close idle things. */
const leastMs = 250;

/**
 * Runs the phases one after another: first what lets work in, last what everything stands on. A phase that is late or
 * fails is logged and left behind, so that the whole ends within `totalMs` (and `leastMs` for each phase still to
 * come). True if every phase ended in time and well.
 */
export async function shutDown(phases: readonly Phase[], totalMs: number, log: Logger): Promise<boolean> {
  const endsAt = performance.now() + totalMs;
  let clean = true;
  for (const phase of phases) {
    const leftMs = Math.max(endsAt - performance.now(), leastMs);
    const outcome = await runPhase(phase, Math.min(phase.deadlineMs, leftMs));
    if (outcome === 'done') continue;
    clean = false;
    if (outcome === 'late')
      log.warn({ phase: phase.name }, 'a phase of the shutdown is late and left behind');
    else log.warn({ phase: phase.name, err: outcome.error }, 'a phase of the shutdown failed');
  }
  return clean;
}

async function runPhase(phase: Phase, deadlineMs: number): Promise<'done' | 'late' | { error: unknown }> {
  const run = async (): Promise<'done'> => {
    await phase.run();
    return 'done';
  };
  try {
    return await withDeadline(run(), deadlineMs, () => {
      phase.force?.();
      return 'late';
    });
  } catch (error) {
    return { error };
  }
}
