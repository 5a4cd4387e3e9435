import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import type { JobHistory } from '../../../../http/job.ts';
import { jobTypeNames } from '../../app/job-types.ts';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import { isLoad, type JobDetail, originText } from '../../lib/jobs.ts';
import { CopyButton } from '../../ui/controls.tsx';
import { type Fact, JobLink, Time } from '../../ui/page.tsx';

/** Returns what is known of the job, then who or what asked for it, with the parameters that were given. */
export function factsOf(job: JobDetail, history: JobHistory): readonly Fact[] {
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
    ...requestFacts(history, job.start_time),
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

function requestFacts({ origin, request_id, parameters }: JobHistory, startTime: string): readonly Fact[] {
  const given = Object.entries(parameters).filter(([name, value]) => name !== 'chunks' && isSaid(value));
  return [
    ['By', originText(origin)],
    ['Request id', request_id === null ? 'none' : <Copied key="request" text={request_id} />],
    ['At', <Time key="at" at={startTime} />],
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
