import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { JobListItem } from '../../../api/job.ts';
import { loadStatuses } from '../../../domain/load.ts';
import { pollMs, post, type Query, screenHref, useApiPage, useQuery, withQuery } from '../lib/api.ts';
import { formatCount, formatMs, plural } from '../lib/format.ts';
import {
  isLoad,
  isRepeatable,
  isUnfinished,
  type JobDetail,
  jobHref,
  jobPath,
  jobTypeNames,
  newScheduleHref,
  originText,
  workMs,
} from '../lib/jobs.ts';
import { BalanceBar } from '../ui/balance.tsx';
import { ActionButton, Button, FilterChoices, FilterText } from '../ui/controls.tsx';
import { ConfirmButton } from '../ui/dialog.tsx';
import { Empty, FileName, Page, StatusBadge, Time, TwoLines } from '../ui/page.tsx';
import { ClearFilters, type Column, List } from '../ui/table.tsx';
import { addressOf } from './load/inspection.ts';

const columns: readonly Column<JobListItem>[] = [
  [
    'Job',
    ({ filename, type }) => (
      <TwoLines below={jobTypeNames[type] ?? type}>
        <FileName name={filename} />
      </TwoLines>
    ),
  ],
  ['State', ({ status }) => <StatusBadge status={status} />],
  ['Records', recordsOf, 'num'],
  ['Started by', ({ origin }) => <span class="muted break">{originText(origin)}</span>, 'minor'],
  ['Accepted', ({ start_time }) => <Time at={start_time} />, 'num minor'],
  ['Took', (job) => formatMs(workMs(job)), 'num minor'],
];

/** Shows how many records the job has, what became of them, and how many were refused. */
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
/** Each filter has the name of the API's parameter, and stands in the address. */
const jobFilters = ['type', 'status', 'has_rejects', 'since', 'filename', ...rareFilters] as const;

/** Loads, exports and deletions: those that run, then the others, newest first. The list follows the ledger. */
export function Jobs(): VNode {
  const query = useQuery();
  const filter = query.given(jobFilters);
  const isFiltered = Object.keys(filter).length > 0;
  const cursor = query.get('cursor');
  const { status, ...others } = filter;
  const jobs = useApiPage<JobListItem>(withQuery('/v1/background_jobs', { ...filter, cursor }), pollMs);
  const isFirst = cursor === '' && status === undefined;
  const runningPath = withQuery('/v1/background_jobs', { ...others, status: 'processing', limit: 100 });
  const running = useApiPage<JobListItem>(isFirst ? runningPath : null, pollMs);
  const first = isFirst ? (running.data?.items ?? []) : [];
  const known = new Set(first.map(({ job_id }) => job_id));
  const items = jobs.data && [...first, ...jobs.data.items.filter(({ job_id }) => !known.has(job_id))];
  return (
    <Page title="Jobs">
      <States query={query} />
      <Filters query={query} />
      <List
        of={jobs}
        one="job"
        caption="Jobs: those that run, then the others, newest first"
        columns={columns}
        rows={items ?? []}
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

/** Links to the jobs in each state. */
function States({ query }: { readonly query: Query }): VNode {
  const chosen = query.get('status');
  const isRejects = query.get('has_rejects') !== '';
  const link = (text: string, status: string, has_rejects?: 'true') => (
    <a
      key={text}
      class="tag"
      aria-current={chosen === status && isRejects === (has_rejects === 'true') ? 'true' : undefined}
      href={query.href({ status, has_rejects, cursor: undefined, row: undefined })}
    >
      {text}
    </a>
  );
  return (
    <nav class="row states" aria-label="Jobs by state">
      {link('all', '')}
      {loadStatuses.map((status) => link(status, status))}
      {link('with refused records', '', 'true')}
    </nav>
  );
}

function Filters({ query }: { readonly query: Query }): VNode {
  const [isMore, setMore] = useState(rareFilters.some((name) => query.get(name) !== ''));
  const of = query.filter;
  const dayOf = (name: string) => ({
    ...of(name),
    value: query.get(name).slice(0, 10),
    type: 'date' as const,
  });
  return (
    <search class="row filters">
      <FilterText label="File" placeholder="part of its name" {...of('filename')} />
      <FilterChoices label="Type" options={Object.entries(jobTypeNames)} {...of('type')} />
      <FilterText label="Since" {...dayOf('since')} />
      {isMore ? (
        <>
          <FilterText label="Until" {...dayOf('until')} />
          <FilterText label="SHA-256" {...of('sha256')} />
          <FilterText label="Key" placeholder="id of a key" {...of('key')} />
          <FilterText label="Request" {...of('request_id')} />
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

interface Act {
  /** The last part of the path, if it is not the name. */
  readonly action?: string;
  readonly title: string;
  readonly verb: string;
  readonly isPossible: (job: JobDetail) => boolean;
  readonly sentence: (job: JobDetail) => string;
}

const isDrifted = ({ failure }: JobDetail): boolean => failure?.error_code === 'plan_drifted';

/** Says how many rows of the job are not done. */
function leftOf({ total_rows: total, completed_rows: done }: JobDetail): string {
  return `${plural(Math.max(0, total - done), 'row')} of ${formatCount(total)}`;
}

const acts: Readonly<Record<'apply' | 'release' | 'discard' | 'cancel' | 'retry', Act>> = {
  release: {
    title: 'Load it anyway',
    action: 'apply',
    verb: 'Load it anyway',
    isPossible: ({ status }) => status === 'held',
    sentence: (job) =>
      `${plural(job.total_rows, 'row')} will be loaded, although the file differs from what was expected.`,
  },
  discard: {
    title: 'Discard the file',
    action: 'cancel',
    verb: 'Discard it',
    isPossible: ({ status }) => status === 'held',
    sentence: (job) => `Nothing of its ${plural(job.total_rows, 'row')} will be loaded.`,
  },
  apply: {
    title: 'Apply the plan',
    verb: 'Apply it',
    isPossible: (job) => job.plan != null && job.plan.applied_at === null && !isUnfinished(job),
    sentence: (job) => {
      const { inserted = 0, updated = 0, removed = 0 } = job.plan?.counts ?? {};
      const drift = isDrifted(job) ? ' Profiles have changed since; it is applied anyway.' : '';
      return `${plural(inserted + updated + removed, 'record')} will be written: ${formatCount(inserted)} new, ${formatCount(updated)} changed${removed === 0 ? '' : `, ${formatCount(removed)} removed`}.${drift}`;
    },
  },
  cancel: {
    title: 'Cancel the job',
    verb: 'Cancel it',
    isPossible: (job) => isUnfinished(job) && !job.type.startsWith('delete_'),
    sentence: (job) => `${leftOf(job)} will not be processed. What has been applied stays.`,
  },
  retry: {
    title: 'Retry the job',
    verb: 'Retry',
    isPossible: (job) => isLoad(job) && (job.status === 'failed' || job.status === 'cancelled'),
    sentence: (job) => `${leftOf(job)} will be processed. What has been applied is not repeated.`,
  },
};

/** The job wrote something, and nobody has undone it. */
function isUndoable(job: JobDetail): boolean {
  const { inserted = 0, updated = 0, removed = 0 } = job.counts ?? {};
  const hasWritten = job.dry_run === false && inserted + updated + removed > 0;
  return isLoad(job) && job.type !== 'undo' && !isUnfinished(job) && hasWritten && job.undone_by == null;
}

interface TakenAgain {
  readonly upload_id: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Offers the actions for the job's current state. Each asks first, with its number. */
export function JobActions({ job, onDone }: { readonly job: JobDetail; readonly onDone: () => void }): VNode {
  const { route } = useLocation();
  const path = jobPath(job.job_id);
  const names = (Object.keys(acts) as (keyof typeof acts)[]).filter((name) => acts[name].isPossible(job));
  // Leads to the columns of the file, which the server has stored: nothing is sent again, and nothing is loaded yet.
  const loadAgain = async (): Promise<void> => {
    const { upload_id, options } = await post<TakenAgain>(`${path}/upload`);
    const { entity, ...others } = options;
    // The columns of a table say what its rows are: with another mapping the same file may be one of companies.
    const given = others['format'] === 'csv' ? others : { entity, ...others };
    route(screenHref('/load', { ...addressOf(given), upload: upload_id, step: 'columns' }));
  };
  // Leads to the plan of the undo, which is applied there.
  const planUndo = async (): Promise<void> => {
    const { job_id } = await post<JobDetail>(`${path}/undo`, { plan: true });
    route(jobHref(job_id));
  };
  return (
    <>
      {names.map((name) => (
        <ConfirmButton
          key={name}
          label={acts[name].title}
          {...(name === 'cancel' || name === 'discard' ? {} : { look: 'main' })}
          needs={job.type === 'export' ? 'export' : 'import'}
          title={acts[name].title}
          isDestructive={name === 'cancel' || name === 'discard'}
          sentence={() => acts[name].sentence(job)}
          verb={() => acts[name].verb}
          act={async () => {
            await post(
              `${path}/${acts[name].action ?? name}`,
              name === 'apply' && isDrifted(job) ? { on_drift: 'proceed' } : undefined,
            );
            onDone();
          }}
        />
      ))}
      {isUndoable(job) ? (
        <ActionButton needs="import" act={planUndo}>
          Undo …
        </ActionButton>
      ) : null}
      {isLoad(job) && isRepeatable(job) ? (
        <>
          <ActionButton needs="import" act={loadAgain}>
            Load again with another mapping
          </ActionButton>
          <a class="button" href={screenHref('/load', { options_of: job.job_id })}>
            Load another file like this one
          </a>
        </>
      ) : null}
      {isRepeatable(job) && job.status === 'completed' ? (
        <a class="button" href={newScheduleHref(job.job_id)}>
          Schedule …
        </a>
      ) : null}
    </>
  );
}
