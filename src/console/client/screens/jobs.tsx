import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { loadStatuses } from '../../../domain/load.ts';
import type { JobHistory, JobListItem } from '../../../http/job.ts';
import { type Query, screenHref, useQuery, withQuery } from '../lib/address.ts';
import { post } from '../lib/api.ts';
import { pollMs, useApiPage } from '../lib/data.ts';
import { formatCount, formatMs, plural, visibleText } from '../lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  jobHref,
  jobPath,
  jobTypeNames,
  originText,
  workMs,
} from '../lib/jobs.ts';
import { exportOf, exportsPath } from '../lib/repeat.ts';
import type { JobProps } from '../part.ts';
import { BalanceBar } from '../ui/balance.tsx';
import {
  ActionButton,
  Button,
  type ButtonProps,
  FilterText,
  Menu,
  type Options,
  SelectField,
} from '../ui/controls.tsx';
import { ConfirmButton } from '../ui/dialog.tsx';
import { Empty, Page, StatusBadge, Time } from '../ui/page.tsx';
import { ClearFilters, type Column, List } from '../ui/table.tsx';
import { addressOf } from './load/inspection.ts';

export const jobColumns: readonly Column<JobListItem>[] = [
  ['Job', ({ filename }) => <span class="name">{visibleText(filename)}</span>],
  ['Type', ({ type }) => jobTypeNames[type] ?? type, 'minor'],
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

/** Returns a page of jobs: those that run, then the others, newest first. */
export function useJobs(filter: Readonly<Record<string, string>>, cursor = '') {
  const { status, ...others } = filter;
  const jobs = useApiPage<JobListItem>(withQuery('/v1/background_jobs', { ...filter, cursor }), pollMs);
  const isFirst = cursor === '' && status === undefined;
  const runningPath = withQuery('/v1/background_jobs', { ...others, status: 'processing', limit: 100 });
  const running = useApiPage<JobListItem>(isFirst ? runningPath : null, pollMs);
  const first = isFirst ? (running.data?.items ?? []) : [];
  const known = new Set(first.map(({ job_id }) => job_id));
  const rest = jobs.data?.items.filter(({ job_id }) => !known.has(job_id)) ?? [];
  return { jobs, rows: [...first, ...rest] };
}

/** Loads, exports and deletions. The list follows the ledger. */
export function Jobs(): VNode {
  const query = useQuery();
  const filter = query.given(jobFilters);
  const isFiltered = Object.keys(filter).length > 0;
  const { jobs, rows } = useJobs(filter, query.get('cursor'));
  return (
    <Page title="Jobs">
      <Filters query={query} />
      <List
        of={jobs}
        one="job"
        caption="Jobs: those that run, then the others, newest first"
        columns={jobColumns}
        rows={rows}
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

/** The choice of a state that is none of a job. */
const withRefused = 'with_refused';
const states: Options = [
  ['', 'All'],
  ['queued,processing', 'under way'],
  ...loadStatuses.map((status) => [status, status] as const),
  [withRefused, 'with refused records'],
];

function Filters({ query }: { readonly query: Query }): VNode {
  const [isMore, setMore] = useState(rareFilters.some((name) => query.get(name) !== ''));
  const of = query.filter;
  const dayOf = (name: string) => ({
    ...of(name),
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
      <FilterText label="File" placeholder="part of its name" {...of('filename')} />
      <SelectField label="Type" options={[['', 'All'], ...Object.entries(jobTypeNames)]} {...of('type')} />
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

const isDestructive = (name: string): boolean => name === 'cancel' || name === 'discard';

/** Says how many rows of the job are not done. */
function leftOf({ total_rows: total, completed_rows: done }: JobDetail): string {
  return `${plural(Math.max(0, total - done), 'row')} of ${formatCount(total)}`;
}

const acts: Readonly<Record<'release' | 'discard' | 'cancel' | 'retry', Act>> = {
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

interface ActionsProps {
  readonly job: JobDetail;
  readonly onDone: () => void;
}

/** Offers what moves the job on from its state. Each asks first, with its number. */
export function JobActs({ job, onDone }: ActionsProps): VNode {
  const names = (Object.keys(acts) as (keyof typeof acts)[]).filter((name) => acts[name].isPossible(job));
  return (
    <>
      {names.map((name) => (
        <ConfirmButton
          key={name}
          label={acts[name].title}
          look={isDestructive(name) ? undefined : 'main'}
          needs={job.type === 'export' ? 'export' : 'import'}
          title={acts[name].title}
          isDestructive={isDestructive(name)}
          sentence={acts[name].sentence(job)}
          verb={acts[name].verb}
          act={async () => {
            await post(`${jobPath(job.job_id)}/${acts[name].action ?? name}`);
            onDone();
          }}
        />
      ))}
    </>
  );
}

/** Writes exactly what the plan shows. Profiles that have changed since refuse it first. */
function Apply({ job: { job_id, type, status, plan, failure }, onDone }: ActionsProps): VNode | null {
  const isDrifted = failure?.error_code === 'plan_drifted';
  if (plan == null || plan.applied_at !== null || !(status === 'completed' || isDrifted)) return null;
  const { inserted, updated, removed } = plan.counts;
  const verb = type === 'undo' ? 'Undo' : isDrifted ? 'Load anyway' : 'Load';
  const apply = async (): Promise<void> => {
    await post(`${jobPath(job_id)}/apply`, { on_drift: isDrifted ? 'proceed' : 'refuse' });
    onDone();
  };
  return (
    <ActionButton look="main" needs="import" act={apply}>
      {verb}: write {plural(inserted + updated + removed, 'record')}
    </ActionButton>
  );
}

/** Offers the actions of a job. Rare ones are in a menu. */
export function JobActions({ job, history, onDone }: ActionsProps & JobProps): VNode {
  return (
    <>
      <Apply job={job} onDone={onDone} />
      <JobActs job={job} onDone={onDone} />
      <Rare job={job} history={history} />
    </>
  );
}

function Rare({ job, history }: JobProps): VNode | null {
  const { route } = useLocation();
  const path = jobPath(job.job_id);
  // Leads to the columns of the file, which the server has stored: nothing is sent again, and nothing is loaded yet.
  const loadAgain = async (): Promise<void> => {
    const { upload_id, options } = await post<TakenAgain>(`${path}/upload`);
    const { entity, ...others } = options;
    // The columns of a table say what its rows are: with another mapping the same file may be one of companies.
    const given = others['format'] === 'csv' ? others : { entity, ...others };
    route(screenHref('/load', { ...addressOf(given), upload: upload_id }));
  };
  // Leads to the plan of the undo, which is applied there.
  const planUndo = async (): Promise<void> => {
    const { job_id } = await post<JobDetail>(`${path}/undo`, { plan: true });
    route(jobHref(job_id));
  };
  const isOfLoad = isLoad(job);
  if (job.type === 'undo' || (!isOfLoad && job.type !== 'export')) return null;
  return (
    <>
      {isOfLoad ? null : <ExportAgain look="main" history={history} />}
      <Menu label="More">
        {isUndoable(job) ? (
          <ActionButton look="quiet" needs="import" act={planUndo}>
            Undo …
          </ActionButton>
        ) : null}
        {isOfLoad ? (
          <>
            <ActionButton look="quiet" needs="import" act={loadAgain}>
              Load again with another mapping
            </ActionButton>
            <a class="button button-quiet" href={screenHref('/load', { options_of: job.job_id })}>
              Load another file like this one
            </a>
          </>
        ) : null}
        {parts.map(({ JobMenu }, at) => JobMenu && <JobMenu key={at} job={job} history={history} />)}
      </Menu>
    </>
  );
}

type AgainProps = Pick<ButtonProps, 'look'> & { readonly history: JobHistory };

/** Makes the same export, and shows it. */
export function ExportAgain({ history, look }: AgainProps): VNode {
  const { route } = useLocation();
  const act = async (): Promise<void> => {
    const body = exportOf(history);
    const { job_id } = await post<{ readonly job_id: string }>(exportsPath, body);
    route(jobHref(job_id));
  };
  return (
    <ActionButton look={look} needs="export" act={act}>
      Export again
    </ActionButton>
  );
}
