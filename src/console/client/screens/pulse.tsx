import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Overview } from '../../../api/overview.ts';
import type { ScheduleList } from '../../../api/schedule.ts';
import { screenHref } from '../lib/address.ts';
import { api } from '../lib/api.ts';
import { formatCount, formatShort, plural, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { type LiveEvent, useLive } from '../lib/live.ts';
import type { FailingTask, LaneItem, RunningJob } from '../lib/records.ts';
import { useData } from '../lib/use-data.ts';
import { Badge, StatusBadge } from '../ui/badge.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Plot } from '../ui/plot.tsx';
import { Empty, Loaded, StaleNotice } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { FileName, Time } from '../ui/text.tsx';
import { dayAgo, dayMs, Findings, Health, Needs } from './pulse-health.tsx';

const everyMs = 10_000;
const path = '/v1/overview';

interface PulseEvent extends LiveEvent {
  readonly queued: number;
  readonly running: readonly RunningJob[];
}

/** Shows the environment's current work, and whether anything is wrong. */
export function Pulse(): VNode {
  const overview = useData(path, (signal) => api<Overview>(path, { signal }), { everyMs });
  const [now, setNow] = useState<PulseEvent | null>(null);
  useLive<PulseEvent>('pulse', (event) => {
    // A job that began or ended has changed the lane too.
    if (now !== null && idsOf(now) !== idsOf(event)) overview.reload();
    setNow(event);
  });
  const { data } = overview;
  return (
    <Page title="Pulse" aside={data === undefined ? null : <Health of={data.health} />}>
      <StaleNotice />
      <Loaded of={overview} rows={10}>
        {(of) => (
          <>
            <Needs of={of} />
            <Figures of={of} now={now} />
            <div class="columns">
              <Rate title="Single records" of={of} count="records" ink="--inserted" />
              <Rate title="Rows of files" of={of} count="rows" ink="--updated" />
            </div>
            <Lane items={of.lane} running={now?.running ?? []} />
            <Work of={of} />
            <Findings of={of.findings} server={of.server} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function idsOf({ running, queued }: PulseEvent): string {
  return `${queued} ${running.map(({ job_id }) => job_id).join(' ')}`;
}

/** Numbers, each of which leads to its list. */
function Figures({ of, now }: { readonly of: Overview; readonly now: PulseEvent | null }): VNode {
  const isZero = of.unaccounted === 0;
  const failed = { status: 'failed', since: dayAgo() };
  return (
    <dl class="figures panel pulse-figures">
      <div class={isZero ? 'pulse-zero' : 'pulse-wrong'}>
        <dt>Unaccounted records</dt>
        <dd>{formatCount(of.unaccounted)}</dd>
        <dd class="pulse-hint">{isZero ? 'must be 0' : 'must be 0: look at the jobs'}</dd>
      </div>
      <Figure
        title="Running"
        count={now?.running.length ?? of.processing}
        href={screenHref('/jobs', { status: 'processing' })}
      />
      <Figure
        title="Waiting"
        count={now?.queued ?? of.queued}
        href={screenHref('/jobs', { status: 'queued' })}
      />
      <Figure title="Failed in 24 hours" count={of.failed_24h} href={screenHref('/jobs', failed)} isBad />
      <Due />
    </dl>
  );
}

interface FigureProps {
  readonly title: string;
  readonly count: number | undefined;
  readonly href: string;
  /** Any number but 0 needs a look. */
  readonly isBad?: boolean;
}

function Figure({ title, count, href, isBad = false }: FigureProps): VNode {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <a href={href}>
          {count === undefined ? '–' : formatCount(count)}
          <span class="visually-hidden">: {title}</span>
        </a>{' '}
        {isBad && count !== 0 ? <Badge tone="bad">look</Badge> : null}
      </dd>
    </div>
  );
}

/** Counts the due times of all schedules in the next 24 hours. */
function Due(): VNode {
  const { data } = useData('/v1/schedules', (signal) => api<ScheduleList>('/v1/schedules', { signal }), {
    everyMs: 60_000,
  });
  const until = Date.now() + dayMs;
  const due = data?.data.flatMap(({ due_times }) => due_times).filter((at) => Date.parse(at) <= until);
  return <Figure title="Due in 24 hours" count={due?.length} href={screenHref('/schedules')} />;
}

interface RateProps {
  readonly title: string;
  readonly of: Overview;
  readonly count: 'records' | 'rows';
  readonly ink: string;
}

/** The last hour, per second, averaged over each minute. */
function Rate({ title, of: { minutes }, count, ink }: RateProps): VNode {
  // The last minute is not over.
  const whole = minutes.slice(0, -1);
  const perSecond = whole.map((minute) => minute[count] / 60);
  const total = minutes.reduce((sum, minute) => sum + minute[count], 0);
  const refused = minutes.reduce((sum, minute) => sum + minute.refused, 0);
  const most = formatShort(Math.max(0, ...perSecond));
  const words = `${title}, the last hour: ${formatCount(total)} in total, at most ${most} a second`;
  return (
    <Section
      title={`${title}, last hour`}
      aside={<span class="muted num">{formatShort(total)} in total</span>}
    >
      <Plot
        label={words}
        times={whole.map(({ minute }) => Date.parse(minute) / 1_000)}
        values={perSecond}
        ink={ink}
      />
      <p class="hint">
        Per second, averaged over each minute; at most {most}.
        {count === 'rows'
          ? ''
          : refused === 0
            ? ' None was refused.'
            : ` ${plural(refused, 'record was', 'records were')} refused.`}
      </p>
    </Section>
  );
}

const laneColumns: readonly Column<LaneItem>[] = [
  {
    title: 'Job',
    cell: ({ position, filename, type }) => (
      <span>
        {position + 1}. <FileName name={filename ?? type.replaceAll('_', ' ')} />
      </span>
    ),
  },
  { title: 'State', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Done',
    is: 'minor',
    cell: ({ done, total, job_id }) => (
      <progress max={Math.max(1, total)} value={done} aria-label={`Done of ${job_id}`} />
    ),
  },
  { title: 'Rows', is: 'num', cell: ({ done, total }) => `${formatCount(done)} of ${formatCount(total)}` },
  { title: 'Accepted', is: 'num minor', cell: ({ start_time }) => <Time at={start_time} /> },
];

/** The API answers with no more jobs of the lane, and no more failing tasks. */
const mostItems = 20;

interface LaneProps {
  readonly items: readonly LaneItem[];
  readonly running: readonly RunningJob[];
}

/** Loads and deletions, which take effect one after another: what runs, and what is next. */
function Lane({ items, running }: LaneProps): VNode {
  const rows = items.map((item): LaneItem => {
    const now = running.find(({ job_id }) => job_id === item.job_id);
    return now === undefined ? item : { ...item, status: 'processing', done: now.completed_rows };
  });
  return (
    <Section
      title="Lane"
      aside={
        items.length === mostItems ? <span class="faint">the first {mostItems}; Jobs has all</span> : null
      }
      flush
    >
      <Table
        caption="Loads and deletions in the order in which they take effect"
        columns={laneColumns}
        rows={rows}
        keyOf={({ job_id }) => job_id}
        hrefOf={({ job_id }) => jobHref(job_id)}
        empty={<Empty title="Nothing runs and nothing waits" />}
      />
    </Section>
  );
}

const failingColumns: readonly Column<FailingTask>[] = [
  {
    title: 'Task',
    cell: ({ task, part, job_id }) => {
      const words = task === 'chunk' ? `chunk ${formatCount(part)}` : task;
      return job_id === null ? words : <a href={jobHref(job_id)}>{words}</a>;
    },
  },
  {
    title: 'Last error',
    cell: ({ last_error }) => (
      <span class="break">{last_error === null ? 'lost its worker' : visibleText(last_error)}</span>
    ),
  },
  { title: 'Failed', is: 'num', cell: ({ failures }) => formatCount(failures) },
  { title: 'Workers lost', is: 'num minor', cell: ({ losses }) => formatCount(losses) },
  {
    title: 'Next try',
    is: 'num',
    cell: ({ next_try_at }) => (next_try_at === null ? 'under way' : <Time at={next_try_at} ago />),
  },
];

/** The tasks of the ledger, and the queue that wakes the workers. */
function Work({ of: { work, queue } }: { readonly of: Overview }): VNode {
  const { waiting, running, postponed, failing } = work;
  return (
    <Section
      title="Background work"
      aside={
        <span class="muted num">
          {plural(waiting, 'task')} waiting, {formatCount(running)} running, {formatCount(postponed)} to be
          retried
        </span>
      }
      flush
    >
      <Table
        caption="Failing tasks"
        columns={failingColumns}
        rows={failing}
        keyOf={({ task, job_id, part }) => `${task} ${job_id} ${part}`}
        empty={<p class="work-line muted">No task is failing.</p>}
      />
      {failing.length === mostItems ? (
        <p class="work-line hint">The first {mostItems} that fail; there may be more.</p>
      ) : null}
      {queue === null ? null : <p class="work-line hint">{queueText(queue)}</p>}
    </Section>
  );
}

const stores = { postgres: 'PostgreSQL', redis: 'Redis' } as const;

function queueText({ lives_in, is_known, queues }: NonNullable<Overview['queue']>): string {
  const counts = queues.map(
    ({ name, waiting, active, delayed, failed }) =>
      `${name} has ${formatCount(waiting)} waiting, ${formatCount(active)} active, ${formatCount(delayed)} delayed, ${formatCount(failed)} failed`,
  );
  const state = is_known ? `${counts.join('; ')}.` : 'it does not answer.';
  return `Queue in ${stores[lives_in]}: ${state} It only says that work is due; the ledger has the work.`;
}
