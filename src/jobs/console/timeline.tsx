import type { ComponentChildren, VNode } from 'preact';
import { formatCount, formatMs } from '../../console/client/lib/format.ts';
import { isUnfinished, type JobDetail, workMs } from '../../console/client/lib/jobs.ts';
import type { JobProps } from '../../console/client/part.ts';
import { barOf } from '../../console/client/ui/drawings.tsx';
import { Table } from '../../console/client/ui/list.tsx';
import { Time, type Tone } from '../../console/client/ui/page.tsx';
import type { JobHistory } from '../../http/job.ts';

const phaseNames: Readonly<Record<string, string>> = {
  accepted: 'Accepted',
  started: 'Started',
  planned: 'Planned',
  applied: 'Apply requested',
  resumed: 'Started again',
  merged: 'Rows merged',
  repeats_resolved: 'Repeats resolved',
  snapshot: 'Snapshot taken',
  held: 'Held',
  decided: 'Decided',
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
    phase === 'held' ||
    phase === 'decided' ||
    (phase === 'planned' && phases[at + 1]?.phase === 'applied')
  );
}

/** Returns how long the job has waited in all. */
function waitedMs(phases: PhaseList): number {
  return phases.reduce((sum, { at }, index) => {
    const next = phases[index + 1];
    if (!isWaiting(phases, index)) return sum;
    return sum + (next === undefined ? Date.now() : Date.parse(next.at)) - Date.parse(at);
  }, 0);
}

const phaseTones: Readonly<Record<string, Tone>> = { held: 'warn', completed: 'good', failed: 'bad' };

/** Shows when the job reached each phase, and how long it took to the next, to scale. */
export function Phases({ job, history: { phases } }: JobProps): VNode {
  const isRunning = isUnfinished(job);
  const first = Date.parse(phases[0]?.at ?? '');
  const last = isRunning ? Date.now() : Date.parse(phases.at(-1)?.at ?? '');
  // A transaction has the time at which it began: its end may stand before what was committed meanwhile.
  const timeOf = (at: string): number => Math.min(last, Date.parse(at));
  // Waiting has no length on the scale: it may have been days.
  const whole = Math.max(1, last - first - waitedMs(phases));
  const tookOf = (index: number): ComponentChildren => {
    const [phase, next] = [phases[index], phases[index + 1]];
    if (phase === undefined || (next === undefined && !isRunning)) return null;
    const ms = Math.max(0, (next === undefined ? last : timeOf(next.at)) - timeOf(phase.at));
    const words = next === undefined ? `${formatMs(ms)} so far` : formatMs(ms);
    return isWaiting(phases, index) ? `waited ${words}` : barOf(ms, whole, words);
  };
  return (
    <Table
      caption="Phases, in order"
      columns={[
        ['Phase', ({ phase }) => <strong class={phaseTones[phase]}>{phaseNames[phase] ?? phase}</strong>],
        ['At', ({ at }) => <Time at={at} />, 'num'],
        ['Took', ({ index }) => tookOf(index), 'num'],
      ]}
      rows={phases.map((phase, index) => ({ ...phase, index }))}
    />
  );
}

/** A shorter wait is not shown. */
const shownWaitMs = 1_000;

/** Shows how long the current work has taken, and the waiting. */
export function tookOf(job: JobDetail, { phases }: JobHistory): VNode {
  const rate = job.rows_per_second;
  const ms = workMs(job);
  const waited = waitedMs(phases);
  return (
    <span class="faint num">
      {ms === null ? 'waiting' : formatMs(ms)}
      {waited < shownWaitMs ? '' : ` · waited ${formatMs(waited)}`}
      {rate == null ? '' : ` · ${formatCount(rate)} rows/s`}
      {job.attempts > 1 ? ` · started ${job.attempts} times` : ''}
    </span>
  );
}
