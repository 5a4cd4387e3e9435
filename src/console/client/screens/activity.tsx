import type { VNode } from 'preact';
import type { Activity } from '../../../api/profile.ts';
import { useApi, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, formatShare, plural, timeZone, visibleText } from '../lib/format.ts';
import { Choices } from '../ui/controls.tsx';
import { Bars } from '../ui/drawings.tsx';
import { Empty, Loaded, Section, Time } from '../ui/page.tsx';
import { type Column, Table } from '../ui/table.tsx';

const ranges = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
] as const;

/** Shows the events of the user or company at this path of the API, by day in the reader's zone, and by name. */
export function ActivityPanel(props: { readonly of: string; readonly isCompany: boolean }): VNode {
  const { of: own, isCompany } = props;
  const query = useQuery();
  const days = query.get('days') || '30';
  const path = withQuery(`${own}/activity`, { days, time_zone: timeZone });
  const activity = useApi<Activity>(path);
  return (
    <Section
      title="Events by day"
      aside={
        <Choices
          label="Days shown"
          isLabelHidden
          value={days}
          options={ranges}
          onChange={(value) => query.set({ days: value === '30' ? undefined : value })}
        />
      }
    >
      <Loaded of={activity} rows={4} none={<Empty title="No events" />}>
        {(data) => <Sums of={data} days={Number(days)} isCompany={isCompany} />}
      </Loaded>
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
        last <Time at={of.last_event_at} ago />.
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
    ['Event', ({ event_name }) => <span class="break">{visibleText(event_name)}</span>],
    ['Count', ({ events }) => formatCount(events), 'num'],
    ['Share', ({ events }) => formatShare(events, total), 'num minor'],
    ['Last', ({ last_at }) => <Time at={last_at} ago />, 'num'],
  ];
}

/** The API writes days as the Canadians do. */
const dayForm = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });

/** Draws a bar for each of the last days, today at the right. */
function DayBars({ of, days }: { readonly of: Activity['days']; readonly days: number }): VNode {
  const today = new Date();
  const counts = new Map(of.map(({ day, events }) => [day, events]));
  const all = Array.from({ length: days }, (_, at) =>
    dayForm.format(new Date(today.getFullYear(), today.getMonth(), today.getDate() - (days - 1 - at), 12)),
  );
  const most = Math.max(1, ...counts.values());
  return (
    <Bars
      label={`in ${days} days, ${formatCount(most)} on the busiest`}
      parts={[['events', '--accent-strong']]}
      axis={[all[0], timeZone, all.at(-1)]}
      bars={all.map((day) => {
        const value = counts.get(day) ?? 0;
        return { values: [value], title: `${day}: ${plural(value, 'event')}` };
      })}
    />
  );
}
