import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { type Query, screenHref, useQuery, withQuery } from '../../console/client/lib/address.ts';
import { pollMs, restMs, useApi } from '../../console/client/lib/data.ts';
import {
  formatCount,
  formatShort,
  formatTime,
  plural,
  visibleText,
} from '../../console/client/lib/format.ts';
import { type JobDetail, jobHref, jobPath, refusedHref } from '../../console/client/lib/jobs.ts';
import type { NeedPlace, Part } from '../../console/client/part.ts';
import { Choices } from '../../console/client/ui/controls.tsx';
import { Bars, sumOf } from '../../console/client/ui/drawings.tsx';
import { List } from '../../console/client/ui/list.tsx';
import { Badge, Empty, Loaded, Notice, Page, Section } from '../../console/client/ui/page.tsx';
import { WayIn } from '../../console/client/ui/way-in.tsx';
import type { NeedKind } from '../../domain/need.ts';
import type { Overview as OverviewRecord } from '../overview-api.ts';
import { JobActs } from './actions.tsx';
import { jobColumns, useJobs } from './jobs.tsx';

const dayMs = 86_400_000;

/** Pause between polls. It is longer if no job is queued or running. */
const pauseOf = (record: OverviewRecord | undefined): number =>
  record === undefined || record.queued + record.processing > 0 ? pollMs : restMs;

export function Overview(): VNode {
  const query = useQuery();
  const period = query.get('period') || '1h';
  const overview = useApi<OverviewRecord>(withQuery('/v1/overview', { period }), pauseOf);
  return (
    <Page title="Overview">
      <Loaded of={overview} rows={10}>
        {(of) => (
          <div class="columns columns-wide">
            <div class="stack">
              <Needs of={of} onDone={overview.reload} />
              <LatestJobs underWay={of.queued + of.processing} />
            </div>
            <div class="stack">
              <Rates of={of} query={query} period={period} />
              <JobDays days={of.job_days} />
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function dayAgo(): string {
  return new Date(Date.now() - dayMs).toISOString().slice(0, 10);
}

/** Capabilities add links for their own kinds of problems. */
const places: NonNullable<Part['needs']> = {
  records_unaccounted: () => ['See the jobs', screenHref('/jobs')],
  jobs_failed: (job) =>
    job === null
      ? ['See them', screenHref('/jobs', { status: 'failed', since: dayAgo() })]
      : ['See why', jobHref(job)],
  loads_held: (job) =>
    job === null ? ['Decide', screenHref('/jobs', { status: 'held' })] : ['See why', jobHref(job)],
  records_refused: (job) => [
    'Correct them',
    job === null ? screenHref('/jobs', { has_rejects: 'true' }) : refusedHref(job),
  ],
  ...Object.fromEntries(parts.flatMap(({ needs = {} }) => Object.entries(needs))),
};
const ofJobs: readonly NeedKind[] = ['jobs_failed', 'loads_held'];

interface Line {
  readonly key: string;
  readonly isBad: boolean;
  readonly says: string;
  readonly place?: ReturnType<NeedPlace> | null | undefined;
  /** The job whose buttons the page shows next to the sentence. */
  readonly job?: string | null;
}

function serviceLines({ health, findings, work }: OverviewRecord): readonly Line[] {
  const unavailable = Object.entries(health.parts).flatMap(([part, state]) => (state === 'away' ? part : []));
  const lacks = unavailable.length === 0 ? '' : `: ${unavailable.join(' and ')} away`;
  const down = `The service is ${health.status.replace('_', ' ')}${lacks}`;
  const hidden = `${plural(findings.failed, 'health check')} failed: the operator of the service sees which`;
  return [
    ...(health.status === 'ready' ? [] : [{ key: 'health', isBad: true, says: down }]),
    ...(findings.failed > 0 && findings.items.length === 0
      ? [{ key: 'findings', isBad: true, says: hidden }]
      : []),
    ...findings.items
      .filter(({ status }) => status === 'failed')
      .map(({ check, found, advice }, at) => ({
        key: `${check} ${at}`,
        isBad: true,
        says: `${check}: ${found}${advice === null ? '' : `. ${advice}`}`,
      })),
    ...work.failing.map(({ task, part, job_id, failures, last_error }): Line => {
      const what = task === 'chunk' ? `Chunk ${formatCount(part)} of a load` : `The task ${task}`;
      return {
        key: `${task} ${job_id} ${part}`,
        isBad: false,
        says: `${what} is being retried after ${plural(failures, 'failure')}: ${last_error ?? 'its worker was lost'}`,
        place: job_id === null ? null : ['See the job', jobHref(job_id)],
      };
    }),
  ];
}

interface NeedsProps {
  readonly of: OverviewRecord;
  readonly onDone: () => void;
}

function Needs({ of, onDone }: NeedsProps): VNode {
  const lines: readonly Line[] = [
    ...serviceLines(of),
    ...of.needs.map(({ kind, status, subject, says }) => ({
      key: kind,
      isBad: status === 'failed',
      says,
      place: places[kind]?.(subject),
      job: ofJobs.includes(kind) ? subject : null,
    })),
  ].toSorted((a, b) => Number(b.isBad) - Number(a.isBad));
  if (lines.length === 0)
    return (
      <Notice look="good" role="status">
        Nothing needs you
      </Notice>
    );
  return (
    <section class="panel" aria-label="What needs you">
      <ul>
        {lines.map(({ key, isBad, says, place, job }) => (
          <li key={key} class="row line need">
            <Badge tone={isBad ? 'bad' : 'warn'}>{isBad ? 'wrong' : 'to do'}</Badge>
            <span class="break">{visibleText(says)}</span>
            {place == null ? null : (
              <a class="button" href={place[1]}>
                {place[0]}
              </a>
            )}
            {job == null ? null : <ActsOf key={job} id={job} onDone={onDone} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ActsOf({ id, onDone }: { readonly id: string } & Pick<NeedsProps, 'onDone'>): VNode | null {
  const { data } = useApi<JobDetail>(jobPath(id));
  return data === undefined ? null : <JobActs job={data} onDone={onDone} />;
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' });
const calendar = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const periods: Readonly<Record<string, readonly [text: string, words: string, form: Intl.DateTimeFormat]>> = {
  '1h': ['1 h', 'hour', clock],
  '24h': ['24 h', '24 hours', clock],
  '30d': ['30 d', '30 days', calendar],
};

interface RatesProps {
  readonly of: OverviewRecord;
  readonly query: Query;
  readonly period: string;
}

/** Rates per minute, averaged over each step. */
function Rates({ of: { rates, rate_minutes: minutes }, query, period }: RatesProps): VNode {
  const [, words, form] = periods[period] ?? ['', period, clock];
  const bars = rates.map(({ begins_at, accepted, unchanged, rejected }) => {
    const values = [accepted, unchanged, rejected];
    const title = `${formatTime(begins_at)}: ${values.map(formatCount).join(', ')}`;
    return { at: begins_at, values, title };
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
        axis={[bars[0], bars[bars.length / 2], bars.at(-1)].map(
          (bar) => bar && form.format(new Date(bar.at)),
        )}
        bars={bars}
      />
    </Section>
  );
}

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

const shownJobs = 12;
const shownColumns = ['Job', 'State', 'Records', 'Accepted'];

function LatestJobs({ underWay }: { readonly underWay: number }): VNode {
  const jobs = useJobs({});
  return (
    <List
      title="Jobs"
      aside={
        underWay === 0 ? (
          <a href={screenHref('/jobs')}>All</a>
        ) : (
          <a href={screenHref('/jobs', { status: 'queued,processing' })}>
            {plural(underWay, 'job is', 'jobs are')} under way
          </a>
        )
      }
      of={{ ...jobs, data: jobs.data?.items.slice(0, shownJobs) }}
      caption="Jobs that run, then the latest"
      columns={jobColumns.filter(([title]) => shownColumns.includes(String(title)))}
      keyOf={({ job_id }) => job_id}
      hrefOf={({ job_id }) => jobHref(job_id)}
      empty={
        <Empty title="Nothing has run here yet">
          <WayIn />
        </Empty>
      }
    />
  );
}
