import type { ComponentChildren, VNode } from 'preact';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { Inspection } from '../../../../api/upload.ts';
import type { OnDrift } from '../../../../domain/load.ts';
import { post, type Query } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { cancelLoad, isUnfinished, jobHref, jobPath, useLoad } from '../../lib/jobs.ts';
import { Balance } from '../../ui/balance.tsx';
import { ActionButton } from '../../ui/controls.tsx';
import { Loaded, Notice, Section, StatusBadge } from '../../ui/page.tsx';
import { Changes } from '../job/changes.tsx';
import { Progress } from '../job/parts.tsx';
import { RefusedRecords } from '../refused/refused.tsx';
import { type Inspected, isPreset, mapOf, noOptions, optionsOf } from './inspection.ts';

/** Returns the options of the load, with the preset or the map that is proposed if none was chosen. */
function loadOptions(query: Query, { map, preset }: Inspection): Record<string, unknown> {
  const options = optionsOf(query);
  if (mapOf(query) !== null || query.get('options_of') !== '') return options;
  if (preset !== null) return { ...options, preset };
  return Object.keys(map).length === 0 ? options : { ...options, map };
}

/** Has the server read the whole file without writing anything. */
export function StartPlan({ query, found }: Inspected): VNode {
  const start = async (): Promise<void> => {
    const body = { ...loadOptions(query, found), plan: true };
    const { job_id } = await post<{ readonly job_id: string }>('/v1/imports', body);
    query.go({ plan: job_id, step: 'plan', job: undefined });
  };
  const isIdMissing = !found.columns.some(({ becomes }) => becomes === 'user_id' || becomes === 'company_id');
  const isKindMissing = found.problem?.message.includes('event_type') === true;
  const missing = isKindMissing
    ? 'The records must say what they are: see above.'
    : isIdMissing
      ? 'First choose the column that is the user id or the company id.'
      : null;
  const isReady = missing === null || isPreset(query, found);
  return (
    <>
      <ActionButton look="main" needs="import" disabled={!isReady} act={start}>
        Plan the load
      </ActionButton>
      <p class="hint">{isReady ? 'Reads the whole file, and writes nothing.' : missing}</p>
    </>
  );
}

/** Shows what the load would do, before it does anything. */
export function Plan({ query, found }: Inspected): VNode {
  const jobId = query.get('plan');
  if (jobId === '') {
    return (
      <Section title="Not planned yet">
        <div class="row">
          <StartPlan query={query} found={found} />
        </div>
      </Section>
    );
  }
  return (
    <Followed jobId={jobId} words="Reading the whole file; nothing is written">
      {(job) => <Planned query={query} job={job} />}
    </Followed>
  );
}

interface FollowedProps {
  readonly jobId: string;
  /** Says what the job does. */
  readonly words: string;
  readonly children: (ended: LoadDetail, reload: () => void) => VNode;
}

function Followed({ jobId, words, children }: FollowedProps): VNode {
  const job = useLoad(jobId);
  return (
    <Loaded of={job}>
      {(data) => (isUnfinished(data) ? <UnderWay job={data} words={words} /> : children(data, job.reload))}
    </Loaded>
  );
}

function UnderWay({ job, words }: { readonly job: LoadDetail; readonly words: string }): VNode {
  return (
    <Section title={words} aside={<StatusBadge status={job.status} />}>
      <Progress job={job} />
      {job.queue_position ? <p class="hint">{plural(job.queue_position, 'job')} ahead</p> : null}
      {job.last_error === null ? null : <p class="warn">{job.last_error}</p>}
      <div>
        <ActionButton needs="import" act={() => cancelLoad(job.job_id)}>
          Stop
        </ActionButton>
      </div>
    </Section>
  );
}

interface LoadProps {
  readonly query: Query;
  readonly job: LoadDetail;
}

function Planned({ query, job }: LoadProps): VNode {
  const { counts, failure } = job;
  return (
    <>
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {job.duplicate_of === null ? null : (
        <Notice>
          The same bytes were loaded before, by <a href={jobHref(job.duplicate_of)}>this job</a>.
        </Notice>
      )}
      <Superseded query={query} job={job} />
      <Section title={`${plural(counts.read, 'record')} planned`}>
        <Balance of={{ ...job, counts: { ...counts } }} />
      </Section>
      {job.plan == null ? null : <Changes jobId={job.job_id} />}
      <div class="row">
        <Apply query={query} job={job} />
      </div>
    </>
  );
}

/** The share of superseded records from which a notice is shown. */
const usualSuperseded = 0.2;

/** Warns if many rows share their id: most files have an id once, so another column is likely to be the id. */
function Superseded({ query, job: { counts } }: LoadProps): VNode | null {
  const { superseded, read } = counts;
  if (superseded <= usualSuperseded * read) return null;
  return (
    <Notice>
      {`${formatShare(superseded, read)} of the records (${formatCount(superseded)}) share their id with a later one in the file, and only the last of each counts. The column chosen as the id is probably not what the rows are about. `}
      <a href={query.href({ step: 'columns' })}>Look at the columns</a>
    </Notice>
  );
}

function Apply({ query, job: { job_id, plan, status, counts } }: LoadProps): VNode {
  if (plan != null && plan.applied_at !== null)
    return <a href={query.href({ step: 'result', job: job_id })}>This plan was applied: see the result</a>;
  if (status === 'cancelled') return <p class="hint">The plan was stopped. Nothing was written.</p>;
  if (status !== 'completed')
    return <p class="hint">Nothing would be loaded. Change the columns or how the file is read.</p>;
  const { inserted, updated, removed, rejected } = counts;
  return (
    <>
      <ApplyButton query={query} jobId={job_id} onDrift="refuse">
        Load: write {plural(inserted + updated + removed, 'record')}
      </ApplyButton>
      <p class="hint">
        {formatCount(inserted)} new, {formatCount(updated)} changed
        {removed === 0 ? '' : `, ${formatCount(removed)} removed`}.
        {rejected === 0
          ? ''
          : ` ${plural(rejected, 'record')} will be refused, and can be corrected afterwards.`}
      </p>
    </>
  );
}

interface ApplyButtonProps {
  readonly query: Query;
  readonly jobId: string;
  readonly onDrift: OnDrift;
  readonly children: ComponentChildren;
}

/** Has the server load exactly what it planned; with `refuse` only if no profile of the plan has changed since. */
function ApplyButton({ query, jobId, onDrift, children }: ApplyButtonProps): VNode {
  const apply = async (): Promise<void> => {
    await post(`${jobPath(jobId)}/apply`, { on_drift: onDrift });
    query.go({ step: 'result', job: jobId });
  };
  return (
    <ActionButton look="main" needs="import" act={apply}>
      {children}
    </ActionButton>
  );
}

/** Shows the result: the ledger's counts, and below them the refused records, to be corrected here. */
export function Result({ query }: Pick<Inspected, 'query'>): VNode {
  return (
    <Followed jobId={query.get('job')} words="Loading">
      {(job, reload) => <Ended query={query} job={job} onChange={reload} />}
    </Followed>
  );
}

function Ended({ query, job, onChange }: LoadProps & { readonly onChange: () => void }): VNode {
  const { counts, failure, job_id } = job;
  const another = { ...noOptions, upload: undefined, step: undefined };
  return (
    <>
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {failure?.error_code === 'plan_drifted' ? (
        <p class="row">
          <ApplyButton query={query} jobId={job_id} onDrift="proceed">
            Load anyway
          </ApplyButton>
          <a
            class="button button-quiet"
            href={query.href({ step: 'columns', plan: undefined, job: undefined })}
          >
            Plan again
          </a>
        </p>
      ) : null}
      <Section title={`${plural(counts.read, 'record')} read`} aside={<StatusBadge status={job.status} />}>
        <Balance of={{ ...job, counts: { ...counts } }} />
        <p class="row">
          <a class="button" href={jobHref(job_id)}>
            The job
          </a>
          <a class="button button-quiet" href={query.href(another)}>
            Load another file
          </a>
        </p>
      </Section>
      {counts.rejected > 0 ? <RefusedRecords query={query} job={job} onChange={onChange} /> : null}
    </>
  );
}
