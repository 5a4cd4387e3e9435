import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { apiPage, type Page as ListPage, withQuery } from '../../lib/api.ts';
import { formatBytes, formatCount, formatMs } from '../../lib/format.ts';
import {
  isUnfinished,
  type JobItem,
  jobStatuses,
  jobTypeNames,
  type LiveJob,
  workMs,
} from '../../lib/job-record.ts';
import { type LiveEvent, live, useLive } from '../../lib/live.ts';
import { screenHref } from '../../lib/place.ts';
import { useData } from '../../lib/use-data.ts';
import { useQuery } from '../../lib/use-query.ts';
import { Badge, StatusBadge } from '../../ui/badge.tsx';
import { FilterChoices, FilterSelect, FilterText } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { Pager } from '../../ui/pager.tsx';
import { Empty, Loading, Problems } from '../../ui/problems.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { FileName } from '../../ui/visible-text.tsx';
import { BulkActions } from './bulk-actions.tsx';

/** Where there is no stream the list is asked for again so often. */
const pollMs = 3_000;
/** A list that changes is loaded again, no more often than this. */
const reloadMs = 1_500;

/** A job of the list, with what the stream has said of it since. */
type Row = JobItem & Partial<Pick<LiveJob, 'completed_rows' | 'counts' | 'failure' | 'dry_run'>>;

const columns: readonly Column<Row>[] = [
  { id: 'name', title: 'Job', cell: (job) => <FileName name={job.filename} /> },
  {
    id: 'type',
    title: 'Type',
    isMinor: true,
    cell: ({ type }) => <span class="muted">{jobTypeNames[type] ?? type}</span>,
  },
  { id: 'status', title: 'State', cell: (job) => <JobState job={job} /> },
  { id: 'rows', title: 'Rows', isNumber: true, cell: ({ total_rows }) => formatCount(total_rows) },
  {
    id: 'size',
    title: 'Size',
    isNumber: true,
    isMinor: true,
    cell: ({ file_size }) => formatBytes(file_size),
  },
  { id: 'start', title: 'Accepted', isNumber: true, cell: ({ start_time }) => <Time at={start_time} /> },
  { id: 'took', title: 'Took', isNumber: true, isMinor: true, cell: (job) => <Took job={job} /> },
];

function JobState({ job }: { readonly job: Row }): VNode {
  const rejected = job.counts?.['rejected'] ?? 0;
  const isRunning = job.status === 'processing' && job.completed_rows !== undefined && job.total_rows > 0;
  return (
    <span class="job-state">
      <StatusBadge status={job.status} />
      {isRunning ? (
        <progress
          value={(job.completed_rows ?? 0) / job.total_rows}
          max={1}
          aria-label={`Progress of ${job.filename}`}
        />
      ) : null}
      {job.dry_run === true ? <Badge tone="off">dry run</Badge> : null}
      {rejected > 0 ? <span class="job-rejected num">{formatCount(rejected)} rejected</span> : null}
    </span>
  );
}

function Took({ job }: { readonly job: Row }): VNode {
  const ms = workMs(job);
  return <>{ms === null ? '–' : formatMs(ms)}</>;
}

/** What the list is filtered by; each has the name of the API's parameter, and stands in the address. */
export const jobFilters = [
  'type',
  'status',
  'since',
  'until',
  'filename',
  'sha256',
  'key',
  'request_id',
  'has_rejects',
] as const;

/** Loads, exports and deletions: one list, newest first, which follows the ledger. */
export function Jobs(): VNode {
  const query = useQuery();
  const given = Object.fromEntries(jobFilters.map((name) => [name, query.get(name)]));
  const filter = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  const path = withQuery('/v1/background_jobs', { ...filter, cursor: query.get('cursor') });
  const jobs = useData(path, (signal) => apiPage<JobItem>(path, { signal }), {
    everyMs: live.value.isOpen ? undefined : pollMs,
  });
  const rows = useLiveRows(jobs.data, jobs.reload);
  return (
    <Page title="Jobs" actions={<BulkActions filter={filter} onDone={jobs.reload} />}>
      <Filters filter={filter} />
      <Problems error={jobs.error} onRetry={jobs.reload} />
      <div class="panel">
        {jobs.data === undefined ? (
          <Loading rows={12} />
        ) : rows.length === 0 ? (
          <Nothing isFiltered={Object.keys(filter).length > 0} />
        ) : (
          <>
            <Table
              caption="Jobs, newest first"
              columns={columns}
              rows={rows}
              keyOf={({ job_id }) => job_id}
              hrefOf={({ job_id }) => screenHref(`/jobs/${job_id}`)}
              selected={query.get('row')}
              onSelect={(row) => query.set({ row }, { replace: true })}
            />
            <Pager page={jobs.data} noun={jobs.data.items.length === 1 ? 'job' : 'jobs'} />
          </>
        )}
      </div>
    </Page>
  );
}

interface JobsEvent extends LiveEvent {
  readonly complete: boolean;
  readonly jobs: readonly LiveJob[];
}

/** The rows of the page with what the stream says of them. A job that is new, or ends, may change which rows there are. */
function useLiveRows(page: ListPage<JobItem> | undefined, reload: () => void): readonly Row[] {
  const [known, setKnown] = useState<ReadonlyMap<string, LiveJob>>(new Map());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLive<JobsEvent>('jobs', ({ snapshot, jobs }) => {
    setKnown((before) => {
      const next = new Map(snapshot ? [] : before);
      for (const job of jobs) next.set(job.job_id, job);
      return next;
    });
    const isShown = (job: LiveJob): boolean =>
      page?.items.some(({ job_id }) => job_id === job.job_id) === true;
    const isOther = jobs.some((job) => !isShown(job) || known.get(job.job_id)?.status !== job.status);
    if (snapshot || !isOther || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      reload();
    }, reloadMs);
  });
  return (page?.items ?? []).map((item): Row => {
    const now = known.get(item.job_id);
    // What was loaded may be newer than what the stream said of a job that has ended.
    if (now === undefined || (!isUnfinished(item) && isUnfinished(now))) return item;
    return { ...item, ...now };
  });
}

function Filters({ filter }: { readonly filter: Readonly<Record<string, string>> }): VNode {
  const query = useQuery();
  const set = (name: string) => (value: string) =>
    query.set({ [name]: value, cursor: undefined, row: undefined });
  const rare = ['until', 'sha256', 'key', 'request_id', 'has_rejects'] as const;
  const [isMore, setMore] = useState(rare.some((name) => filter[name] !== undefined));
  const cleared = Object.fromEntries([...jobFilters, 'cursor', 'row'].map((name) => [name, undefined]));
  return (
    <search class="filters">
      <FilterText
        label="File"
        value={filter['filename'] ?? ''}
        placeholder="part of its name"
        onChange={set('filename')}
      />
      <FilterChoices
        label="Type"
        value={filter['type'] ?? ''}
        options={Object.entries(jobTypeNames)}
        onChange={set('type')}
      />
      <FilterChoices
        label="State"
        value={filter['status'] ?? ''}
        options={jobStatuses.map((each) => [each, each] as const)}
        onChange={set('status')}
      />
      <FilterText
        label="Since"
        type="date"
        value={(filter['since'] ?? '').slice(0, 10)}
        onChange={set('since')}
      />
      {isMore ? (
        <>
          <FilterText
            label="Until"
            type="date"
            value={(filter['until'] ?? '').slice(0, 10)}
            onChange={set('until')}
          />
          <FilterSelect
            label="Refused records"
            value={filter['has_rejects'] ?? ''}
            options={[
              ['', 'any'],
              ['true', 'to be mended'],
            ]}
            onChange={set('has_rejects')}
          />
          <FilterText label="SHA-256" value={filter['sha256'] ?? ''} onChange={set('sha256')} />
          <FilterText
            label="Key"
            value={filter['key'] ?? ''}
            placeholder="id of a key"
            onChange={set('key')}
          />
          <FilterText label="Request" value={filter['request_id'] ?? ''} onChange={set('request_id')} />
        </>
      ) : (
        <button type="button" class="button button-quiet" onClick={() => setMore(true)}>
          More filters
        </button>
      )}
      {Object.keys(filter).length === 0 ? null : (
        <a class="button button-quiet" href={query.href(cleared)}>
          Clear
        </a>
      )}
    </search>
  );
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }): VNode {
  if (isFiltered) return <Empty title="No job matches">Loosen the filters above.</Empty>;
  return (
    <Empty title="Nothing has run here yet">
      Loads, exports and deletions of this environment are listed here, however they are started.
    </Empty>
  );
}
