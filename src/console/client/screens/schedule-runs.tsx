import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import { api, mayUse } from '../lib/api.ts';
import { formatMs, formatTime, plural, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { CopyAs } from '../ui/copy.tsx';
import { Icon, type IconName } from '../ui/icons.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

interface ShortRun {
  readonly due_at: string;
  readonly status: string;
  readonly cause: string;
  readonly missed: number;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly error_code: string | null;
  readonly message: string | null;
  readonly last_error: string | null;
}

export interface Schedule {
  readonly schedule: string;
  readonly kind: 'load' | 'export';
  readonly what: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly enabled: boolean;
  readonly paused_at: string | null;
  readonly next_due: string | null;
  readonly due_times: readonly string[];
  readonly due_times_are_all: boolean;
  readonly runs: readonly ShortRun[];
}

interface Run extends ShortRun {
  readonly attempts: number;
  readonly items: readonly {
    readonly item: string;
    readonly job_id: string | null;
    readonly is_new: boolean;
    readonly message: string | null;
  }[];
  readonly item_count: number;
}

const looks: Readonly<Record<string, readonly [Tone, IconName]>> = {
  queued: ['waiting', 'circle'],
  running: ['busy', 'half'],
  waiting: ['busy', 'half'],
  completed: ['good', 'check'],
  completed_with_rejects: ['warn', 'warning'],
  unchanged: ['off', 'slash'],
  skipped: ['warn', 'slash'],
  failed: ['bad', 'cross'],
};

/** A run that is tried again after an error does not work now. */
function lookOf({ status, last_error }: ShortRun): readonly [Tone, IconName] {
  if (status === 'queued' && last_error !== null) return ['bad', 'cross'];
  return looks[status] ?? ['waiting', 'circle'];
}

/** How many squares a schedule has. */
const squares = 14;

/** One square for each of the latest runs, the newest at the right; a shape and a colour say how it went. */
export function Runs({ of }: { readonly of: Schedule }): VNode {
  const runs = of.runs.toReversed();
  const empty = squares - runs.length;
  return (
    <ol class="squares" aria-label={`The latest ${plural(runs.length, 'run')} of ${of.schedule}`}>
      {Array.from({ length: empty }, (_, at) => (
        <li key={at} class="square square-none" aria-hidden="true" />
      ))}
      {runs.map((run) => {
        const [tone, icon] = lookOf(run);
        const words = `${formatTime(run.due_at)}: ${wordsOf(run)}`;
        return (
          <li key={run.due_at} class={`square square-${tone}`} title={words}>
            <Icon name={icon} size={10} />
            <span class="visually-hidden">{words}</span>
          </li>
        );
      })}
    </ol>
  );
}

function wordsOf({ status, message, last_error }: ShortRun): string {
  const why = message ?? last_error;
  return `${status.replaceAll('_', ' ')}${why === null ? '' : `: ${visibleText(why)}`}`;
}

/** The answer has no more of them. */
const mostRuns = 50;

/** The runs of one schedule with their jobs; one that went wrong is run again for its due time. */
export function ScheduleRuns(): VNode {
  const { schedule = '' } = useRoute().params;
  const path = `/v1/schedules/${encodeURIComponent(schedule)}/runs`;
  const { data, error, reload } = useData(path, (signal) => api<readonly Run[]>(path, { signal }), {
    everyMs: 3_000,
  });
  return (
    <Page title={visibleText(schedule)} parent={{ title: 'Schedules', href: screenHref('/schedules') }}>
      <Problems error={error} onRetry={reload} />
      <Section
        title="Runs, latest due time first"
        aside={data?.length === mostRuns ? <span class="faint">the latest {mostRuns}</span> : null}
        flush
      >
        {data === undefined ? (
          error === null ? (
            <Loading />
          ) : null
        ) : data.length === 0 ? (
          <Empty title="It has not run yet" />
        ) : (
          <Table
            caption="Runs, latest due time first"
            isTall
            columns={columnsWith(path, reload)}
            rows={data}
            keyOf={({ due_at }) => due_at}
          />
        )}
      </Section>
      <Section title="As command">
        <CopyAs
          forms={[
            { name: 'History', text: `sluice schedules history ${schedule}` },
            { name: 'Run now', text: `sluice schedules run ${schedule} --wait` },
          ]}
        />
      </Section>
    </Page>
  );
}

function columnsWith(path: string, onChange: () => void): readonly Column<Run>[] {
  return [
    { id: 'due', title: 'Due', cell: ({ due_at }) => <Time at={due_at} /> },
    {
      id: 'status',
      title: 'State',
      cell: (run) => <Badge tone={lookOf(run)[0]}>{run.status.replaceAll('_', ' ')}</Badge>,
    },
    { id: 'cause', title: 'By', isMinor: true, cell: ({ cause }) => cause.replaceAll('_', ' ') },
    { id: 'jobs', title: 'Jobs and reasons', cell: (run) => <Jobs of={run} /> },
    {
      id: 'took',
      title: 'Took',
      isNumber: true,
      isMinor: true,
      cell: ({ started_at, ended_at }) =>
        started_at === null || ended_at === null
          ? '–'
          : formatMs(Date.parse(ended_at) - Date.parse(started_at)),
    },
    { id: 'do', title: 'Action', cell: (run) => <Again of={run} path={path} onChange={onChange} /> },
  ];
}

function Jobs({ of }: { readonly of: Run }): VNode {
  const why = of.message ?? of.last_error;
  const rest = of.item_count - of.items.length;
  return (
    <ul class="two-lines">
      {why === null ? null : <li class="break">{visibleText(why)}</li>}
      {of.items.map(({ item, job_id, is_new, message }) => (
        <li key={item} class="break">
          {job_id === null ? (
            visibleText(item)
          ) : (
            <a href={screenHref(`/jobs/${job_id}`)}>{visibleText(item)}</a>
          )}
          <span class="faint">
            {is_new || job_id === null ? '' : ' loaded before'}
            {message === null ? '' : ` ${visibleText(message)}`}
          </span>
        </li>
      ))}
      {rest > 0 ? <li class="faint">and {rest} more</li> : null}
      {of.missed > 0 ? <li class="faint">also stands for {plural(of.missed, 'earlier due time')}</li> : null}
    </ul>
  );
}

function Again({
  of,
  path,
  onChange,
}: {
  readonly of: Run;
  readonly path: string;
  readonly onChange: () => void;
}): VNode | null {
  const again = useAction(async () => {
    await api(path, { method: 'POST', body: { due_at: of.due_at } });
    onChange();
  });
  if (of.status !== 'failed' && of.status !== 'skipped') return null;
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={!mayUse('import') || again.isRunning}
        onClick={() => void again.run()}
      >
        Run again
      </button>
      <Problems error={again.error} />
    </>
  );
}
