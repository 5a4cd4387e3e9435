import { parts } from 'sluice:capabilities';
import type { ComponentChildren, VNode } from 'preact';
import { summaries } from '../../base/wording.ts';
import { screenHref } from '../../console/client/lib/address.ts';
import {
  formatBytes,
  formatCount,
  formatMs,
  formatShare,
  plural,
  visibleText,
} from '../../console/client/lib/format.ts';
import {
  isLoad,
  isUnfinished,
  type JobDetail,
  type LoadJob,
  refusedHref,
  workMs,
} from '../../console/client/lib/jobs.ts';
import type { JobProps } from '../../console/client/part.ts';
import { JobLink, Notice } from '../../console/client/ui/page.tsx';
import { ownJobTypes } from './job-types.ts';

const nouns: Readonly<Record<string, readonly [one: string, many: string]>> = {
  users: ['user', 'users'],
  companies: ['company', 'companies'],
};

interface LoadProps {
  readonly job: LoadJob;
}

/** The outcome or progress of the job in a sentence, and what a person has to do. */
export function Answer({ job }: JobProps): VNode {
  const { status, failure, last_error: lastError } = job;
  if (isUnfinished(job))
    return (
      <div class="panel panel-padded stack">
        {status === 'queued' ? <p class="outcome">{waitingText(job)}</p> : <Progress job={job} />}
        {isLoad(job) && job.plan !== null && job.plan.applied_at === null ? (
          <p class="hint">The whole file is read, and nothing is written.</p>
        ) : null}
        {lastError === null ? null : (
          <Notice>
            <p>It is being retried. The last error:</p>
            <p class="mono">{lastError}</p>
          </Notice>
        )}
      </div>
    );
  if (isLoad(job) && status === 'held') return <Held job={job} />;
  if (status === 'cancelled')
    return (
      <Notice>
        Cancelled after {formatCount(job.completed_rows)} of {plural(job.total_rows, 'row')}. What has been
        applied stays.
      </Notice>
    );
  if (failure !== null)
    return (
      <Notice look="bad">
        <p>
          {failure.message}
          {isLoad(job) ? <Rejected job={job} /> : null}
        </p>
        <p class="codes">{failure.error_code}</p>
      </Notice>
    );
  if (isLoad(job)) return <LoadOutcome job={job} />;
  return (
    <Notice look="good">
      <p class="outcome">{otherOutcome(job)}</p>
    </Notice>
  );
}

function LoadOutcome({ job }: LoadProps): VNode {
  const needsNobody = job.dry_run || waitingRejects(job) <= 0;
  return (
    <Notice look={needsNobody ? 'good' : 'warn'}>
      <p class="outcome">
        {loadOutcome(job)}
        <Rejected job={job} />
      </p>
      {summaries(job).map(([name, summary]) => (
        <p key={name}>{visibleText(summary)}</p>
      ))}
      <p class="row">{linksOf(job)}</p>
      {job.dry_run ? <Doubts job={job} /> : null}
    </Notice>
  );
}

/** Above this share of superseded records, the page shows a notice. */
const usualSuperseded = 0.2;

function Doubts({ job: { counts, duplicate_of: twin } }: LoadProps): VNode {
  const { superseded, read } = counts;
  return (
    <>
      {twin === null ? null : (
        <p class="warn">
          The same bytes were loaded before, by <JobLink id={twin} />.
        </p>
      )}
      {superseded <= usualSuperseded * read ? null : (
        <p class="warn">
          {formatShare(superseded, read)} of the records ({formatCount(superseded)}) share their id with a
          later one in the file, and only the last of each counts. Another column is probably the id.
        </p>
      )}
    </>
  );
}

function Progress({ job }: JobProps): VNode {
  const { completed_rows: completed, total_rows: total } = job;
  const rate = 'rows_per_second' in job ? job.rows_per_second : null;
  const remainingMs = rate === null || rate === 0 ? 0 : ((total - completed) / rate) * 1_000;
  return (
    <div class="stack">
      <progress value={job.progress} max={1} aria-label="Progress" />
      <p class="row muted num">
        <strong>{formatShare(Math.round(job.progress * 10_000), 10_000)}</strong>
        <span>
          {formatCount(completed)} of {job.type === 'export' ? 'about ' : ''}
          {formatCount(total)} rows
        </span>
        {rate === null ? null : <span>{formatCount(rate)} rows/s</span>}
        {remainingMs <= 0 ? null : <span>about {formatMs(remainingMs)} left</span>}
      </p>
    </div>
  );
}

function waitingText(job: JobDetail): string {
  const ahead = 'queue_position' in job ? job.queue_position : null;
  return ahead ? `Waiting for its turn: ${plural(ahead, 'job')} ahead.` : 'Waiting for a worker.';
}

function Held({ job: { held } }: LoadProps): VNode {
  return (
    <Notice>
      <p>The file differs from what was expected. Nothing was written. Load it anyway, or discard it.</p>
      {held?.reasons.map(({ figure, message }) => (
        <p key={message}>
          {figure}: {visibleText(message)}
        </p>
      ))}
    </Notice>
  );
}

/** Number of rejects that no later load has corrected. */
function waitingRejects({ rejects }: LoadJob): number {
  return rejects.count - rejects.loaded_since.count;
}

function Rejected({ job: { job_id, dry_run, rejects } }: LoadProps): VNode | null {
  const rejected = rejects.count;
  if (rejected === 0) return null;
  const since = rejects.loaded_since.count;
  const text = plural(rejected, 'rejected record');
  return (
    <>
      ;{' '}
      <a href={refusedHref(job_id)}>
        {dry_run || since >= rejected ? text : `${text} ${rejected === 1 ? 'needs' : 'need'} you`}
      </a>
      {since === 0 ? null : `; ${formatCount(since)} of ${plural(rejected, 'refused record')} loaded since`}
    </>
  );
}

function otherOutcome(job: Exclude<JobDetail, LoadJob>): string {
  const duration = formatMs(workMs(job));
  if (job.type === 'export')
    return `${plural(job.completed_rows, 'row')} exported in ${duration}, ${formatBytes(job.file_size)}`;
  const { deleted, requested } = job.counts;
  return `${formatCount(deleted)} of ${plural(requested, 'id')} deleted in ${duration}`;
}

function loadOutcome(job: LoadJob): string {
  const { inserted, updated, unchanged, removed } = job.counts;
  const ownType = ownJobTypes.get(job.type);
  if (ownType !== undefined && !job.dry_run) return ownType.outcome(job);
  const noun = nouns[String(job.options['entity'])] ?? ['record', 'records'];
  const what = plural(inserted + updated + unchanged, ...noun);
  const gone = removed === 0 ? '' : `, ${formatCount(removed)} removed`;
  return job.dry_run
    ? `Nothing is written yet: ${what} would be stored${gone}`
    : `${what} stored in ${formatMs(workMs(job))}${gone}`;
}

function linksOf(job: LoadJob): ComponentChildren {
  const { job_id, counts, options } = job;
  const entity = options['entity'];
  const [others = null] = parts.flatMap(({ jobLinks }) => jobLinks?.(job) ?? []);
  if (others !== null) return others;
  if (job.dry_run || counts.inserted + counts.updated === 0) return null;
  return (
    <>
      {entity === 'companies' ? null : <a href={screenHref('/people', { job_id })}>The users it wrote</a>}
      {entity === 'users' ? null : <a href={screenHref('/companies', { job_id })}>The companies it wrote</a>}
    </>
  );
}
