import type { ComponentChildren, VNode } from 'preact';
import { api, mayUse } from '../../lib/api.ts';
import { formatCount, formatShare, plural } from '../../lib/format.ts';
import { apiHref, screenHref } from '../../lib/place.ts';
import { useAction, useData } from '../../lib/use-data.ts';
import type { Query } from '../../lib/use-query.ts';
import { StatusBadge } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/page.tsx';
import { Loading, Problems } from '../../ui/problems.tsx';
import { Balance } from '../job/balance.tsx';
import { Changes } from './changes.tsx';
import { type Inspection, mapOf, optionsOf } from './inspection.ts';
import { cancelLoad, isEnded, type LoadDetail, type PlanDetail, useLoad } from './load-record.ts';

interface Props {
  readonly query: Query;
  readonly found: Inspection;
}

/** As they are asked for: with the map or the preset that is proposed, where none was chosen. */
function loadOptions(query: Query, { map, preset }: Inspection): Record<string, unknown> {
  const options = optionsOf(query);
  if (mapOf(query) !== null || query.get('mapping') !== '') return options;
  if (preset !== null) return { ...options, preset };
  return Object.keys(map).length === 0 ? options : { ...options, map };
}

/** Has the server go through the whole file and write nothing. */
export function StartPlan({ query, found }: Props): VNode {
  const start = useAction(async () => {
    const body = { ...loadOptions(query, found), plan: true };
    const { job_id } = await api<{ readonly job_id: string }>('/v1/imports', { method: 'POST', body });
    query.set({ plan: job_id, step: 'plan', job: undefined });
  });
  const isIdMissing =
    !found.columns.some(({ becomes }) => becomes === 'user_id' || becomes === 'company_id') &&
    (found.preset === null || mapOf(query) !== null);
  return (
    <>
      <Problems error={start.error} />
      <button
        type="button"
        class="button button-main"
        disabled={start.isRunning || isIdMissing || !mayUse('import')}
        onClick={() => void start.run()}
      >
        Plan the load
      </button>
      <p class="hint">
        {isIdMissing
          ? 'First choose the column that is the user id or the company id.'
          : 'Reads the whole file, and writes nothing.'}
      </p>
    </>
  );
}

/** What the load would do, before it does anything. */
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

export function Progress({ job, words }: { readonly job: LoadDetail; readonly words: string }): VNode {
  const done = formatCount(job.completed_rows);
  const cancel = useAction(() => cancelLoad(job.job_id));
  return (
    <Section title={words} aside={<StatusBadge status={job.status} />}>
      <div class="load-progress">
        <progress max={1} value={job.progress} aria-label={words} />
        <p class="num muted" role="status">
          {done} of {plural(job.total_rows, 'record')} · {formatShare(job.completed_rows, job.total_rows)}
          {job.rows_per_second === null ? '' : ` · ${formatCount(job.rows_per_second)} a second`}
          {job.queue_position === null ? '' : ` · ${plural(job.queue_position, 'job')} ahead`}
        </p>
        {job.last_error === null ? null : <p class="warn">{job.last_error}</p>}
        <Problems error={cancel.error} />
        <button
          type="button"
          class="button"
          disabled={cancel.isRunning || !mayUse('import')}
          onClick={() => void cancel.run()}
        >
          Stop
        </button>
      </div>
    </Section>
  );
}

function Planned({ query, job }: Pick<Props, 'query'> & { readonly job: LoadDetail }): VNode {
  const { counts, failure } = job;
  const path = `/v1/background_jobs/${job.job_id}/plan`;
  const plan = useData(job.plan == null ? null : path, (signal) => api<PlanDetail>(path, { signal }));
  const writes = counts.inserted + counts.updated;
  return (
    <>
      {failure === null ? null : <Notice>{failure.message}</Notice>}
      {job.duplicate_of === null ? null : <Duplicate jobId={job.duplicate_of} />}
      <Superseded query={query} job={job} />
      <Section title={`${plural(counts.read, 'record')} planned`}>
        <Balance jobId={job.job_id} counts={{ ...counts }} total={job.total_rows} />
      </Section>
      <Problems error={plan.error} onRetry={plan.reload} />
      {plan.data === undefined ? null : <Changes plan={plan.data} csv={apiHref(`${path}?format=csv`)} />}
      <div class="step-foot">
        <Apply query={query} job={job} writes={writes} />
      </div>
    </>
  );
}

/** So many of the records may give way to a later one before it is worth a word. */
const usualSuperseded = 0.2;

/** Most files have an id once: where many rows share theirs, it is likely to be another column. */
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

function Duplicate({ jobId }: { readonly jobId: string }): VNode {
  return (
    <div class="notice">
      <p>
        The same bytes were loaded before, by <a href={screenHref(`/jobs/${jobId}`)}>this job</a>.
      </p>
    </div>
  );
}

function Apply({
  query,
  job,
  writes,
}: Pick<Props, 'query'> & { readonly job: LoadDetail; readonly writes: number }): VNode {
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

/** Has the server load exactly what it planned. `refuse`: only if no profile of the plan has changed since. */
export function ApplyButton({
  query,
  jobId,
  onDrift,
  children,
}: {
  readonly query: Query;
  readonly jobId: string;
  readonly onDrift: 'refuse' | 'proceed';
  readonly children: ComponentChildren;
}): VNode {
  const apply = useAction(async () => {
    await api(`/v1/background_jobs/${jobId}/apply`, { method: 'POST', body: { on_drift: onDrift } });
    query.set({ step: 'result', job: jobId });
  });
  return (
    <>
      <Problems error={apply.error} />
      <button
        type="button"
        class="button button-main"
        disabled={apply.isRunning || !mayUse('import')}
        onClick={() => void apply.run()}
      >
        {children}
      </button>
    </>
  );
}
