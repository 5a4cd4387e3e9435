import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../lib/api.ts';
import { formatCount, formatShort, plural } from '../../lib/format.ts';
import { type LiveEvent, live, useLive } from '../../lib/live.ts';
import { screenHref } from '../../lib/place.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge } from '../../ui/badge.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Page, Section } from '../../ui/page.tsx';
import { Plot } from '../../ui/plot.tsx';
import { Loading, Problems } from '../../ui/problems.tsx';
import { Time } from '../../ui/time.tsx';
import { dayAgo, Findings, Health, Needs } from './health.tsx';
import { Lane } from './lane.tsx';
import type { Minute, Overview, RunningJob } from './overview.ts';
import { Work } from './work.tsx';

const everyMs = 10_000;
const dayMs = 86_400_000;

interface PulseEvent extends LiveEvent {
  readonly queued: number;
  readonly running: readonly RunningJob[];
}

/** What the environment is at, and whether anything is wrong. */
export function Pulse(): VNode {
  const overview = useData('/v1/overview', (signal) => api<Overview>('/v1/overview', { signal }), {
    everyMs,
  });
  const [now, setNow] = useState<PulseEvent | null>(null);
  const { reload } = overview;
  useLive<PulseEvent>('pulse', (event) => {
    // Whatever began or ended has changed the lane too.
    if (now !== null && idsOf(now) !== idsOf(event)) reload();
    setNow(event);
  });
  const { data } = overview;
  return (
    <Page title="Pulse" aside={data === undefined ? null : <Health of={data.health} />}>
      <Problems error={overview.error} onRetry={overview.reload} />
      {live.value.staleSince === null ? null : (
        <p class="notice">
          <Icon name="warning" />
          <span>
            The ledger has not answered since <Time at={live.value.staleSince} />: what is shown is older.
          </span>
        </p>
      )}
      {data === undefined ? (
        overview.error === null ? (
          <Loading rows={10} />
        ) : null
      ) : (
        <>
          <Needs of={data} />
          <Figures
            of={data}
            queued={now?.queued ?? data.queued}
            running={now?.running.length ?? data.processing}
          />
          <div class="columns">
            <Rate
              title="Single records"
              minutes={data.minutes}
              ink="--inserted"
              of={({ records }) => records}
              beside={refusedText(data.minutes)}
            />
            <Rate title="Rows of files" minutes={data.minutes} ink="--updated" of={({ rows }) => rows} />
          </div>
          <Lane items={data.lane} running={now?.running ?? []} />
          <Work of={data.work} queue={data.queue} />
          <Findings of={data.findings} server={data.server} />
        </>
      )}
    </Page>
  );
}

function idsOf({ running, queued }: PulseEvent): string {
  return `${queued} ${running.map(({ job_id }) => job_id).join(' ')}`;
}

interface FiguresProps {
  readonly of: Overview;
  readonly queued: number;
  readonly running: number;
}

/** Numbers, each of which leads to its list. */
function Figures({ of, queued, running }: FiguresProps): VNode {
  return (
    <dl class="figures panel pulse-figures">
      <div class={of.unaccounted === 0 ? 'pulse-zero' : 'pulse-zero pulse-wrong'}>
        <dt>Records unaccounted for</dt>
        <dd>{formatCount(of.unaccounted)}</dd>
        <dd class="pulse-hint">{of.unaccounted === 0 ? 'must be 0' : 'must be 0: look at the jobs'}</dd>
      </div>
      <Figure title="Running" count={running} href={screenHref('/jobs', { status: 'processing' })} />
      <Figure title="Waiting" count={queued} href={screenHref('/jobs', { status: 'queued' })} />
      <Figure
        title="Failed in 24 hours"
        count={of.failed_24h}
        href={screenHref('/jobs', { status: 'failed', since: dayAgo() })}
        isBad={of.failed_24h > 0}
      />
      <Due />
    </dl>
  );
}

interface FigureProps {
  readonly title: string;
  readonly count: number | null;
  readonly href: string;
  readonly isBad?: boolean;
}

function Figure({ title, count, href, isBad = false }: FigureProps): VNode {
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <a href={href}>
          {count === null ? '–' : formatCount(count)}
          <span class="visually-hidden">: {title}</span>
        </a>
        {isBad ? (
          <>
            {' '}
            <Badge tone="bad">look</Badge>
          </>
        ) : null}
      </dd>
    </div>
  );
}

interface Schedules {
  readonly data: readonly { readonly due_times: readonly string[] }[];
}

/** Due times of all schedules in the 24 hours to come. */
function Due(): VNode {
  const { data } = useData('/v1/schedules', (signal) => api<Schedules>('/v1/schedules', { signal }), {
    everyMs: 60_000,
  });
  const until = Date.now() + dayMs;
  const due = data?.data.flatMap(({ due_times }) => due_times).filter((at) => Date.parse(at) <= until);
  return <Figure title="Due in 24 hours" count={due?.length ?? null} href={screenHref('/schedules')} />;
}

interface RateProps {
  readonly title: string;
  readonly minutes: readonly Minute[];
  readonly ink: string;
  readonly of: (minute: Minute) => number;
  readonly beside?: string;
}

/** Of the last hour, per second in the mean of each minute. */
function Rate({ title, minutes, ink, of, beside }: RateProps): VNode {
  // The last minute is not over.
  const whole = minutes.slice(0, -1);
  const perSecond = whole.map((minute) => of(minute) / 60);
  const total = minutes.reduce((sum, minute) => sum + of(minute), 0);
  const most = Math.max(0, ...perSecond);
  const words = `${title}, the last hour: ${formatCount(total)} in total, at most ${formatShort(most)} a second`;
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
        Per second, averaged over each minute; at most {formatShort(most)}.
        {beside === undefined ? '' : ` ${beside}`}
      </p>
    </Section>
  );
}

function refusedText(minutes: readonly Minute[]): string {
  const refused = minutes.reduce((sum, minute) => sum + minute.refused, 0);
  return refused === 0 ? 'None was refused.' : `${plural(refused, 'record was', 'records were')} refused.`;
}
