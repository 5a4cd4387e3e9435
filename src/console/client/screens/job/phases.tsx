import type { VNode } from 'preact';
import type { JobHistory } from '../../../../api/job.ts';
import { formatMs } from '../../lib/format.ts';
import { Time } from '../../ui/text.tsx';

const names: Readonly<Record<string, string>> = {
  accepted: 'Accepted',
  started: 'Started',
  planned: 'Planned',
  applied: 'Apply requested',
  resumed: 'Begun again',
  merged: 'Rows merged',
  repeats_resolved: 'Repeated keys in order',
  snapshot: 'Snapshot taken',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

type PhaseList = JobHistory['phases'];

/** From the phase at this place to the next nothing is done: the job waits for its turn, or its plan for a person. */
function isWaiting(phases: PhaseList, at: number): boolean {
  const phase = phases[at]?.phase;
  return (
    phase === 'accepted' ||
    phase === 'applied' ||
    (phase === 'planned' && phases[at + 1]?.phase === 'applied')
  );
}

/** Returns how long the job has waited in all. */
export function waitedMs(phases: PhaseList): number {
  return phases.reduce((sum, { at }, index) => {
    const next = phases[index + 1];
    if (!isWaiting(phases, index)) return sum;
    return sum + (next === undefined ? Date.now() : Date.parse(next.at)) - Date.parse(at);
  }, 0);
}

/** When the job reached each phase, and how long it took to the next. The lengths between them are to scale. */
export function Phases({
  phases,
  isRunning,
}: {
  readonly phases: JobHistory['phases'];
  readonly isRunning: boolean;
}): VNode {
  const first = Date.parse(phases[0]?.at ?? '');
  const last = isRunning ? Date.now() : Date.parse(phases.at(-1)?.at ?? '');
  // A transaction has the time at which it began: its end may stand before what was committed meanwhile.
  const timeOf = (at: string): number => Math.min(last, Date.parse(at));
  // Waiting has no length on the scale: it may have been days.
  const whole = Math.max(1, last - first - waitedMs(phases));
  return (
    <ol class="phases">
      {phases.map(({ phase, at }, index) => {
        const next = phases[index + 1];
        const end = next === undefined ? (isRunning ? last : null) : timeOf(next.at);
        const ms = end === null ? null : Math.max(0, end - timeOf(at));
        const waits = isWaiting(phases, index);
        return (
          <li
            key={phase}
            class={`phase phase-${phase}`}
            style={{ flexGrow: ms === null ? 0 : waits ? 0.35 : 0.35 + ms / whole }}
          >
            <span class="phase-mark" />
            <span class="phase-name">{names[phase] ?? phase}</span>
            <Time at={at} />
            {ms === null ? null : (
              <span class="phase-length num">
                {waits ? 'waited ' : ''}
                {next === undefined ? `${formatMs(ms)} so far` : formatMs(ms)}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
