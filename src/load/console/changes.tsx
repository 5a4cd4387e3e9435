import type { VNode } from 'preact';
import { apiHref } from '../../console/client/lib/address.ts';
import { useApi } from '../../console/client/lib/data.ts';
import { formatCount, plural, visibleText } from '../../console/client/lib/format.ts';
import { jobPath } from '../../console/client/lib/jobs.ts';
import { Bars, barOf, sumOf } from '../../console/client/ui/drawings.tsx';
import { type Column, List } from '../../console/client/ui/list.tsx';
import { Badge, Loaded, Section, VisibleText } from '../../console/client/ui/page.tsx';
import { Value } from '../../console/client/ui/properties.tsx';
import type { Plan } from '../api.ts';

export function Changes({ jobId }: { readonly jobId: string }): VNode {
  const path = `${jobPath(jobId)}/plan`;
  const plan = useApi<Plan>(path);
  return (
    <Loaded of={plan} rows={3}>
      {({ profiles, applied_at, properties, more_properties: more, events, sample }) => (
        <>
          {events.names.length === 0 ? null : <Events of={events} />}
          <List
            title="Plan"
            aside={more === 0 ? null : <span class="hint">and {formatCount(more)} more properties</span>}
            of={properties}
            caption="Values that would change, by property"
            columns={propertyColumns}
            empty="No value would change"
          >
            <p class="line muted">
              {profilesText(profiles.users, 'user')},{' '}
              {profilesText(profiles.companies, 'company', 'companies')}.
              {applied_at === null ? ' Nothing has been written.' : ''}
            </p>
          </List>
          {sample.length === 0 ? null : (
            <List
              title={`Before → after, ${plural(sample.length, 'row')} of those that change`}
              aside={
                <a class="button button-quiet" href={apiHref(`${path}?format=csv`)} download>
                  All as CSV
                </a>
              }
              of={sample.flatMap(linesOf)}
              columns={lineColumns}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

const dayMs = 86_400_000;
/** Maximum number of bars. If there are more dates, each bar covers several days. */
const mostDayBars = 60;
const mostNames = 20;

function Events({ of }: { readonly of: Plan['events'] }): VNode {
  const { names, more_names, days, earlier_days: earlier } = of;
  const total = sumOf(days.map(({ count }) => count));
  const [first = '', last = ''] = [days[0]?.day, days.at(-1)?.day];
  const place = (day: string): number => (Date.parse(day) - Date.parse(first)) / dayMs;
  const daysPerBar = Math.ceil((place(last) + 1) / mostDayBars);
  const bars = Map.groupBy(days, ({ day }) => Math.floor(place(day) / daysPerBar));
  const more = names.length - mostNames + more_names;
  return (
    <>
      <Section
        title="New events by day"
        aside={earlier === 0 ? null : <span class="hint">and {plural(earlier, 'earlier day')}</span>}
      >
        <Bars
          label={`from ${first} to ${last}`}
          parts={[['events', '--inserted']]}
          axis={[first, 'UTC', last]}
          bars={Array.from({ length: Math.floor(place(last) / daysPerBar) + 1 }, (_, at) => {
            const begins = new Date(Date.parse(first) + at * daysPerBar * dayMs).toISOString().slice(0, 10);
            const value = sumOf((bars.get(at) ?? []).map(({ count }) => count));
            const span = daysPerBar === 1 ? '' : ` and ${plural(daysPerBar - 1, 'day')} more`;
            return { values: [value], title: `${begins}${span}: ${plural(value, 'event')}` };
          })}
        />
      </Section>
      <List
        title={plural(total, 'new event')}
        aside={more <= 0 ? null : <span class="hint">and {plural(more, 'more name')}</span>}
        of={names.slice(0, mostNames)}
        columns={[
          ['Event', ({ name }) => <VisibleText text={name} />],
          ['New', ({ count }) => barOf(count, total, formatCount(count)), 'num'],
        ]}
      />
    </>
  );
}

function profilesText(
  { new: added, changed, removed }: Plan['profiles']['users'],
  one: string,
  many = `${one}s`,
): string {
  const gone = removed === 0 ? '' : `, ${formatCount(removed)} removed`;
  return `${formatCount(added)} new and ${formatCount(changed)} changed ${added + changed === 1 ? one : many}${gone}`;
}

const propertyColumns: readonly Column<Plan['properties'][number]>[] = [
  [
    'Property',
    ({ name, is_new }) => (
      <span class="row">
        <VisibleText text={name} />
        {is_new ? <Badge tone="busy">new property</Badge> : null}
      </span>
    ),
  ],
  ['Of', ({ entity }) => <span class="muted">{entity}</span>, 'minor'],
  ['Added', ({ appear }) => figure(appear), 'num'],
  ['Changed', ({ change }) => figure(change), 'num'],
  ['Removed', ({ go }) => figure(go), 'num'],
  ['Type changed', ({ change_type }) => figure(change_type), 'num minor'],
];

function figure(count: number): VNode {
  return <span class={count === 0 ? 'faint' : undefined}>{formatCount(count)}</span>;
}

interface Line {
  /** ID of the profile. Empty if the row above shows the same id. */
  readonly id: string;
  readonly property: string;
  readonly before: unknown;
  readonly after: unknown;
}

function linesOf(row: Plan['sample'][number]): Line[] {
  const { id, before, after, company_before, company_after } = row;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after ?? {})])];
  const pairs: [string, unknown, unknown][] = names.map((name) => [name, before[name], after?.[name]]);
  if (company_before !== company_after) pairs.unshift(['company', company_before, company_after]);
  if (after === null) pairs.unshift(['removed', undefined, true]);
  return pairs.map(([property, oldValue, newValue], at) => ({
    id: at === 0 ? id : '',
    property,
    before: oldValue,
    after: newValue,
  }));
}

const lineColumns: readonly Column<Line>[] = [
  ['Id', ({ id }) => <code>{visibleText(id)}</code>],
  ['Property', ({ property }) => <VisibleText text={property} />],
  ['Before', ({ before }) => <span class="bad break">{<Value of={before} />}</span>],
  ['After', ({ after }) => <span class="good break">{<Value of={after} />}</span>],
];
