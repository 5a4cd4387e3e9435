import { MAX_PAGE_SIZE } from '../base/limits.ts';
import { walkPages } from '../base/pages.ts';
import { formatCount, plural } from '../base/wording.ts';
import { choice, defineCommand, flag, jobIdArgument, limitOption } from '../cli/define-command.ts';
import { exitCodeOf } from '../cli/errors.ts';
import { createProgress, type Followed } from '../cli/follow.ts';
import { listenForStop } from '../cli/processes.ts';
import { withEnvironment } from '../cli/session.ts';
import { printDone, printList, printRecord, type Terminal } from '../cli/terminal.ts';
import type { System } from '../context.ts';
import { followDeletion } from '../deletion/cli.ts';
import type { ListedJob } from '../domain/job.ts';
import { loadStatuses } from '../domain/load.ts';
import { followExport } from '../export/cli.ts';
import { renderJobListItem, renderListedJob } from '../http/render.ts';
import { isLoadTakenBack } from '../load/end-store.ts';
import { followLoad, queueLoad, queues } from '../load/follow.ts';
import { apply, plan, release } from '../load/plans/cli.ts';
import { rejects } from '../load/rejects/cli.ts';
import { retryLoad } from '../load/retry.ts';
import { pageJobs } from '../tasks/job-store.ts';
import { cancelFoundJob, type Job, jobTypes, renderJobDetail, requireJob, requireRetryable } from './jobs.ts';

const list = defineCommand({
  name: 'list',
  summary: 'the latest jobs',
  description: 'Lists the jobs of an environment, loads, exports and deletions, newest first.',
  options: {
    status: choice('--status <status>', 'only jobs in this status', loadStatuses),
    type: choice('--type <type>', 'only jobs of this type', jobTypes),
    limit: limitOption(20),
  },
  json: true,
  examples: [
    'sluice jobs list',
    'sluice jobs list --type export',
    'sluice jobs list --status failed --limit 5 --json | jq .[].job_id',
  ],
  inEnvironment: async (call) => {
    const { system, environmentId, baseUrl, flags, json, terminal } = call;
    const { type, status, limit } = flags;
    const filter = { types: type && [type], statuses: status && [status] };
    const jobs: ListedJob[] = [];
    let total = 0;
    const read = (after: string | null) => {
      const page = { limit: Math.min(limit - jobs.length, MAX_PAGE_SIZE), after };
      return pageJobs(system.db, environmentId, filter, page);
    };
    for await (const page of walkPages(null, read)) {
      jobs.push(...page.jobs);
      total = page.total;
      if (jobs.length >= limit) break;
    }
    const records = jobs.map((job) => renderListedJob(job, baseUrl));
    printList(call, records, {
      columns: ['job_id', 'type', 'status', 'filename', 'start_time', 'total_rows'],
      none: 'There are no such jobs.',
    });
    if (json || jobs.length === 0 || total <= jobs.length) return;
    terminal.inform(`${formatCount(total)} in all; --limit shows more.`);
  },
});

const show = defineCommand({
  name: 'show',
  summary: 'one job in full',
  description:
    'Shows a load, an export or a deletion: its counts, its rejects by reason or its files, why it failed.',
  argument: jobIdArgument,
  options: { watch: flag('--watch', 'follow it until it has ended; exit code 1 if it did not complete') },
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs show 0195… --watch', 'sluice jobs show 0195… --json | jq .counts'],
  run: async (invocation) => {
    const { argument: jobId, flags, terminal, json } = invocation;
    const { signal } = listenForStop();
    await withEnvironment(invocation, async ({ system, environmentId, baseUrl }) => {
      const current = await requireJob(system, environmentId, jobId);
      const followed = { environmentId, jobId, signal };
      const job = flags.watch
        ? await followJob(system, current, followed, { terminal, quiet: json })
        : current;
      const record = await renderJobDetail(system, environmentId, job, baseUrl);
      printRecord(invocation, json ? record : withoutAbsentKinds(record));
      if (flags.watch) process.exitCode = exitCodeOf(job);
    });
  },
});

/** Leaves out the zero counts for kinds of records that the file does not contain. */
function withoutAbsentKinds(record: object): object {
  if (!('counts_by_kind' in record) || record.counts_by_kind === null) return record;
  const kinds = Object.entries(record.counts_by_kind as Readonly<Record<string, { readonly read: number }>>);
  return { ...record, counts_by_kind: Object.fromEntries(kinds.filter(([, { read }]) => read > 0)) };
}

const cancel = defineCommand({
  name: 'cancel',
  summary: 'stop a load or an export that has not ended, or discard a held load',
  description:
    'Stops a load or an export that has not ended, or discards a held load. What a load applied so far stays, and `sluice jobs retry` continues with\n' +
    'the rest; of an export nothing stays. A deletion cannot be cancelled.',
  argument: jobIdArgument,
  json: 'print the job record as JSON',
  examples: ['sluice jobs cancel 0195…'],
  inEnvironment: async (call) => {
    const { system, environmentId, baseUrl, argument } = call;
    const job = await cancelFoundJob(
      system,
      environmentId,
      await requireJob(system, environmentId, argument),
      { by: { kind: 'command_line', name: null } },
    );
    const rest = await describeRest(system, environmentId, job);
    printDone(call, renderJobListItem(job, baseUrl), `Cancelled; ${rest}`);
  },
});

async function describeRest({ db, loads }: System, environmentId: number, job: Job): Promise<string> {
  if (job.kind !== 'load' || job.held?.decidedAt != null) return 'nothing of it stays.';
  const isTakenBack = await isLoadTakenBack(db, loads, environmentId, job.jobId);
  const rest = isTakenBack ? 'are being undone' : 'stay';
  return `${formatCount(job.tally.read)} of ${plural(job.totalRows, 'row')} had been done and ${rest}.`;
}

const retry = defineCommand({
  name: 'retry',
  summary: 'continue a load that failed or was cancelled',
  description: 'Queues a failed or cancelled load again. It continues with the chunks that are left.',
  ...queues,
  examples: ['sluice jobs retry 0195… --wait'],
  run: async (invocation) => {
    const { argument: jobId, flags } = invocation;
    await queueLoad(invocation, flags.wait, async ({ system, environmentId }) => {
      await requireRetryable(system, environmentId, jobId);
      await retryLoad(system, environmentId, jobId);
      return jobId;
    });
  },
});

export const jobs = defineCommand({
  name: 'jobs',
  summary: 'look at loads, exports and deletions; cancel, retry',
  description:
    'Looks at the jobs of an environment, loads, exports and deletions, and acts on them. A server need not run.',
  examples: ['sluice jobs list --status failed', 'sluice jobs show 0195… --watch'],
  commands: [list, show, cancel, retry, release, plan, apply, rejects],
});

async function followJob(
  system: System,
  job: Job,
  followed: Followed,
  { terminal, quiet }: { readonly terminal: Terminal; readonly quiet: boolean },
): Promise<Job> {
  if (job.kind === 'deletion') return { kind: 'deletion', ...(await followDeletion(system, followed)) };
  const progress = createProgress(terminal, job.kind === 'export' ? 'export' : job.jobId, quiet);
  if (job.kind === 'export') return { kind: 'export', ...(await followExport(system, followed, progress)) };
  return { kind: 'load', ...(await followLoad(system, followed, progress)) };
}
