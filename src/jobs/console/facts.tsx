import type { ComponentChildren, VNode } from 'preact';
import { formatCount, formatMs, visibleText } from '../../console/client/lib/format.ts';
import { isLoad, isUnfinished, type JobDetail, originText, workMs } from '../../console/client/lib/jobs.ts';
import type { JobProps } from '../../console/client/part.ts';
import { Copied } from '../../console/client/ui/controls.tsx';
import { barOf } from '../../console/client/ui/drawings.tsx';
import { Table } from '../../console/client/ui/list.tsx';
import { type Fact, Time, type Tone } from '../../console/client/ui/page.tsx';
import { deletionFacts } from '../../deletion/console/facts.ts';
import { exportFacts } from '../../export/console/job.tsx';
import { loadFacts } from '../../load/console/facts.tsx';
import { jobTypeNames } from './job-types.ts';

export function factsOf(job: JobDetail): readonly Fact[] {
  return [
    ['Type', jobTypeNames[job.type] ?? job.type],
    ['Job', <Copied key="job" text={job.job_id} />],
    ...kindFacts(job),
    ...requestFacts(job),
  ];
}

function kindFacts(job: JobDetail): readonly Fact[] {
  if (isLoad(job)) return loadFacts(job);
  return job.type === 'export' ? exportFacts(job) : deletionFacts(job);
}

function requestFacts({ origin, request_id, start_time, options, options_cut }: JobDetail): readonly Fact[] {
  const stated = Object.entries(options).filter(([, value]) => isStated(value));
  return [
    ['By', originText(origin)],
    ['Request id', request_id === null ? 'none' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={start_time} />],
    ...stated.map(([name, value]): Fact => {
      const text = typeof value === 'string' ? visibleText(value) : JSON.stringify(value);
      return [<code key={name}>{name}</code>, <code key={name}>{text}</code>];
    }),
    ['Options', options_cut ? 'Long lists are cut here' : null],
  ];
}

function isStated(value: unknown): boolean {
  if (value === null || value === undefined || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

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

type PhaseList = JobDetail['phases'];

/** True if the job waits in this phase: in the queue, or for the decision of a person. */
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

function waitedMs(phases: PhaseList): number {
  return phases.reduce((sum, { at }, index) => {
    const next = phases[index + 1];
    if (!isWaiting(phases, index)) return sum;
    return sum + (next === undefined ? Date.now() : Date.parse(next.at)) - Date.parse(at);
  }, 0);
}

const phaseTones: Readonly<Record<string, Tone>> = { held: 'warn', completed: 'good', failed: 'bad' };

export function Phases({ job }: JobProps): VNode {
  const { phases } = job;
  const isRunning = isUnfinished(job);
  const first = Date.parse(phases[0]?.at ?? '');
  const last = isRunning ? Date.now() : Date.parse(phases.at(-1)?.at ?? '');
  // Waiting may last for days, so it takes no space on the scale.
  const whole = Math.max(1, last - first - waitedMs(phases));
  const durationOf = (index: number): ComponentChildren => {
    const [phase, next] = [phases[index], phases[index + 1]];
    if (phase === undefined || (next === undefined && !isRunning)) return null;
    const ms = Math.max(0, (next === undefined ? last : Date.parse(next.at)) - Date.parse(phase.at));
    const words = next === undefined ? `${formatMs(ms)} so far` : formatMs(ms);
    return isWaiting(phases, index) ? `waited ${words}` : barOf(ms, whole, words);
  };
  return (
    <Table
      caption="Phases, in order"
      columns={[
        ['Phase', ({ phase }) => <strong class={phaseTones[phase]}>{phaseNames[phase] ?? phase}</strong>],
        ['At', ({ at }) => <Time at={at} />, 'num'],
        ['Took', ({ index }) => durationOf(index), 'num'],
      ]}
      rows={phases.map((phase, index) => ({ ...phase, index }))}
    />
  );
}

const shownWaitMs = 1_000;

export function tookOf(job: JobDetail): VNode {
  const rate = 'rows_per_second' in job ? job.rows_per_second : null;
  const ms = workMs(job);
  const waited = waitedMs(job.phases);
  return (
    <span class="faint num">
      {ms === null ? 'waiting' : formatMs(ms)}
      {waited < shownWaitMs ? '' : ` · waited ${formatMs(waited)}`}
      {rate === null ? '' : ` · ${formatCount(rate)} rows/s`}
      {job.attempts > 1 ? ` · started ${job.attempts} times` : ''}
    </span>
  );
}
