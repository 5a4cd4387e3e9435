import type { VNode } from 'preact';
import { apiPage, withQuery } from '../lib/api.ts';
import { formatBytes, formatCount, formatMs, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { StatusBadge } from '../ui/badge.tsx';
import { FilterSelect, FilterText } from '../ui/field.tsx';
import { Page } from '../ui/page.tsx';
import { Pager } from '../ui/pager.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { type JobItem, jobTypeNames } from './job-record.ts';

const pollMs = 2_000;

const columns: readonly Column<JobItem>[] = [
  {
    id: 'name',
    title: 'Job',
    cell: (job) => (
      <span class="job-name">
        <span>{visibleText(job.filename)}</span>
      </span>
    ),
  },
  {
    id: 'type',
    title: 'Type',
    isMinor: true,
    cell: (job) => <span class="job-type">{jobTypeNames[job.type] ?? job.type}</span>,
  },
  { id: 'status', title: 'State', cell: (job) => <StatusBadge status={job.status} /> },
  { id: 'rows', title: 'Rows', isNumber: true, cell: (job) => formatCount(job.total_rows) },
  { id: 'size', title: 'Size', isNumber: true, isMinor: true, cell: (job) => formatBytes(job.file_size) },
  { id: 'start', title: 'Accepted', isNumber: true, cell: (job) => <Time at={job.start_time} /> },
  {
    id: 'took',
    title: 'Took',
    isNumber: true,
    isMinor: true,
    cell: (job) => formatMs(tookMs(job)),
  },
];

function tookMs({ start_time, end_time, elapsed_time }: JobItem): number {
  return end_time === null ? elapsed_time * 1_000 : Date.parse(end_time) - Date.parse(start_time);
}

/** Loads, exports and deletions: one list, newest first. */
export function Jobs(): VNode {
  const query = useQuery();
  const path = withQuery('/v1/background_jobs', {
    type: query.get('type'),
    status: query.get('status'),
    since: query.get('since'),
    cursor: query.get('cursor'),
  });
  const jobs = useData(path, (signal) => apiPage<JobItem>(path, { signal }), { everyMs: pollMs });
  const isFiltered = ['type', 'status', 'since'].some((name) => query.get(name) !== '');
  const filter = (name: string) => (value: string) =>
    query.set({ [name]: value, cursor: undefined, row: undefined });
  return (
    <Page title="Jobs">
      <search class="filters">
        <FilterSelect
          label="Type"
          value={query.get('type')}
          options={[['', 'All'], ...Object.entries(jobTypeNames)]}
          onChange={filter('type')}
        />
        <FilterSelect
          label="State"
          value={query.get('status')}
          options={[
            ['', 'All'],
            ...['queued', 'processing', 'completed', 'failed', 'cancelled'].map(
              (each) => [each, each] as const,
            ),
          ]}
          onChange={filter('status')}
        />
        <FilterText label="Since" type="date" value={query.get('since')} onChange={filter('since')} />
        {isFiltered ? (
          <a class="button button-quiet" href={query.href({ type: '', status: '', since: '', cursor: '' })}>
            Clear
          </a>
        ) : null}
      </search>
      <Problems error={jobs.error} onRetry={jobs.reload} />
      <div class="panel">
        {jobs.data === undefined ? (
          <Loading rows={12} />
        ) : jobs.data.items.length === 0 ? (
          <Empty title={isFiltered ? 'No job matches' : 'Nothing has run here yet'} />
        ) : (
          <>
            <Table
              caption="Jobs, newest first"
              columns={columns}
              rows={jobs.data.items}
              keyOf={({ job_id }) => job_id}
              hrefOf={({ job_id }) => screenHref(`/jobs/${job_id}`)}
              selected={query.get('row')}
              onSelect={(row) => query.set({ row }, { replace: true })}
            />
            <Pager page={jobs.data} noun="jobs" />
          </>
        )}
      </div>
    </Page>
  );
}
