import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Overview } from '../../../api/overview.ts';
import type { ScheduleList } from '../../../api/source.ts';
import type { NeedKind } from '../../../domain/need.ts';
import { screenHref, useApi } from '../lib/api.ts';
import { formatCount, formatShort, formatTime, plural, visibleText } from '../lib/format.ts';
import { jobHref, refusedHref } from '../lib/jobs.ts';
import { type LiveEvent, useLive } from '../lib/live.ts';
import { Bars, Icon } from '../ui/drawings.tsx';
import {
  Badge,
  FileName,
  Loaded,
  Page,
  Section,
  StaleNotice,
  StatusBadge,
  Time,
  type Tone,
} from '../ui/page.tsx';
import { type Column, TableSection } from '../ui/table.tsx';

const everyMs = 10_000;
const dayMs = 86_400_000;

interface RunningJob {
  readonly job_id: string;
  readonly completed_rows: number;
}

interface PulseEvent extends LiveEvent {
  readonly queued: number;
  readonly running: readonly RunningJob[];
}

/** Shows the environment's current work, and whether anything is wrong. */
export function Pulse(): VNode {
  const overview = useApi<Overview>('/v1/overview', everyMs);
  const [now, setNow] = useState<PulseEvent | null>(null);
  useLive<PulseEvent>('pulse', (event) => {
    // A job that began or ended has changed the lane too.
    if (now !== null && idsOf(now) !== idsOf(event)) overview.reload();
    setNow(event);
  });
  return (
    <Page title="Pulse">
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

/** Returns the day on which the last 24 hours began. */
function dayAgo(): string {
  return new Date(Date.now() - dayMs).toISOString().slice(0, 10);
}

/** Returns where each need leads; the subject is the one job or schedule that it is about. */
const places: Readonly<Record<NeedKind, (subject: string | null) => string>> = {
  records_unaccounted: () => screenHref('/jobs'),
  schedules_failing: (name) => screenHref(name === null ? '/schedules' : `/schedules/${name}`),
  jobs_failed: (job) =>
    job === null ? screenHref('/jobs', { status: 'failed', since: dayAgo() }) : jobHref(job),
  inbox_files_refused: () => screenHref('/inbox'),
  deliveries_dead: () => screenHref('/deliveries', { state: 'dead' }),
  loads_held: (job) => (job === null ? screenHref('/jobs', { status: 'held' }) : jobHref(job)),
  records_refused: (job) => (job === null ? screenHref('/jobs', { has_rejects: 'true' }) : refusedHref(job)),
  inbox_files_with_rejects: () => screenHref('/inbox'),
  runs_skipped: () => screenHref('/schedules'),
};

/** Shows one sentence: what needs attention, with a link for each part, and the state of everything else. */
function Needs({ of: { needs, health, findings } }: { readonly of: Overview }): VNode {
  const isDown = health.status !== 'ready';
  const away = Object.entries(health.parts).flatMap(([part, state]) => (state === 'away' ? part : []));
  const lacks = away.length === 0 ? '' : `: ${away.join(' and ')} away`;
  const isBroken = isDown || findings.failed > 0 || needs.some(({ status }) => status === 'failed');
  const look = isBroken ? 'notice notice-bad' : needs.length > 0 ? 'notice' : 'notice notice-good';
  const isCalm = !isBroken && needs.length === 0;
  return (
    <p class={look} role="status">
      <Icon name={isCalm ? 'check' : 'warning'} />
      <span class="break">
        {isDown ? `The service is ${health.status.replace('_', ' ')}${lacks} · ` : null}
        {findings.failed === 0 ? null : (
          <>
            <a href="#doctor">{plural(findings.failed, 'check')} of the doctor failed</a> ·{' '}
          </>
        )}
        {needs.map(({ kind, status, subject, says }) => (
          <span key={kind}>
            <a class={status === 'failed' ? 'bad' : undefined} href={places[kind](subject)}>
              {visibleText(says)}
            </a>{' '}
            ·{' '}
          </span>
        ))}
        {isCalm ? 'Nothing needs you: everything works' : 'everything else works'}
      </span>
    </p>
  );
}

/** Numbers, each of which leads to its list. */
function Figures({ of, now }: { readonly of: Overview; readonly now: PulseEvent | null }): VNode {
  const until = Date.now() + dayMs;
  const { data } = useApi<ScheduleList>('/v1/schedules', 60_000);
  const due = data?.data.flatMap(({ due_times }) => due_times).filter((at) => Date.parse(at) <= until);
  const isZero = of.unaccounted === 0;
  const failed = { status: 'failed', since: dayAgo() };
  const figures = [
    ['Running', now?.running.length ?? of.processing, screenHref('/jobs', { status: 'processing' })],
    ['Waiting', now?.queued ?? of.queued, screenHref('/jobs', { status: 'queued' })],
    ['Failed in 24 hours', of.failed_24h, screenHref('/jobs', failed)],
    ['Due in 24 hours', due?.length, screenHref('/schedules')],
  ] as const;
  return (
    <dl class="figures panel">
      <div>
        <dt>Unaccounted records</dt>
        <dd class={isZero ? 'good' : 'bad'}>{formatCount(of.unaccounted)}</dd>
        <dd class="hint">{isZero ? 'must be 0' : 'must be 0: look at the jobs'}</dd>
      </div>
      {figures.map(([title, count, href]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>
            <a href={href}>
              {count === undefined ? '–' : formatCount(count)}
              <span class="visually-hidden">: {title}</span>
            </a>{' '}
            {title.startsWith('Failed') && count !== 0 ? <Badge tone="bad">look</Badge> : null}
          </dd>
        </div>
      ))}
    </dl>
  );
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
  const total = minutes.reduce((sum, minute) => sum + minute[count], 0);
  const refused = minutes.reduce((sum, minute) => sum + minute.refused, 0);
  const most = formatShort(Math.max(0, ...whole.map((minute) => minute[count] / 60)));
  const clock = (minute: string | undefined): string =>
    minute === undefined ? '' : formatTime(minute).slice(0, -3);
  return (
    <Section
      title={`${title}, last hour`}
      aside={<span class="muted num">{formatShort(total)} in total</span>}
    >
      <Bars
        label={`${title}, the last hour: ${formatCount(total)} in total, at most ${most} a second`}
        ink={ink}
        axis={[whole[0], whole[Math.floor(whole.length / 2)], whole.at(-1)].map((each) =>
          clock(each?.minute),
        )}
        bars={whole.map((minute) => ({
          value: minute[count],
          title: `${clock(minute.minute)}: ${formatShort(minute[count] / 60)} a second`,
        }))}
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

type LaneItem = Overview['lane'][number];

const laneColumns: readonly Column<LaneItem>[] = [
  [
    'Job',
    ({ position, filename, type }) => (
      <span>
        {position + 1}. <FileName name={filename ?? type.replaceAll('_', ' ')} />
      </span>
    ),
  ],
  ['State', ({ status }) => <StatusBadge status={status} />],
  [
    'Done',
    ({ done, total, job_id }) => (
      <progress max={Math.max(1, total)} value={done} aria-label={`Done of ${job_id}`} />
    ),
    'minor',
  ],
  ['Rows', ({ done, total }) => `${formatCount(done)} of ${formatCount(total)}`, 'num'],
  ['Accepted', ({ start_time }) => <Time at={start_time} />, 'num minor'],
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
    <TableSection
      title="Lane"
      aside={
        items.length === mostItems ? <span class="faint">the first {mostItems}; Jobs has all</span> : null
      }
      of={rows}
      caption="Loads and deletions in the order in which they take effect"
      columns={laneColumns}
      keyOf={({ job_id }) => job_id}
      hrefOf={({ job_id }) => jobHref(job_id)}
      empty="Nothing runs and nothing waits"
    />
  );
}

const failingColumns: readonly Column<Overview['work']['failing'][number]>[] = [
  [
    'Task',
    ({ task, part, job_id }) => {
      const words = task === 'chunk' ? `chunk ${formatCount(part)}` : task;
      return job_id === null ? words : <a href={jobHref(job_id)}>{words}</a>;
    },
  ],
  [
    'Last error',
    ({ last_error }) => <span class="break">{visibleText(last_error ?? 'lost its worker')}</span>,
  ],
  ['Failed', ({ failures }) => formatCount(failures), 'num'],
  ['Workers lost', ({ losses }) => formatCount(losses), 'num minor'],
  [
    'Next try',
    ({ next_try_at }) => (next_try_at === null ? 'under way' : <Time at={next_try_at} ago />),
    'num',
  ],
];

/** The tasks of the ledger. */
function Work({ of: { work } }: { readonly of: Overview }): VNode {
  const { waiting, running, postponed, failing } = work;
  return (
    <TableSection
      title="Background work"
      aside={
        <span class="muted num">
          {plural(waiting, 'task')} waiting, {formatCount(running)} running, {formatCount(postponed)} to be
          retried
        </span>
      }
      of={failing}
      caption="Failing tasks"
      columns={failingColumns}
      keyOf={({ task, job_id, part }) => `${task} ${job_id} ${part}`}
      empty={<p class="line muted">No task is failing.</p>}
    >
      {failing.length === mostItems ? (
        <p class="line hint">The first {mostItems} that fail; there may be more.</p>
      ) : null}
    </TableSection>
  );
}

type FindingsRecord = Overview['findings'];

const findingTones = { failed: 'bad', warning: 'warn', ok: 'good' } as const satisfies Record<string, Tone>;
const order = Object.keys(findingTones);

/** Shows the doctor's findings, first what is wrong. Checks without a finding are folded away. */
function Findings({ of, server }: { readonly of: FindingsRecord; readonly server: string }): VNode {
  const items = of.items.toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  const well = items.filter(({ status }) => status === 'ok');
  const found = `${plural(of.failed, 'failure')} and ${plural(of.warnings, 'warning')}`;
  return (
    <Section id="doctor" title="Findings of the doctor" aside={<span class="faint">on {server}</span>}>
      {of.is_known ? null : <p class="muted">The checks have not ended yet.</p>}
      {of.is_known && items.length === 0 ? (
        <p class="muted">{found}: the operator of the service sees what they are.</p>
      ) : null}
      {listOf(items.slice(0, items.length - well.length))}
      {well.length === 0 ? null : (
        <details class="stack">
          <summary>{plural(well.length, 'check is fine', 'checks are fine')}</summary>
          {listOf(well)}
        </details>
      )}
    </Section>
  );
}

function listOf(items: FindingsRecord['items']): VNode {
  return (
    <ul class="stack findings">
      {items.map(({ check, status, found, advice }, at) => (
        <li key={`${check} ${at}`} class="break">
          <Badge tone={findingTones[status]}>{status}</Badge>
          <div>
            <strong>{check}</strong>
            <p>{visibleText(found)}</p>
            {advice === null ? null : <p class="muted">{visibleText(advice)}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
