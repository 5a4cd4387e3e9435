import type { VNode } from 'preact';
import type { LoadChunk } from '../../../../api/load.ts';
import { useQuery } from '../../lib/address.ts';
import { formatBytes, formatCount, formatMs, plural } from '../../lib/format.ts';
import { Badge, type Tone } from '../../ui/badge.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';

/** Cells of the strip: of more chunks several share one, which shows what most needs to be seen. */
const mostCells = 300;
/** Rows of the table; all of them are in the API. */
const mostRows = 100;

type Shown = 'failing' | 'running' | 'waiting' | 'done';

const urgency: readonly Shown[] = ['done', 'waiting', 'running', 'failing'];
const tones: Readonly<Record<Shown, Tone>> = {
  failing: 'warn',
  running: 'busy',
  waiting: 'waiting',
  done: 'good',
};

function shownState({ state, last_error }: LoadChunk): Shown {
  return state !== 'done' && last_error !== null ? 'failing' : state;
}

const columns: readonly Column<LoadChunk>[] = [
  { title: 'LoadChunk', cell: ({ chunk }) => <span class="num">{chunk}</span> },
  { title: 'State', cell: (chunk) => <Badge tone={tones[shownState(chunk)]}>{shownState(chunk)}</Badge> },
  { title: 'Rows', is: 'num', cell: ({ rows }) => formatCount(rows) },
  { title: 'Size', is: 'num minor', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Rejected', is: 'num', cell: ({ rejected }) => (rejected === null ? '–' : formatCount(rejected)) },
  { title: 'Took', is: 'num', cell: ({ ms }) => (ms === null ? '–' : formatMs(ms)) },
  {
    title: 'Attempt',
    is: 'num minor',
    cell: ({ attempt, losses }) => (losses === 0 ? attempt : `${attempt} (${plural(losses, 'worker')} lost)`),
  },
  { title: 'Worker', is: 'minor', cell: ({ worker }) => <span class="mono">{worker ?? '–'}</span> },
  { title: 'Committed', is: 'num minor', cell: ({ end_time }) => <Time at={end_time} /> },
];

/** The parts of a load, in the order of the file: a strip of their states, and who did each. */
interface ChunksProps {
  readonly chunks: readonly LoadChunk[];
}

export function Chunks({ chunks }: ChunksProps): VNode {
  const perCell = Math.max(1, Math.ceil(chunks.length / mostCells));
  const cells = Array.from({ length: Math.ceil(chunks.length / perCell) }, (_, at) =>
    chunks.slice(at * perCell, (at + 1) * perCell),
  );
  const count = (state: Shown): number => chunks.filter((chunk) => shownState(chunk) === state).length;
  const said = [...urgency]
    .reverse()
    .map((state) => [state, count(state)] as const)
    .filter(([, number]) => number > 0);
  return (
    <div class="chunks">
      <p class="chunks-said">
        {said.map(([state, number]) => (
          <span key={state}>
            <span class={`swatch chunk-${state}`} />
            <span class="num">{formatCount(number)}</span> {state}
          </span>
        ))}
        {perCell === 1 ? null : <span class="faint">{perCell} chunks per cell</span>}
      </p>
      <div class="chunk-strip" aria-hidden="true">
        {cells.map((cell) => {
          const state = cell
            .map(shownState)
            .reduce((worst, each) => (urgency.indexOf(each) > urgency.indexOf(worst) ? each : worst), 'done');
          const [first] = cell;
          return (
            <span
              key={first?.chunk}
              class={`chunk chunk-${state}`}
              title={first === undefined ? '' : describe(first)}
            />
          );
        })}
      </div>
      <AllChunks chunks={chunks} />
    </div>
  );
}

function AllChunks({ chunks }: ChunksProps): VNode {
  const query = useQuery();
  const isShown = query.get('chunks') !== '';
  return (
    <details
      open={isShown}
      onToggle={({ currentTarget: { open } }) => {
        if (open !== isShown) query.set({ chunks: open ? 'shown' : '' }, { replace: true });
      }}
    >
      <summary>All chunks</summary>
      <Table
        caption="Chunks in the order of the file"
        columns={columns}
        rows={chunks.slice(0, mostRows)}
        keyOf={({ chunk }) => String(chunk)}
      />
      {chunks.length > mostRows ? (
        <p class="hint">
          The first {mostRows} of {formatCount(chunks.length)}; GET …/chunks has all.
        </p>
      ) : null}
    </details>
  );
}

function describe(chunk: LoadChunk): string {
  const { rows, ms, worker, last_error } = chunk;
  const about = [`chunk ${chunk.chunk}: ${shownState(chunk)}`, plural(rows, 'row')];
  if (ms !== null) about.push(formatMs(ms));
  if (worker !== null) about.push(worker);
  if (last_error !== null) about.push(last_error);
  return about.join(' · ');
}
