import type { VNode } from 'preact';
import type { JobHistory } from '../../../../api/job.ts';
import type { LoadChunk } from '../../../../api/load.ts';
import { formatBytes, formatCount, formatMs, formatShare, plural } from '../../lib/format.ts';
import { type Counts, refusedHref } from '../../lib/jobs.ts';
import { Badge, Time, type Tone } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';

/** The parts of a balance. tokens.css has a colour of each name. */
const parts: Readonly<Record<string, string>> = {
  inserted: 'the key was not there before',
  updated: 'changed what was stored',
  unchanged: 'brought nothing new',
  superseded: 'a later record of the file has the same key',
  rejected: 'refused, and not mended since',
  amended: 'refused, and mended since by another job',
};

interface BalanceProps {
  readonly jobId: string;
  readonly counts: Counts;
  /** Records in the file. Those that have not been read yet are the rest of the bar. */
  readonly total: number;
}

/** Shows the balance of a load: every record that was read became one of these. */
export function Balance({ jobId, counts, total }: BalanceProps): VNode {
  const read = counts['read'] ?? 0;
  const all = Object.entries(parts).map(([name, meaning]) => ({ name, meaning, count: counts[name] ?? 0 }));
  const whole = Math.max(total, read, 1);
  const sum = all.reduce((before, { count }) => before + count, 0);
  const ink = (name: string) => ({ background: `var(--${name})` });
  return (
    <div class="stack">
      <div class="balance-bar" aria-hidden="true">
        {all
          .filter(({ count }) => count > 0)
          .map(({ name, count }) => (
            <span
              key={name}
              style={{ ...ink(name), flexGrow: count / whole }}
              title={`${name}: ${formatCount(count)}`}
            />
          ))}
        <span style={{ ...ink('waiting-ground'), flexGrow: Math.max(0, whole - read) / whole }} />
      </div>
      <dl class="figures balance-parts">
        <div>
          <dt>read</dt>
          <dd>{formatCount(read)}</dd>
          <dd class="hint">
            {sum === read ? '= the sum of these' : `${formatCount(sum - read)} do not balance`}
          </dd>
        </div>
        {all.map(({ name, meaning, count }) => (
          <div key={name} title={meaning}>
            <dt>
              <span class="swatch" style={ink(name)} />
              {name === 'rejected' && count > 0 ? <a href={refusedHref(jobId)}>rejected</a> : name}
            </dt>
            <dd class={count === 0 ? 'faint' : undefined}>{formatCount(count)}</dd>
            <dd class="hint num">{count === 0 ? '' : formatShare(count, Math.max(read, 1))}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

const phaseNames: Readonly<Record<string, string>> = {
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

const phaseInks: Readonly<Record<string, string>> = {
  completed: '--good',
  failed: '--bad',
  cancelled: '--off',
};

interface PhasesProps {
  readonly phases: PhaseList;
  readonly isRunning: boolean;
}

/** When the job reached each phase, and how long it took to the next. The lengths between them are to scale. */
export function Phases({ phases, isRunning }: PhasesProps): VNode {
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
            class="phase"
            style={{ flexGrow: ms === null ? 0 : waits ? 0.35 : 0.35 + ms / whole }}
          >
            <span
              class="phase-mark"
              style={{ background: `var(${phaseInks[phase] ?? '--accent-strong'})` }}
            />
            <strong class="phase-name">{phaseNames[phase] ?? phase}</strong>
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
  { title: 'Chunk', cell: ({ chunk }) => <span class="num">{chunk}</span> },
  {
    title: 'State',
    cell: (chunk) => <Badge tone={chunkStates[shownState(chunk)][0]}>{shownState(chunk)}</Badge>,
  },
  { title: 'Rows', is: 'num', cell: ({ rows }) => formatCount(rows) },
  { title: 'Size', is: 'num minor', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Rejected', is: 'num', cell: ({ rejected }) => (rejected === null ? '–' : formatCount(rejected)) },
  { title: 'Took', is: 'num', cell: ({ ms }) => formatMs(ms) },
  {
    title: 'Attempt',
    is: 'num minor',
    cell: ({ attempt, losses }) => (losses === 0 ? attempt : `${attempt} (${plural(losses, 'worker')} lost)`),
  },
  { title: 'Worker', is: 'minor', cell: ({ worker }) => <span class="mono">{worker ?? '–'}</span> },
  { title: 'Committed', is: 'num minor', cell: ({ end_time }) => <Time at={end_time} /> },
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
        {chunks.length > mostRows ? (
          <p class="hint">
            The first {mostRows} of {formatCount(chunks.length)}; GET …/chunks has all.
          </p>
        ) : null}
      </details>
    </div>
  );
}
