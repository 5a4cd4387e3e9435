import type { ComponentChildren, VNode } from 'preact';
import type { JobHistory } from '../../../../api/job.ts';
import type { LoadChunk } from '../../../../api/load.ts';
import { formatBytes, formatCount, formatMs, formatShare, formatShort, plural } from '../../lib/format.ts';
import type { JobDetail } from '../../lib/jobs.ts';
import { Bars, barOf, sumOf } from '../../ui/drawings.tsx';
import { Badge, Section, Time, type Tone } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';

/** Shows how far a job is, how fast it goes, and about how long it will take. */
export function Progress({ job }: { readonly job: Omit<JobDetail, 'counts'> }): VNode {
  const { completed_rows: done, total_rows: total, rows_per_second: rate } = job;
  const left = rate == null || rate === 0 ? 0 : ((total - done) / rate) * 1_000;
  return (
    <div class="stack">
      <progress value={job.progress} max={1} aria-label="Progress" />
      <p class="row muted num">
        <strong>{formatShare(Math.round(job.progress * 10_000), 10_000)}</strong>
        <span>
          {formatCount(done)} of {job.type === 'export' ? 'about ' : ''}
          {formatCount(total)} rows
        </span>
        {rate == null ? null : <span>{formatCount(rate)} rows/s</span>}
        {left <= 0 ? null : <span>about {formatMs(left)} left</span>}
      </p>
    </div>
  );
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
export function waitedMs(phases: PhaseList): number {
  return phases.reduce((sum, { at }, index) => {
    const next = phases[index + 1];
    if (!isWaiting(phases, index)) return sum;
    return sum + (next === undefined ? Date.now() : Date.parse(next.at)) - Date.parse(at);
  }, 0);
}

const phaseTones: Readonly<Record<string, Tone>> = { held: 'warn', completed: 'good', failed: 'bad' };

interface PhasesProps {
  readonly phases: PhaseList;
  readonly isRunning: boolean;
}

/** Shows when the job reached each phase, and how long it took to the next, to scale. */
export function Phases({ phases, isRunning }: PhasesProps): VNode {
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
      keyOf={({ index }) => String(index)}
    />
  );
}

/** The most bars of a rate, each of some two chunks; fewer chunks than `fewestChunks` say nothing about it. */
const mostRateBars = 40;
const fewestChunks = 4;

/** Draws how many rows a second the load read, by the chunks that are done. */
export function Rate({ chunks }: { readonly chunks: readonly LoadChunk[] }): VNode | null {
  const done = chunks.filter(({ end_time }) => end_time !== null);
  if (done.length < fewestChunks) return null;
  const ends = done.map(({ end_time }) => Date.parse(end_time ?? ''));
  const first = Math.min(
    ...done.map(({ start_time }, at) => Date.parse(start_time ?? '') || (ends[at] ?? 0)),
  );
  const rateBars = Math.min(mostRateBars, Math.ceil(done.length / 2));
  const barMs = Math.max(1, (Math.max(...ends) - first) / rateBars);
  const bars = Array.from({ length: rateBars }, () => [0, 0] as [number, number]);
  done.forEach(({ rows, rejected }, at) => {
    const bar = bars[Math.min(rateBars - 1, Math.floor(((ends[at] ?? first) - first) / barMs))];
    if (bar === undefined) return;
    bar[0] += rows - (rejected ?? 0);
    bar[1] += rejected ?? 0;
  });
  const most = formatShort((Math.max(...bars.map(sumOf)) / barMs) * 1_000);
  return (
    <Section title="Rate">
      <Bars
        label={`over ${formatMs(barMs * rateBars)}, at most ${most} rows a second`}
        parts={[
          ['accepted', '--updated'],
          ['rejected', '--rejected'],
        ]}
        top={`${most} rows a second`}
        axis={['0 s', formatMs(barMs * rateBars)]}
        bars={bars.map((values, at) => ({
          values,
          title: `${formatMs(at * barMs)}: ${formatCount((sumOf(values) / barMs) * 1_000)} rows a second`,
        }))}
      />
    </Section>
  );
}

/** Cells of the strip: of more chunks several share one, which shows what most needs to be seen. */
const mostCells = 300;
/** Rows of the table; all of them are in the API. */
const mostRows = 100;

/** The states of a chunk, the most urgent first, with the tone of its badge and the ink of its cell. */
const chunkStates = {
  failing: ['warn', '--superseded'],
  running: ['busy', '--busy'],
  waiting: ['waiting', '--line-control'],
  done: ['good', '--inserted'],
} as const satisfies Record<string, readonly [Tone, string]>;
type ChunkState = keyof typeof chunkStates;
const urgency = Object.keys(chunkStates) as ChunkState[];

function shownState({ state, last_error }: LoadChunk): ChunkState {
  return state !== 'done' && last_error !== null ? 'failing' : state;
}

const chunkColumns: readonly Column<LoadChunk>[] = [
  ['Chunk', ({ chunk }) => <span class="num">{chunk}</span>],
  ['State', (chunk) => <Badge tone={chunkStates[shownState(chunk)][0]}>{shownState(chunk)}</Badge>],
  ['Rows', ({ rows }) => formatCount(rows), 'num'],
  ['Size', ({ bytes }) => formatBytes(bytes), 'num minor'],
  ['Rejected', ({ rejected }) => (rejected === null ? '–' : formatCount(rejected)), 'num'],
  ['Took', ({ ms }) => formatMs(ms), 'num'],
  [
    'Try',
    ({ attempt, losses }) => (losses === 0 ? attempt : `${attempt} (${plural(losses, 'worker')} lost)`),
    'num minor',
  ],
  ['Worker', ({ worker }) => <span class="mono">{worker ?? '–'}</span>, 'minor'],
  ['Committed', ({ end_time }) => <Time at={end_time} />, 'num minor'],
];

/** The parts of a load, in the order of the file: a strip of their states, and who did each. */
export function Chunks({ chunks }: { readonly chunks: readonly LoadChunk[] }): VNode {
  const perCell = Math.ceil(chunks.length / mostCells);
  const cells = Array.from({ length: Math.ceil(chunks.length / perCell) }, (_, at) => {
    const cell = chunks.slice(at * perCell, (at + 1) * perCell).map(shownState);
    return urgency.find((state) => cell.includes(state)) ?? 'done';
  });
  const ink = (state: ChunkState) => ({ background: `var(${chunkStates[state][1]})` });
  return (
    <div class="two-lines">
      <p class="row muted">
        {[...Map.groupBy(chunks, shownState)].map(([state, those]) => (
          <span key={state}>
            <span class="swatch" style={ink(state)} /> {formatCount(those.length)} {state}
          </span>
        ))}
        {perCell === 1 ? null : <span class="faint">{perCell} chunks per cell</span>}
      </p>
      <div class="chunk-strip" aria-hidden="true">
        {cells.map((state, at) => (
          <span key={at} class={state === 'running' ? 'chunk chunk-running' : 'chunk'} style={ink(state)} />
        ))}
      </div>
      <details>
        <summary>All chunks</summary>
        <Table
          caption="Chunks in the order of the file"
          columns={chunkColumns}
          rows={chunks.slice(0, mostRows)}
          keyOf={({ chunk }) => String(chunk)}
        />
        {chunks.length > mostRows ? <p class="hint">The first {mostRows}; GET …/chunks has all.</p> : null}
      </details>
    </div>
  );
}
