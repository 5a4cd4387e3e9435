import type { VNode } from 'preact';
import { type Query, useQuery, withQuery } from '../../../console/client/lib/address.ts';
import { session } from '../../../console/client/lib/api.ts';
import { useApiPage } from '../../../console/client/lib/data.ts';
import { formatCount, visibleText } from '../../../console/client/lib/format.ts';
import { FilterText } from '../../../console/client/ui/controls.tsx';
import { ClearFilters, type Column, List } from '../../../console/client/ui/list.tsx';
import { Badge, Empty, Page, Time, TwoLines } from '../../../console/client/ui/page.tsx';
import type { AuditEntry } from '../api.ts';

const filters = ['actor', 'thing', 'action', 'since'] as const;

export function Audit(): VNode {
  const query = useQuery();
  return (
    <Page title="Audit">
      {session.value?.is_admin === true ? (
        <Entries query={query} />
      ) : (
        <div class="panel">
          <Empty title="The audit log is for administrators">
            Sign in with ADMIN_KEY, or by the link that the service prints when it starts.
          </Empty>
        </div>
      )}
    </Page>
  );
}

function Entries({ query }: { readonly query: Query }): VNode {
  const given = query.given(filters);
  const isFiltered = Object.keys(given).length > 0;
  const entries = useApiPage<AuditEntry>(withQuery('/v1/audit', { ...given, cursor: query.get('cursor') }));
  return (
    <>
      <search class="row filters">
        <FilterText label="Person or key" placeholder="name or id" {...query.filter('actor')} />
        <FilterText label="Thing" placeholder="id or name" {...query.filter('thing')} />
        <FilterText label="Action" placeholder="key, load.accepted" {...query.filter('action')} />
        <FilterText label="Since" type="date" {...query.filter('since')} />
        <ClearFilters names={filters} />
        <a
          class="button"
          href={withQuery('/v1/audit', { ...given, format: 'ndjson' })}
          download="audit.ndjson"
        >
          Download
        </a>
      </search>
      <List
        of={entries}
        one="entry"
        caption="What was done, newest first"
        columns={columns(query)}
        keyOf={({ id }) => id}
        empty={
          <Empty title={isFiltered ? 'No entry matches' : 'Nothing is recorded'}>
            {isFiltered
              ? 'Change or clear the filters above.'
              : 'Keys, settings, jobs, downloads and sign-ins are listed here, unless AUDIT_DAYS is 0.'}
          </Empty>
        }
      />
    </>
  );
}

function columns(query: Query): readonly Column<AuditEntry>[] {
  const only = (name: (typeof filters)[number], text: string): VNode => (
    <a href={query.href({ [name]: text, cursor: undefined })}>{visibleText(text)}</a>
  );
  return [
    ['At', ({ last_at }) => <Time at={last_at} />, 'num'],
    [
      'Who',
      ({ actor: { kind, name, address } }) => (
        <TwoLines below={address === null ? null : visibleText(address)}>
          {name === null ? kind.replaceAll('_', ' ') : only('actor', name)}
        </TwoLines>
      ),
    ],
    [
      'Action',
      ({ action, outcome, count }) => (
        <TwoLines below={count === 1 ? null : `${formatCount(count)} times in an hour`}>
          {outcome === 'refused' ? <Badge tone="bad">{action}</Badge> : action}
        </TwoLines>
      ),
    ],
    ['Thing', ({ thing }) => (thing === null ? '–' : only('thing', thing))],
    ['Details', ({ details }) => <span class="muted break">{visibleText(detailsOf(details))}</span>, 'minor'],
  ];
}

function detailsOf(details: AuditEntry['details']): string {
  return Object.entries(details)
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${String(value)}`)
    .join(', ');
}
