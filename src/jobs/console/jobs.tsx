import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { type Query, useQuery, withQuery } from '../../console/client/lib/address.ts';
import type { Page as PageOf } from '../../console/client/lib/api.ts';
import { type Loaded, pollMs, useApiPage } from '../../console/client/lib/data.ts';
import { formatCount, formatMs, visibleText } from '../../console/client/lib/format.ts';
import { jobHref, originText, workMs } from '../../console/client/lib/jobs.ts';
import { Button, FilterText, type Options, SelectField } from '../../console/client/ui/controls.tsx';
import { ClearFilters, type Column, List } from '../../console/client/ui/list.tsx';
import { Empty, Page, StatusBadge, Time } from '../../console/client/ui/page.tsx';
import { loadStatuses } from '../../domain/load.ts';
import type { JobListItem } from '../../http/job.ts';
import { BalanceBar } from '../../load/console/balance.tsx';
import { jobTypeNames } from './job-types.ts';

export const jobColumns: readonly Column<JobListItem>[] = [
  ['Job', ({ filename }) => <span class="name">{visibleText(filename)}</span>],
  ['Type', ({ type }) => jobTypeNames[type] ?? type, 'minor'],
  ['State', ({ status }) => <StatusBadge status={status} />],
  ['Records', recordsOf, 'num'],
  ['Started by', ({ origin }) => <span class="muted break">{originText(origin)}</span>, 'minor'],
  ['Accepted', ({ start_time }) => <Time at={start_time} />, 'num minor'],
  ['Took', (job) => formatMs(workMs(job)), 'num minor'],
];

function recordsOf({ total_rows: total, counts }: JobListItem): VNode {
  const rejected = counts?.['rejected'] ?? 0;
  return (
    <span class="row job-records">
      {rejected > 0 ? <span class="bad">{formatCount(rejected)} rejected</span> : null}
      <span>{formatCount(total)}</span>
      {counts?.['read'] === undefined ? (
        <span class="balance-bar" />
      ) : (
        <BalanceBar counts={counts} total={total} />
      )}
    </span>
  );
}

const rareFilters = ['until', 'sha256', 'key', 'request_id'] as const;
/** Parameters of both the API and the page's address. */
const jobFilters = ['type', 'status', 'has_rejects', 'since', 'filename', ...rareFilters] as const;

/** Running jobs come first, then the others, newest first. */
export function useJobs(filter: Readonly<Record<string, string>>, cursor = ''): Loaded<PageOf<JobListItem>> {
  const { status, ...others } = filter;
  const jobs = useApiPage<JobListItem>(withQuery('/v1/background_jobs', { ...filter, cursor }), pollMs);
  const isFirst = cursor === '' && status === undefined;
  const runningPath = withQuery('/v1/background_jobs', { ...others, status: 'processing', limit: 100 });
  const running = useApiPage<JobListItem>(isFirst ? runningPath : null, pollMs);
  const first = isFirst ? (running.data?.items ?? []) : [];
  const runningIds = new Set(first.map(({ job_id }) => job_id));
  const { data } = jobs;
  if (data === undefined) return jobs;
  const rest = data.items.filter(({ job_id }) => !runningIds.has(job_id));
  return { ...jobs, data: { ...data, items: [...first, ...rest] } };
}

export function Jobs(): VNode {
  const query = useQuery();
  const filter = query.given(jobFilters);
  const isFiltered = Object.keys(filter).length > 0;
  const jobs = useJobs(filter, query.get('cursor'));
  return (
    <Page title="Jobs">
      <Filters query={query} />
      <List
        of={jobs}
        one="job"
        caption="Jobs: those that run, then the others, newest first"
        columns={jobColumns}
        keyOf={({ job_id }) => job_id}
        hrefOf={({ job_id }) => jobHref(job_id)}
        empty={
          <Empty title={isFiltered ? 'No job matches' : 'Nothing has run here yet'}>
            {isFiltered
              ? 'Change or clear the filters above.'
              : 'Loads, exports and deletions of this environment are listed here, however they are started.'}
          </Empty>
        }
      />
    </Page>
  );
}

/** An entry in the list of states that is not a state of jobs. */
const withRefused = 'with_refused';
const states: Options = [
  ['', 'All'],
  ['queued,processing', 'under way'],
  ...loadStatuses.map((status) => [status, status] as const),
  [withRefused, 'with refused records'],
];

function Filters({ query }: { readonly query: Query }): VNode {
  const [isMore, setMore] = useState(rareFilters.some((name) => query.get(name) !== ''));
  const filterOf = query.filter;
  const dayOf = (name: string) => ({
    ...filterOf(name),
    value: query.get(name).slice(0, 10),
    type: 'date' as const,
  });
  const chooseState = (state: string): void => {
    const isRefused = state === withRefused;
    const change = { status: isRefused ? '' : state, has_rejects: isRefused ? 'true' : undefined };
    query.go({ ...change, cursor: undefined, row: undefined });
  };
  return (
    <search class="row filters">
      <FilterText label="File" placeholder="part of its name" {...filterOf('filename')} />
      <SelectField
        label="Type"
        options={[['', 'All'], ...Object.entries(jobTypeNames)]}
        {...filterOf('type')}
      />
      <SelectField
        label="State"
        options={states}
        value={query.get('has_rejects') === '' ? query.get('status') : withRefused}
        onChange={chooseState}
      />
      <FilterText label="Since" {...dayOf('since')} />
      {isMore ? (
        <>
          <FilterText label="Until" {...dayOf('until')} />
          <FilterText label="SHA-256" {...filterOf('sha256')} />
          <FilterText label="Key" placeholder="id of a key" {...filterOf('key')} />
          <FilterText label="Request" {...filterOf('request_id')} />
        </>
      ) : (
        <Button look="quiet" onClick={() => setMore(true)}>
          More filters
        </Button>
      )}
      <ClearFilters names={jobFilters} />
    </search>
  );
}
