import type { VNode } from 'preact';
import type { Activity } from '../../../../api/event.ts';
import { useQuery, withQuery } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatCount, formatShare, plural, timeZone, visibleText } from '../../lib/format.ts';
import { useData } from '../../lib/use-data.ts';
import { Choices } from '../../ui/field.tsx';
import { Section } from '../../ui/page.tsx';
import { Empty, Loaded } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/text.tsx';
import type { Entity } from './profile-record.ts';

const ranges = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
] as const;

/** Shows the events of a user or company, by day in the reader's zone, and by name. */
export function ActivityPanel({ entity, id }: { readonly entity: Entity; readonly id: string }): VNode {
  const query = useQuery();
  const days = query.get('days') || '30';
  const path = withQuery(`/v1/${entity}/${encodeURIComponent(id)}/activity`, { days, time_zone: timeZone });
  const activity = useData(path, (signal) => api<Activity>(path, { signal }));
  return (
    <Section
      title="Events by day"
      aside={
        <Choices
          label="Days shown"
          isLabelHidden
          value={days}
          options={ranges}
          onChange={(value) => query.set({ days: value === '30' ? undefined : value }, { replace: true })}
        />
      }
    >
      {activity.error?.status === 404 ? (
        <Empty title="No events" />
      ) : (
        <Loaded of={activity} rows={4}>
          {(data) => <Sums of={data} days={Number(days)} isCompany={entity === 'companies'} />}
        </Loaded>
      )}
    </Section>
  );
}

interface SumsProps {
  readonly of: Activity;
  readonly days: number;
  readonly isCompany: boolean;
}

function Sums({ of, days, isCompany }: SumsProps): VNode {
  if (of.events === 0 && isCompany) {
    return (
      <Empty title="No event names this company">
        Events count here if they carry its company_id. Events that only name a user are on the page of that
        user.
      </Empty>
    );
  }
  if (of.events === 0) return <Empty title="No events" />;
  return (
    <div class="stack">
      <DayBars of={of.days} days={days} />
      <p class="muted">
        {of.is_complete ? '' : 'The latest '}
        {plural(of.events, 'event')}
        {of.is_complete ? ' in all' : '; there are more'}, the first <Time at={of.first_event_at} ago />, the
        last <Time at={of.last_event_at} ago />.{' '}
        {of.archived_until === null ? null : (
          <>
            Events before <Time at={of.archived_until} /> may be in archives, which are not counted.
          </>
        )}
      </p>
      <Table
        caption="Events by name, the most frequent first"
        columns={nameColumns(of.events)}
        rows={of.event_names}
        keyOf={({ event_name }) => event_name}
      />
    </div>
  );
}

function nameColumns(total: number): readonly Column<Activity['event_names'][number]>[] {
  return [
    { title: 'Event', cell: ({ event_name }) => <span class="break">{visibleText(event_name)}</span> },
    { title: 'Count', is: 'num', cell: ({ events }) => formatCount(events) },
    { title: 'Share', is: 'num minor', cell: ({ events }) => formatShare(events, total) },
    { title: 'Last', is: 'num', cell: ({ last_at }) => <Time at={last_at} ago /> },
  ];
}

const height = 64;
const step = 10;

/** Draws a bar for each day, today at the right. */
function DayBars({ of, days }: { readonly of: Activity['days']; readonly days: number }): VNode {
  const all = lastDays(days);
  const counts = new Map(of.map(({ day, events }) => [day, events]));
  const most = Math.max(1, ...of.map(({ events }) => events));
  const sum = of.reduce((total, { events }) => total + events, 0);
  return (
    <figure class="bars">
      <svg
        viewBox={`0 0 ${all.length * step} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${plural(sum, 'event')} in ${days} days, ${formatCount(most)} on the busiest`}
      >
        {all.map((day, at) => {
          const count = counts.get(day) ?? 0;
          const tall = count === 0 ? 1 : Math.max(3, (count / most) * height);
          return (
            <rect
              key={day}
              class={count === 0 ? 'bar-none' : 'bar'}
              x={at * step + step * 0.12}
              y={height - tall}
              width={step * 0.76}
              height={tall}
            >
              <title>{`${day}: ${plural(count, 'event')}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption class="faint num">
        <span>{all[0]}</span>
        <span>{timeZone}</span>
        <span>{all.at(-1)}</span>
      </figcaption>
    </figure>
  );
}

/** Returns the last days in the reader's zone, as the API writes days. */
function lastDays(count: number): string[] {
  const form = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });
  const today = new Date();
  return Array.from({ length: count }, (_, at) => {
    const day = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (count - 1 - at), 12);
    return form.format(day);
  });
}
