import type { VNode } from 'preact';
import { useRoute } from 'preact-iso';
import type { Delivery } from '../../../../api/delivery.ts';
import type { JobHistory } from '../../../../api/job.ts';
import { screenHref, withQuery } from '../../lib/address.ts';
import { apiPage } from '../../lib/api.ts';
import { formatBytes, formatCount, formatMs, formatShare, plural, visibleText } from '../../lib/format.ts';
import { isLoad, isUnfinished, jobTypeNames, refusedHref, workMs } from '../../lib/jobs.ts';
import type { JobDetail } from '../../lib/records.ts';
import { useData } from '../../lib/use-data.ts';
import { Badge, StatusBadge } from '../../ui/badge.tsx';
import { CopyAs, CopyButton } from '../../ui/button.tsx';
import { Icon } from '../../ui/icons.tsx';
import { type Fact, Facts, Page, Section } from '../../ui/page.tsx';
import { Loading, Notice, Problems, StaleNotice } from '../../ui/problems.tsx';
import { Table } from '../../ui/table.tsx';
import { JobLink, Time } from '../../ui/text.tsx';
import { deliveryColumns } from '../deliveries/delivery.tsx';
import { JobActions } from './actions.tsx';
import { Balance } from './balance.tsx';
import { Changes } from './changes.tsx';
import { Chunks } from './chunks.tsx';
import { Phases, waitedMs } from './phases.tsx';
import { sameAgain } from './same-again.ts';
import { type ShownJob, useJob } from './use-job.ts';

/** Shows a load, export or deletion, running or ended. */
export function Job(): VNode {
  const { job: id = '' } = useRoute().params;
  // Another id is another screen: nothing of the job before is shown.
  return <JobOf key={id} id={id} />;
}

function JobOf({ id }: { readonly id: string }): VNode {
  const { detail: job, history, chunks, error, reload } = useJob(id);
  return (
    <Page
      title={job === undefined ? 'Job' : visibleText(job.filename)}
      parent={{ title: 'Jobs', href: screenHref('/jobs') }}
      aside={job === undefined ? null : <State job={job} />}
      actions={job === undefined ? null : <JobActions job={job} onDone={reload} />}
    >
      <Problems error={error} onRetry={reload} />
      <StaleNotice />
      {job === undefined ? (
        error === null ? (
          <Loading rows={10} />
        ) : null
      ) : (
        <Shown job={job} history={history} chunks={chunks} />
      )}
    </Page>
  );
}

type ShownProps = Pick<ShownJob, 'history' | 'chunks'> & { readonly job: JobDetail };

function Shown({ job, history, chunks }: ShownProps): VNode {
  return (
    <>
      <Trouble job={job} />
      {isUnfinished(job) ? <Progress job={job} /> : null}
      {isLoad(job) && job.counts !== undefined ? (
        <Section title="Balance" aside={<Refusals job={job} />}>
          <Balance jobId={job.job_id} counts={job.counts} total={job.total_rows} />
        </Section>
      ) : null}
      {history === undefined ? null : (
        <Section title="Timeline" aside={<Took job={job} phases={history.phases} />}>
          <Phases phases={history.phases} isRunning={isUnfinished(job)} />
        </Section>
      )}
      {chunks.length === 0 ? null : (
        <Section
          title="Chunks"
          aside={<span class="faint num">{plural(chunks.length, 'part')} of the file</span>}
        >
          <Chunks chunks={chunks} />
        </Section>
      )}
      {job.plan == null ? null : <Changes jobId={job.job_id} />}
      {isUnfinished(job) ? null : <Told jobId={job.job_id} />}
      <div class="columns">
        <Section title={isLoad(job) ? 'File' : 'Details'}>
          <Facts of={factsOf(job)} />
        </Section>
        {history === undefined ? null : (
          <Section title="Request">
            <Facts of={originFacts(job, history)} />
            <Parameters of={history.parameters} />
          </Section>
        )}
      </div>
      {history === undefined ? null : (
        <Section title="Repeat this job">
          <CopyAs forms={sameAgain(job, history)} />
        </Section>
      )}
    </>
  );
}

function State({ job }: { readonly job: JobDetail }): VNode {
  return (
    <>
      <StatusBadge status={job.status} />
      {job.dry_run === true ? <Badge tone="off">dry run</Badge> : null}
      {job.status === 'queued' && job.queue_position != null && job.queue_position > 0 ? (
        <span class="faint">{plural(job.queue_position, 'job')} ahead</span>
      ) : null}
    </>
  );
}

/** Shows why the job failed, or the error of its last try. */
function Trouble({ job }: { readonly job: JobDetail }): VNode | null {
  if (job.failure !== null) {
    return (
      <div class="problems">
        <Icon name="warning" />
        <div>
          <p class="break">{job.failure.message}</p>
          <p class="problem-codes">{job.failure.error_code}</p>
        </div>
      </div>
    );
  }
  if (job.last_error === null) return null;
  return (
    <Notice>
      <p>It is being retried. The last error:</p>
      <p class="mono break">{job.last_error}</p>
    </Notice>
  );
}

const toldPollMs = 5_000;

/** Shows who was told that the job ended, and what they answered. */
function Told({ jobId }: { readonly jobId: string }): VNode | null {
  const path = withQuery('/v1/deliveries', { job_id: jobId });
  const { data, error, reload } = useData(path, (signal) => apiPage<Delivery>(path, { signal }), {
    everyMs: toldPollMs,
  });
  if (error === null && (data === undefined || data.items.length === 0)) return null;
  return (
    <Section title="Notifications" flush>
      <Problems error={error} onRetry={reload} />
      <Table
        caption="Deliveries about the end of this job"
        columns={deliveryColumns}
        rows={data?.items ?? []}
        keyOf={({ delivery_id }) => delivery_id}
        hrefOf={({ delivery_id }) => screenHref(`/deliveries/${delivery_id}`)}
      />
    </Section>
  );
}

function Progress({ job }: { readonly job: JobDetail }): VNode {
  const { completed_rows: done, total_rows: total, rows_per_second: rate } = job;
  const isEstimate = job.type === 'export';
  const left = rate == null || rate === 0 ? null : ((total - done) / rate) * 1_000;
  return (
    <div class="panel job-progress">
      <progress value={job.progress} max={1} aria-label="Progress" />
      <p class="job-progress-text num">
        <strong>{formatShare(Math.round(job.progress * 10_000), 10_000)}</strong>
        <span>
          {formatCount(done)} of {isEstimate ? 'about ' : ''}
          {formatCount(total)} rows
        </span>
        {rate == null ? null : <span>{formatCount(rate)} rows/s</span>}
        {left === null || left <= 0 ? null : <span>about {formatMs(left)} left</span>}
      </p>
    </div>
  );
}

function Refusals({ job }: { readonly job: JobDetail }): VNode | null {
  const { rejects } = job;
  if (rejects === undefined || rejects.count === 0) return null;
  const codes = Object.entries(rejects.by_code).slice(0, 3);
  return (
    <a class="job-refusals" href={refusedHref(job.job_id)}>
      <Icon name="warning" size={12} />
      {plural(rejects.count, 'record')} refused:{' '}
      {codes.map(([code, count]) => `${code} ${formatCount(count)}`).join(', ')}
    </a>
  );
}

/** Shows how long the current work has taken, and the waiting. */
function Took({ job, phases }: { readonly job: JobDetail; readonly phases: JobHistory['phases'] }): VNode {
  const rate = job.rows_per_second;
  const ms = workMs(job);
  const waited = waitedMs(phases);
  return (
    <span class="faint num">
      {ms === null ? 'waiting' : formatMs(ms)}
      {waited < shownWaitMs ? '' : ` · waited ${formatMs(waited)}`}
      {rate == null ? '' : ` · ${formatCount(rate)} rows/s`}
      {job.attempts > 1 ? ` · begun ${job.attempts} times` : ''}
    </span>
  );
}

/** A shorter wait is not shown. */
const shownWaitMs = 1_000;

function factsOf(job: JobDetail): readonly Fact[] {
  const common: readonly Fact[] = [
    ['Type', jobTypeNames[job.type] ?? job.type],
    ['Job', <Copied key="job" text={job.job_id} />],
  ];
  if (isLoad(job)) return [...common, ...loadFacts(job)];
  if (job.type === 'export') {
    return [
      ...common,
      ['Rows', formatCount(job.completed_rows)],
      ['Size', formatBytes(job.file_size)],
      ...(job.warnings ?? []).map(({ message, details }) => ['Ignored', `${details}: ${message}`] as const),
    ];
  }
  const { counts = {}, removed = {} } = job;
  return [
    ...common,
    ['Ids', `${formatCount(counts['requested'] ?? 0)} requested`],
    ['Deleted', formatCount(counts['deleted'] ?? 0)],
    ['Not found', formatCount(counts['not_found'] ?? 0)],
    ...Object.entries<number>(removed).map(
      ([name, count]) => [`Removed ${name}`, formatCount(count)] as const,
    ),
  ];
}

function loadFacts(job: JobDetail): readonly Fact[] {
  const { read_as: readAs } = job;
  const format = readAs === null || readAs === undefined ? null : describeFormat(readAs);
  return [
    ['Name', visibleText(job.filename)],
    ['Size', `${formatBytes(job.file_size)}, ${plural(job.total_rows, 'row')}`],
    ['Read as', format],
    ['SHA-256', job.sha256 === undefined ? null : <Copied key="sha" text={job.sha256} />],
    ['Same bytes as', job.duplicate_of == null ? null : <JobLink key="dup" id={job.duplicate_of} />],
    ['Mends', job.amends == null ? null : <JobLink key="amends" id={job.amends} />],
    ...(job.amendments ?? []).map(
      (each) =>
        [
          'Mended by',
          <span key={each.job_id}>
            <JobLink id={each.job_id} /> {plural(each.total_rows, 'record')}, {each.status}
          </span>,
        ] as const,
    ),
    ...(readAs?.notes ?? []).map((text) => ['Remarks', text] as const),
  ];
}

function describeFormat({ format, encoding, csv, sheet, member }: NonNullable<JobDetail['read_as']>): string {
  const parts = [format.toUpperCase()];
  if (encoding !== null) parts.push(encoding);
  if (csv !== null)
    parts.push(`delimiter ${JSON.stringify(csv.delimiter)}`, plural(csv.columns.length, 'column'));
  if (sheet !== null) parts.push(`sheet ${visibleText(sheet)}`);
  if (member !== null) parts.push(`file ${visibleText(member)}`);
  return parts.join(', ');
}

const origins: Readonly<Record<string, string>> = {
  api_key: 'API key',
  schedule: 'Schedule',
  inbox: 'Inbox',
  command_line: 'Command line',
};

function originFacts(job: JobDetail, { origin, request_id }: JobHistory): readonly Fact[] {
  const { kind, name } = origin ?? { kind: '', name: null };
  return [
    [
      'By',
      origin === null ? 'not known' : [origins[kind] ?? kind, name].filter((part) => part !== null).join(' '),
    ],
    ['Request id', request_id === null ? 'not by HTTP' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={job.start_time} />],
  ];
}

/** Shows the parameters that were given. */
function Parameters({ of }: { readonly of: JobHistory['parameters'] }): VNode | null {
  const given = Object.entries(of).filter(([name, value]) => name !== 'chunks' && isSaid(value));
  if (given.length === 0) return null;
  return (
    <dl class="facts parameters">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt class="mono">{name}</dt>
          <dd class="mono">{typeof value === 'string' ? visibleText(value) : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function isSaid(value: unknown): boolean {
  if (value === null || value === undefined || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

function Copied({ text }: { readonly text: string }): VNode {
  return (
    <span class="copied">
      <span class="mono copied-text">{text}</span>
      <CopyButton text={text} />
    </span>
  );
}
