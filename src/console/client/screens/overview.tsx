import type { VNode } from 'preact';
import type { Overview as OverviewRecord } from '../../../api/overview.ts';
import type { NeedKind } from '../../../domain/need.ts';
import { pollMs, type Query, restMs, screenHref, useApi, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, formatShort, formatTime, plural, visibleText } from '../lib/format.ts';
import { jobHref, refusedHref } from '../lib/jobs.ts';
import { Choices } from '../ui/controls.tsx';
import { Bars, sumOf } from '../ui/drawings.tsx';
import { Badge, FileName, Loaded, Notice, Page, Section, StatusBadge, Time, type Tone } from '../ui/page.tsx';
import { type Column, TableSection } from '../ui/table.tsx';

const dayMs = 86_400_000;

/** Without jobs under way the page changes slowly. */
const pauseOf = (of: OverviewRecord | undefined): number =>
  of === undefined || of.queued + of.processing > 0 ? pollMs : restMs;

/** Shows what needs a person, what came in, and the environment's current work. */
export function Overview(): VNode {
  const query = useQuery();
  const period = query.get('period') || '1h';
  const overview = useApi<OverviewRecord>(withQuery('/v1/overview', { period }), pauseOf);
  return (
    <Page title="Overview">
      <Loaded of={overview} rows={10}>
        {(of) => (
          <>
            <Needs of={of} />
            <div class="columns">
              <Rates of={of} query={query} period={period} />
              <JobDays days={of.job_days} />
            </div>
            <Lane items={of.lane} />
            <Work of={of} />
            <Findings of={of.findings} server={of.server} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Returns the day on which the last 24 hours began. */
function dayAgo(): string {
  return new Date(Date.now() - dayMs).toISOString().slice(0, 10);
}

/** Returns where each need leads; the subject is the one job or schedule that it is about. */
const places: Readonly<Record<NeedKind, (subject: string | null) => string | null>> = {
  records_unaccounted: () => screenHref('/jobs'),
  schedules_failing: (name) => screenHref(name === null ? '/schedules' : `/schedules/${name}`),
  jobs_failed: (job) =>
    job === null ? screenHref('/jobs', { status: 'failed', since: dayAgo() }) : jobHref(job),
  inbox_files_refused: () => screenHref('/inbox'),
  // They are listed by the API, and sent again by `sluice notifications`.
  deliveries_dead: () => null,
  loads_held: (job) => (job === null ? screenHref('/jobs', { status: 'held' }) : jobHref(job)),
  records_refused: (job) => (job === null ? screenHref('/jobs', { has_rejects: 'true' }) : refusedHref(job)),
  inbox_files_with_rejects: () => screenHref('/inbox'),
  runs_skipped: () => screenHref('/schedules'),
};

/** Shows one sentence: what needs attention and what is under way, with a link for each, and the state of everything else. */
function Needs(props: { readonly of: OverviewRecord }): VNode {
  const { needs, health, findings, queued, processing } = props.of;
  const isDown = health.status !== 'ready';
  const away = Object.entries(health.parts).flatMap(([part, state]) => (state === 'away' ? part : []));
  const lacks = away.length === 0 ? '' : `: ${away.join(' and ')} away`;
  const isBroken = isDown || findings.failed > 0 || needs.some(({ status }) => status === 'failed');
  const look = isBroken ? 'bad' : needs.length > 0 ? 'warn' : 'good';
  const underWay = processing + queued;
  return (
    <Notice look={look} role="status">
      {isDown ? `The service is ${health.status.replace('_', ' ')}${lacks} · ` : null}
      {findings.failed === 0 ? null : (
        <>
          <a href="#health">{plural(findings.failed, 'health check')} failed</a> ·{' '}
        </>
      )}
      {needs.map(({ kind, status, subject, says }) => {
        const href = places[kind](subject);
        return (
          <span key={kind}>
            {href === null ? (
              visibleText(says)
            ) : (
              <a class={status === 'failed' ? 'bad' : undefined} href={href}>
                {visibleText(says)}
              </a>
            )}{' '}
            ·{' '}
          </span>
        );
      })}
      {look === 'good' ? 'Nothing needs you · ' : ''}
      {underWay === 0 ? null : (
        <>
          <a href={screenHref('/jobs', { status: 'queued,processing' })}>
            {plural(underWay, 'job is', 'jobs are')} under way
          </a>{' '}
          ·{' '}
        </>
      )}
      everything else is stored
    </Notice>
  );
}

/** The periods that can be chosen, with the form of the times below the axis. */
const periods: Readonly<Record<string, readonly [text: string, words: string, form: Intl.DateTimeFormat]>> = {
  '1h': ['1 h', 'hour', new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' })],
  '24h': ['24 h', '24 hours', new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' })],
  '30d': ['30 d', '30 days', new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })],
};

interface RatesProps {
  readonly of: OverviewRecord;
  readonly query: Query;
  readonly period: string;
}

/** The records of a period by what became of them, per minute, averaged over each step. */
function Rates({ of: { rates, rate_minutes: minutes }, query, period }: RatesProps): VNode {
  const [, words, form] = periods[period] ?? ['', period, undefined];
  const clock = (at: string | undefined): string =>
    at === undefined ? '' : (form?.format(new Date(at)) ?? '');
  const bars = rates.map(({ begins_at, accepted, unchanged, rejected }) => {
    const values = [accepted, unchanged, rejected];
    return {
      at: begins_at,
      values,
      title: `${formatTime(begins_at)}: ${values.map(formatCount).join(', ')}`,
    };
  });
  const most = Math.max(...bars.map(({ values }) => sumOf(values))) / minutes;
  return (
    <Section
      title="Records per minute"
      aside={
        <Choices
          label="Period"
          isLabelHidden
          value={period}
          options={Object.entries(periods).map(([value, [text]]) => [value, text])}
          onChange={(value) => query.set({ period: value === '1h' ? '' : value })}
        />
      }
    >
      <Bars
        label={`in the last ${words}, at most ${formatShort(most)} a minute`}
        parts={[
          ['accepted', '--inserted'],
          ['unchanged', '--unchanged'],
          ['rejected', '--rejected'],
        ]}
        top={`${formatShort(most)} a minute`}
        axis={[bars[0], bars[bars.length / 2], bars.at(-1)].map((bar) => clock(bar?.at))}
        bars={bars}
      />
    </Section>
  );
}

/** The jobs of the last days; those that failed lead to their list. */
function JobDays({ days }: { readonly days: OverviewRecord['job_days'] }): VNode {
  const failed = sumOf(days.map((day) => day.failed));
  const since = days[0]?.day;
  return (
    <Section
      title="Jobs per day"
      aside={
        failed === 0 ? null : (
          <a href={screenHref('/jobs', { status: 'failed', since })}>{plural(failed, 'failure')}</a>
        )
      }
    >
      <Bars
        label={`in ${days.length} days`}
        parts={[
          ['not failed', '--busy'],
          ['failed', '--rejected'],
        ]}
        top={plural(Math.max(...days.map(({ jobs }) => jobs)), 'job')}
        axis={[since, 'UTC', days.at(-1)?.day]}
        bars={days.map((day) => ({
          values: [day.jobs - day.failed, day.failed],
          title: `${day.day}: ${plural(day.jobs, 'job')}, ${formatCount(day.failed)} failed`,
        }))}
      />
    </Section>
  );
}

type LaneItem = OverviewRecord['lane'][number];

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

/** Loads and deletions, which take effect one after another, if there are any: what runs, and what is next. */
function Lane({ items }: { readonly items: readonly LaneItem[] }): VNode | null {
  if (items.length === 0) return null;
  return (
    <TableSection
      title="Running and next"
      aside={
        items.length === mostItems ? <span class="faint">the first {mostItems}; Jobs lists all</span> : null
      }
      of={items}
      caption="Loads and deletions in the order in which they take effect"
      columns={laneColumns}
      keyOf={({ job_id }) => job_id}
      hrefOf={({ job_id }) => jobHref(job_id)}
    />
  );
}

const failingColumns: readonly Column<OverviewRecord['work']['failing'][number]>[] = [
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

/** The tasks that fail, if any do. */
function Work({ of: { work } }: { readonly of: OverviewRecord }): VNode | null {
  const { waiting, running, postponed, failing } = work;
  if (failing.length === 0) return null;
  return (
    <TableSection
      title="Failing tasks"
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
    >
      {failing.length === mostItems ? (
        <p class="line hint">The first {mostItems} that fail; there may be more.</p>
      ) : null}
    </TableSection>
  );
}

type FindingsRecord = OverviewRecord['findings'];

const findingTones = { failed: 'bad', warning: 'warn', ok: 'good' } as const satisfies Record<string, Tone>;
const order = Object.keys(findingTones);

/** Shows the findings of the checks, first what is wrong. Checks without a finding are folded away. */
function Findings({ of, server }: { readonly of: FindingsRecord; readonly server: string }): VNode {
  const items = of.items.toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status));
  const well = items.filter(({ status }) => status === 'ok');
  const found = `${plural(of.failed, 'failure')} and ${plural(of.warnings, 'warning')}`;
  return (
    <Section id="health" title="Health checks" aside={<span class="faint">on {server}</span>}>
      {of.is_known ? null : <p class="muted">The checks are still running.</p>}
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
