import type { VNode } from 'preact';
import { formatMs } from '../../lib/format.ts';
import type { JobHistory } from '../../lib/job-record.ts';
import { Time } from '../../ui/time.tsx';

const names: Readonly<Record<string, string>> = {
  accepted: 'Accepted',
  started: 'Started',
  planned: 'Planned',
  applied: 'Apply requested',
  merged: 'Rows merged',
  repeats_resolved: 'Repeated keys in order',
  snapshot: 'Snapshot taken',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};

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
  const whole = Math.max(1, last - first);
  return (
    <ol class="phases">
      {phases.map(({ phase, at }, index) => {
        const next = phases[index + 1];
        const end = next === undefined ? (isRunning ? last : null) : timeOf(next.at);
        const ms = end === null ? null : Math.max(0, end - timeOf(at));
        return (
          <li
            key={phase}
            class={`phase phase-${phase}`}
            style={{ flexGrow: ms === null ? 0 : 0.35 + ms / whole }}
          >
            <span class="phase-mark" />
            <span class="phase-name">{names[phase] ?? phase}</span>
            <Time at={at} />
            {ms === null ? null : (
              <span class="phase-length num">
                {next === undefined ? `${formatMs(ms)} so far` : formatMs(ms)}
              </span>
            )}
          </li>
        );
      })}
    </ol>
  );
}
