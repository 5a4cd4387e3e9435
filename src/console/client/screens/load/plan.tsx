import type { ComponentChildren, VNode } from 'preact';
import type { Inspection } from '../../../../api/inspection.ts';
import type { JobDetail as LoadDetail } from '../../../../api/load.ts';
import type { OnDrift } from '../../../../domain/load.ts';
import type { Query } from '../../lib/address.ts';
import { api } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { cancelLoad, isEnded, jobHref, jobPath, useLoad } from '../../lib/jobs.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { ActionButton } from '../../ui/button.tsx';
import { Section } from '../../ui/page.tsx';
import { Loading, Notice, Problems } from '../../ui/problems.tsx';
import { Balance } from '../job/balance.tsx';
import { Changes } from '../job/changes.tsx';
import { RefusedRecords } from '../refused/refused.tsx';
import { mapOf, noOptions, optionsOf } from './inspection.ts';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

/** Returns the options of the load, with the map or the preset that is proposed if none was chosen. */
function loadOptions(query: Query, { map, preset }: Inspection): Record<string, unknown> {
  const options = optionsOf(query);
  if (mapOf(query) !== null || query.get('mapping') !== '') return options;
  if (preset !== null) return { ...options, preset };
  return Object.keys(map).length === 0 ? options : { ...options, map };
}

/** Has the server read the whole file without writing anything. */
export function StartPlan({ query, found }: Props): VNode {
  const start = async (): Promise<void> => {
    const body = { ...loadOptions(query, found), plan: true };
    const { job_id } = await api<{ readonly job_id: string }>('/v1/imports', { method: 'POST', body });
    query.set({ plan: job_id, step: 'plan', job: undefined });
  };
  const isIdMissing =
    !found.columns.some(({ becomes }) => becomes === 'user_id' || becomes === 'company_id') &&
    (found.preset === null || mapOf(query) !== null);
  return (
    <>
      <ActionButton look="main" needs="import" disabled={isIdMissing} act={start}>
        Plan the load
      </ActionButton>
      <p class="hint">
        {isIdMissing
          ? 'First choose the column that is the user id or the company id.'
          : 'Reads the whole file, and writes nothing.'}
      </p>
    </>
  );
}

/** Shows what the load would do, before it does anything. */
export function Plan({ query, found }: Props): VNode {
  const jobId = query.get('plan');
  const job = useLoad(jobId);
  if (jobId === '') {
    return (
      <Section title="Not planned yet">
        <div class="step-foot step-foot-alone">
          <StartPlan query={query} found={found} />
        </div>
      </Section>
    );
  }
  if (job.data === undefined || job.data.job_id !== jobId) {
    return job.error === null ? <Loading /> : <Problems error={job.error} onRetry={job.reload} />;
  }
  if (!isEnded(job.data)) {
    return (
      <>
        <Problems error={job.error} onRetry={job.reload} />
        <Progress job={job.data} words="Reading the whole file; nothing is written" />
      </>
    );
  }
  return (
    <>
      <Problems error={job.error} />
      <Planned query={query} job={job.data} />
    </>
  );
}

function Progress({ job, words }: { readonly job: LoadDetail; readonly words: string }): VNode {
  return (
    <Section title={words} aside={<StatusBadge status={job.status} />}>
      <div class="load-progress">
        <progress max={1} value={job.progress} aria-label={words} />
        <p class="num muted" role="status">
          {formatCount(job.completed_rows)} of {plural(job.total_rows, 'record')} ·{' '}
          {formatShare(job.completed_rows, job.total_rows)}
          {job.rows_per_second === null ? '' : ` · ${formatCount(job.rows_per_second)} a second`}
          {job.queue_position === null ? '' : ` · ${plural(job.queue_position, 'job')} ahead`}
        </p>
        {job.last_error === null ? null : <p class="warn">{job.last_error}</p>}
        <div>
          <ActionButton needs="import" act={() => cancelLoad(job.job_id)}>
            Stop
          </ActionButton>
        </div>
      </div>
    </Section>
  );
}

function Planned({ query, job }: Pick<Props, 'query'> & { readonly job: LoadDetail }): VNode {
  const { counts, failure } = job;
  const writes = counts.inserted + counts.updated;
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
        <Balance jobId={job.job_id} counts={{ ...counts }} total={job.total_rows} />
      </Section>
      {job.plan == null ? null : <Changes jobId={job.job_id} />}
      <div class="step-foot">
        <Apply query={query} job={job} writes={writes} />
      </div>
    </>
  );
}

/** The share of superseded records from which a notice is shown. */
const usualSuperseded = 0.2;

/** Warns if many rows share their id: most files have an id once, so another column is likely to be the id. */
function Superseded({ query, job }: Pick<Props, 'query'> & { readonly job: LoadDetail }): VNode | null {
  const { superseded, read } = job.counts;
  if (superseded <= usualSuperseded * read) return null;
  return (
    <Notice>
      {`${formatShare(superseded, read)} of the records (${formatCount(superseded)}) share their id with a later one in the file, and only the last of each counts. The column chosen as the id is probably not what the rows are about. `}
      <a href={query.href({ step: 'columns' })}>Look at the columns</a>
    </Notice>
  );
}

interface ApplyProps {
  readonly query: Query;
  readonly job: LoadDetail;
  readonly writes: number;
}

function Apply({ query, job, writes }: ApplyProps): VNode {
  if (job.plan != null && job.plan.applied_at !== null)
    return (
      <a href={query.href({ step: 'result', job: job.job_id })}>This plan was applied: see the result</a>
    );
  if (job.status === 'cancelled') return <p class="hint">The plan was stopped. Nothing was written.</p>;
  if (job.status !== 'completed')
    return <p class="hint">Nothing would be loaded. Change the columns or how the file is read.</p>;
  const refused =
    job.counts.rejected === 0
      ? ''
      : ` ${plural(job.counts.rejected, 'record')} will be refused, and can be mended then.`;
  return (
    <>
      <ApplyButton query={query} jobId={job.job_id} onDrift="refuse">
        Load: write {plural(writes, 'record')}
      </ApplyButton>
      <p class="hint">
        {formatCount(job.counts.inserted)} new, {formatCount(job.counts.updated)} changed.{refused}
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
    await api(`${jobPath(jobId)}/apply`, { method: 'POST', body: { on_drift: onDrift } });
    query.set({ step: 'result', job: jobId });
  };
  return (
    <ActionButton look="main" needs="import" act={apply}>
      {children}
    </ActionButton>
  );
}

/** Shows the result: the ledger's counts, and below them the refused records, to be mended here. */
export function Result({ query, jobId }: { readonly query: Query; readonly jobId: string }): VNode {
  const job = useLoad(jobId);
  const found = job.data?.job_id === jobId ? job.data : undefined;
  if (found === undefined)
    return job.error === null ? <Loading /> : <Problems error={job.error} onRetry={job.reload} />;
  const { counts, failure } = found;
  if (!isEnded(found)) {
    return (
      <>
        <Problems error={job.error} onRetry={job.reload} />
        <Progress job={found} words="Loading" />
      </>
    );
  }
  const another = { ...noOptions, upload: undefined, step: undefined };
  return (
    <>
      <Problems error={job.error} />
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {failure?.error_code === 'plan_drifted' ? (
        <p class="result-links">
          <ApplyButton query={query} jobId={jobId} onDrift="proceed">
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
      <Section title={`${plural(counts.read, 'record')} read`} aside={<StatusBadge status={found.status} />}>
        <Balance jobId={jobId} counts={{ ...counts }} total={found.total_rows} />
        <p class="result-links">
          <a class="button" href={jobHref(jobId)}>
            The job
          </a>
          <a class="button button-quiet" href={query.href(another)}>
            Load another file
          </a>
        </p>
      </Section>
      {counts.rejected + counts.amended > 0 ? (
        <RefusedRecords query={query} job={found} onChange={job.reload} />
      ) : null}
    </>
  );
}
