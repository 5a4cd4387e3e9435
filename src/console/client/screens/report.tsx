import type { VNode } from 'preact';
import type { Report as Made } from '../../../api/report.ts';
import { apiHref, useApi, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, plural, visibleText } from '../lib/format.ts';
import { InputField } from '../ui/controls.tsx';
import { Loaded, Page } from '../ui/page.tsx';
import { type Column, Table } from '../ui/table.tsx';

const names: readonly Column<Made['event_names'][number]>[] = [
  ['Event', ({ event_name }) => visibleText(event_name)],
  ['Events', ({ events }) => formatCount(events), 'num'],
];

/** Shows what is stored, to be compared with what another product counts. */
export function Report(): VNode {
  const query = useQuery();
  const range = { from: query.get('from') || undefined, to: query.get('to') || undefined };
  const made = useApi<Made>(withQuery('/v1/report', range));
  const set = (change: Partial<typeof range>): void => query.set({ ...range, ...change });
  return (
    <Page title="Report">
      <div class="row row-fields">
        <InputField label="From" type="date" value={range.from ?? ''} onInput={(from) => set({ from })} />
        <InputField label="To, included" type="date" value={range.to ?? ''} onInput={(to) => set({ to })} />
        <a class="button button-quiet" href={apiHref(withQuery('/v1/report', { ...range, format: 'csv' }))}>
          Days as CSV
        </a>
      </div>
      <Loaded of={made} rows={6}>
        {({ events, users, companies, event_names }) => (
          <div class="stack">
            <p>
              {plural(events, 'event')} of {plural(users.with_events, 'user')},{' '}
              {formatCount(users.without_profile)} of them without a profile.{' '}
              {plural(users.profiles, 'user profile')}, {formatCount(users.with_company)} with a company and{' '}
              {formatCount(users.without_company)} without.{' '}
              {companies === 1 ? '1 company.' : `${formatCount(companies)} companies.`}
            </p>
            <div class="panel">
              <Table
                caption="Events by name, the most frequent first"
                columns={names}
                rows={event_names}
                keyOf={({ event_name }) => event_name}
                empty="No events"
              />
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}
