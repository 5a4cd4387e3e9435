import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useRef } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type { JobHistory } from '../../../../http/job.ts';
import { jobTypeNames } from '../../app/job-types.ts';
import { screenHref, withQuery } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { type Loaded as LoadedData, useData } from '../../lib/data.ts';
import { formatBytes, formatCount, formatMs, plural, visibleText } from '../../lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  jobPath,
  originText,
  pauseOf,
  refusedHref,
  workMs,
} from '../../lib/jobs.ts';
import { Balance } from '../../ui/balance.tsx';
import { CopyButton } from '../../ui/controls.tsx';
import { Badge, type Fact, Facts, Fold, JobLink, Loaded, Page, StatusBadge, Time } from '../../ui/page.tsx';
import { Causes } from '../refused/causes.tsx';
import { JobActions } from './actions.tsx';
import { Answer } from './answer.tsx';
import { Changes } from './changes.tsx';
import { ExportFiles } from './files.tsx';
import { Phases, waitedMs } from './parts.tsx';

interface Known {
  readonly job: JobDetail;
  readonly history: JobHistory;
}

const stateKey = ({ status, attempts, end_time }: JobDetail): string => `${status} ${attempts} ${end_time}`;

/** Loads the job as the ledger has it, then its history, which changes with the state. */
function useJob(id: string): LoadedData<Known> {
  const path = jobPath(id);
  const latest = useRef<Known | null>(null);
  const load = async (signal: AbortSignal): Promise<Known> => {
    const job = await api<JobDetail>(path, { signal });
    const before = latest.current;
    const history =
      before !== null && stateKey(before.job) === stateKey(job)
        ? before.history
        : await api<JobHistory>(`${path}/history`, { signal });
    latest.current = { job, history };
    return latest.current;
  };
  return useData(path, load, (known) => pauseOf(known?.job));
}

/** Shows a load, export or deletion, running or ended. */
export function Job(): VNode {
  const { job: id = '' } = useRoute().params;
  // Another id is another screen: nothing of the job before is shown.
  return <JobOf key={id} id={id} />;
}

function JobOf({ id }: { readonly id: string }): VNode {
  const loaded = useJob(id);
  const { job, history } = loaded.data ?? {};
  return (
    <Page
      title={job === undefined ? 'Job' : visibleText(job.filename)}
      parent={{ title: 'Jobs', href: screenHref('/jobs') }}
      aside={job && stateOf(job)}
      actions={
        job && history && <JobActions key={job.status} job={job} history={history} onDone={loaded.reload} />
      }
    >
      <Loaded of={loaded} rows={10}>
        {(known) => <Shown {...known} />}
      </Loaded>
    </Page>
  );
}

function Shown({ job, history }: Known): VNode {
  const { entity } = history.parameters;
  const isOfLoad = isLoad(job) && job.counts !== undefined;
  const isPlan = job.plan != null && job.plan.applied_at === null;
  return (
    <>
      <Answer job={job} entity={entity === 'users' || entity === 'companies' ? entity : 'auto'} />
      {isOfLoad && (isUnfinished(job) || job.completed_rows > 0) ? (
        <section class="panel panel-padded" aria-label="Balance">
          <Balance of={job} />
        </section>
      ) : null}
      {isOfLoad && !isUnfinished(job) && (job.rejects?.count ?? 0) > 0 ? (
        <Causes
          job={job}
          title="Why records were rejected"
          aside={<a href={refusedHref(job.job_id)}>Correct them</a>}
          hrefOf={(cause) => withQuery(refusedHref(job.job_id), { cause })}
        />
      ) : null}
      {isPlan ? <Changes jobId={job.job_id} /> : null}
      {job.type === 'export' ? <ExportFiles jobId={job.job_id} state={job.status} /> : null}
      <div>
        {job.plan == null || isPlan ? null : (
          <Fold title="Changes">
            <Changes jobId={job.job_id} />
          </Fold>
        )}
        <Fold title="Timeline" aside={tookOf(job, history)}>
          <Phases phases={history.phases} isRunning={isUnfinished(job)} />
        </Fold>
        <Fold title="Details" aside={<span class="faint num">{sizeOf(job)}</span>}>
          <Facts of={[...factsOf(job), ...requestFacts(job, history)]} />
        </Fold>
      </div>
    </>
  );
}

function sizeOf({ file_size: size, total_rows: rows }: JobDetail): string {
  return `${size === 0 ? '' : `${formatBytes(size)}, `}${plural(rows, 'row')}`;
}

function stateOf({ status, dry_run, plan }: JobDetail): VNode {
  return (
    <>
      <StatusBadge status={status} />
      {dry_run === true ? <Badge tone="off">{plan == null ? 'dry run' : 'plan'}</Badge> : null}
    </>
  );
}

/** A shorter wait is not shown. */
const shownWaitMs = 1_000;

/** Shows how long the current work has taken, and the waiting. */
function tookOf(job: JobDetail, { phases }: JobHistory): VNode {
  const rate = job.rows_per_second;
  const ms = workMs(job);
  const waited = waitedMs(phases);
  return (
    <span class="faint num">
      {ms === null ? 'waiting' : formatMs(ms)}
      {waited < shownWaitMs ? '' : ` · waited ${formatMs(waited)}`}
      {rate == null ? '' : ` · ${formatCount(rate)} rows/s`}
      {job.attempts > 1 ? ` · started ${job.attempts} times` : ''}
    </span>
  );
}

function factsOf(job: JobDetail): readonly Fact[] {
  const { counts = {}, removed = {}, warnings = [] } = job;
  const own: readonly Fact[] = isLoad(job)
    ? loadFacts(job)
    : job.type === 'export'
      ? [
          ['Rows', formatCount(job.completed_rows)],
          ...warnings.map(({ message, details }): Fact => ['Warning', `${message} (${details})`]),
        ]
      : [
          ['Ids', `${formatCount(counts['requested'] ?? 0)} requested`],
          ['Deleted', formatCount(counts['deleted'] ?? 0)],
          ['Not found', formatCount(counts['not_found'] ?? 0)],
          ...Object.entries<number>(removed).map(([name, n]): Fact => [`Removed ${name}`, formatCount(n)]),
        ];
  return [
    ['Type', jobTypeNames[job.type] ?? job.type],
    ['Job', <Copied key="job" text={job.job_id} />],
    ...own,
  ];
}

function loadFacts(job: JobDetail): readonly Fact[] {
  const { read_as: readAs, sha256, duplicate_of: twin, held } = job;
  return [
    ['Read as', readAs && formatOf(readAs)],
    ['SHA-256', sha256 && <Copied text={sha256} />],
    ['Same bytes as', twin && <JobLink id={twin} />],
    ['Mends', job.mends && <JobLink id={job.mends} />],
    ...(job.rejects?.loaded_since.jobs ?? []).map((id): Fact => ['Mended by', <JobLink key={id} id={id} />]),
    ['Held', held?.reasons.map(({ figure, message }) => `${figure}: ${visibleText(message)}`).join('; ')],
    ['Decided by', held?.decided_by && originText(held.decided_by)],
    ...(readAs?.notes ?? []).map((text): Fact => ['Remarks', text]),
    ...parts.flatMap(({ jobFacts }) => jobFacts?.(job) ?? []),
  ];
}

function formatOf({ format, encoding, csv, sheet, member }: NonNullable<JobDetail['read_as']>): string {
  const parts = [format.toUpperCase(), encoding];
  if (csv !== null)
    parts.push(`delimiter ${JSON.stringify(csv.delimiter)}`, plural(csv.columns.length, 'column'));
  if (sheet !== null) parts.push(`sheet ${visibleText(sheet)}`);
  if (member !== null) parts.push(`file ${visibleText(member)}`);
  return parts.filter((part) => part !== null).join(', ');
}

/** Returns who or what asked for the job, and the parameters that were given. */
function requestFacts(job: JobDetail, { origin, request_id, parameters }: JobHistory): readonly Fact[] {
  const given = Object.entries(parameters).filter(([name, value]) => name !== 'chunks' && isSaid(value));
  return [
    ['By', originText(origin)],
    ['Request id', request_id === null ? 'none' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={job.start_time} />],
    ...given.map(([name, value]): Fact => {
      const text = typeof value === 'string' ? visibleText(value) : JSON.stringify(value);
      return [<code key={name}>{name}</code>, <code key={name}>{text}</code>];
    }),
  ];
}

function isSaid(value: unknown): boolean {
  if (value === null || value === undefined || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

function Copied({ text }: { readonly text: string }): VNode {
  return (
    <span class="row copied">
      <span class="mono">{text}</span>
      <CopyButton text={text} />
    </span>
  );
}
