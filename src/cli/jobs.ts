import {
  cancelFoundJob,
  type Job,
  type JobPage,
  jobTypes,
  listJobs,
  renderJob,
  renderJobDetail,
  renderJobListItem,
  requireJob,
  requireRetryable,
} from '../background-jobs/jobs.ts';
import { MAX_PAGE_SIZE } from '../domain/limits.ts';
import { type Load, loadStatuses } from '../domain/load.ts';
import { readCauseId } from '../domain/reject.ts';
import { formatCount, plural } from '../domain/wording.ts';
import { exportRejects, listRejects } from '../load/rejects.ts';
import { renderLoadListItem, renderReject } from '../load/render-load.ts';
import { retryLoad } from '../load/retry-load.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import { countLiveWorkers } from '../postgres/stores/workers.ts';
import { defineCommand, type Invocation } from './define-command.ts';
import { exitCodes, UsageError } from './errors.ts';
import { followJob, followLoad } from './follow.ts';
import { printList } from './format.ts';
import { mend } from './mend.ts';
import { choice, flag, parseCount, parsed, parseJobId, required } from './options.ts';
import { applyPlanOfJob, planOfJob } from './plans.ts';
import { printCauses } from './print-causes.ts';
import { jobCells, jobColumns, printJob } from './print-job.ts';
import { createProgress } from './progress.ts';
import { formatOfRejects } from './rejects-file.ts';
import { listenForStop } from './service/stop-signals.ts';
import { type EnvironmentSession, withEnvironment } from './session.ts';
import { withWorkers } from './workers.ts';

const jobId = required('<job-id>', '', parseJobId);

const list = defineCommand({
  name: 'list',
  summary: 'the latest jobs',
  description: 'Lists the jobs of an environment, loads, exports and deletions, newest first.',
  options: {
    status: choice('--status <status>', 'only jobs in this status', loadStatuses),
    type: choice('--type <type>', 'only jobs of this type', jobTypes),
    limit: parsed('--limit <n>', 'how many', parseCount, 20),
  },
  environment: true,
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
    const { jobs, total } = await collect(limit, (limit, after) =>
      listJobs(system, environmentId, filter, { limit, after }),
    );
    printList(call, {
      items: jobs,
      render: (job) => renderJobListItem(job, baseUrl),
      columns: jobColumns,
      cells: jobCells,
      none: 'There are no such jobs.',
    });
    if (json || jobs.length === 0 || total <= jobs.length) return;
    terminal.inform(`${formatCount(total)} in all; --limit shows more.`);
  },
});

/** Page after page up to the limit. */
async function collect(
  limit: number,
  page: (limit: number, after: string | null) => Promise<JobPage>,
): Promise<{ readonly jobs: readonly Job[]; readonly total: number }> {
  const jobs: Job[] = [];
  for (let after: string | null = null; ; ) {
    const found = await page(Math.min(limit - jobs.length, MAX_PAGE_SIZE), after);
    jobs.push(...found.jobs);
    after = found.next;
    if (after === null || jobs.length >= limit) return { jobs, total: found.total };
  }
}

const show = defineCommand({
  name: 'show',
  summary: 'one job in full',
  description:
    'Shows a load, an export or a deletion: its counts, its rejects by reason or its files, why it failed.',
  argument: jobId,
  options: { watch: flag('--watch', 'follow it until it has ended; exit code 1 if it did not complete') },
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs show 0195… --watch', 'sluice jobs show 0195… --json | jq .counts'],
  run: async (invocation) => {
    const { argument: jobId, flags, terminal, json } = invocation;
    const { signal } = listenForStop();
    await withEnvironment(invocation, async ({ system, environmentId, baseUrl }) => {
      const found = await requireJob(system, environmentId, jobId);
      const followed = { environmentId, jobId, signal };
      const job = flags.watch ? await followJob(system, found, followed, { terminal, quiet: json }) : found;
      if (json) terminal.json(await renderJobDetail(system, environmentId, job, baseUrl));
      else await printJob(terminal, system, environmentId, job);
      if (flags.watch) process.exitCode = exitCodeOf(job);
    });
  },
});

function exitCodeOf(job: Job): number {
  const { status } = renderJob(job, '');
  if (status === 'completed') return exitCodes.ok;
  return status === 'failed' || status === 'cancelled' ? exitCodes.failed : exitCodes.interrupted;
}

const cancel = defineCommand({
  name: 'cancel',
  summary: 'stop a load or an export that has not ended',
  description:
    'Stops a load or an export that has not ended. What a load applied so far stays, and `sluice jobs retry` continues with\n' +
    'the rest; of an export nothing stays. A deletion cannot be cancelled.',
  argument: jobId,
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs cancel 0195…'],
  inEnvironment: async ({ system, environmentId, baseUrl, argument, json, terminal }) => {
    const found = await requireJob(system, environmentId, argument);
    const job = await cancelFoundJob(system, environmentId, found);
    if (json) terminal.json(renderJobListItem(job, baseUrl));
    else terminal.print(describeCancelled(job));
  },
});

function describeCancelled(job: Job): string {
  if (job.kind !== 'load') return 'Cancelled; nothing of it stays.';
  const { tally, totalRows } = job.load;
  return `Cancelled; ${formatCount(tally.read)} of ${plural(totalRows, 'row')} had been done and stay.`;
}

const retry = defineCommand({
  name: 'retry',
  summary: 'continue a load that failed or was cancelled',
  description: 'Queues a failed or cancelled load again. It continues with the chunks that are left.',
  argument: jobId,
  options: { wait: flag('--wait', 'do it now, and follow it to its end, without needing a running server') },
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs retry 0195… --wait'],
  run: async (invocation) => {
    const { argument: jobId, flags, terminal, json } = invocation;
    const stop = listenForStop();
    await withEnvironment(invocation, async (session) => {
      const { system, environmentId } = session;
      await requireRetryable(system, environmentId, jobId);
      await retryLoad(system, environmentId, jobId);
      if (!flags.wait) {
        const load = await requireLoad(system, environmentId, jobId);
        return printRetried(invocation, session, load, await whoGoesOn(session));
      }
      const progress = createProgress(terminal, jobId, json);
      await withWorkers(session, { entry: invocation.cli.entry, stop }, async () => {
        const load = await followLoad(system, { environmentId, jobId, signal: stop.signal }, progress);
        printRetried(invocation, session, load, `The job is ${load.status}.`);
        process.exitCode = load.status === 'completed' ? exitCodes.ok : exitCodes.failed;
      });
    });
  },
});

function printRetried(
  { terminal, json }: Invocation,
  { baseUrl }: EnvironmentSession,
  load: Load,
  sentence: string,
): void {
  if (json) terminal.json(renderLoadListItem(load, baseUrl));
  else terminal.print(sentence);
}

async function whoGoesOn({ system }: EnvironmentSession): Promise<string> {
  if ((await countLiveWorkers(system.db)) > 0) return 'Queued again; the running workers continue it.';
  return 'Queued again; it continues as soon as workers run: `sluice start`. (With --wait it is done here and now.)';
}

const rejects = defineCommand({
  name: 'rejects',
  summary: 'the refused records of a load',
  description:
    'Prints the refused records with their reasons: as csv or ndjson in the shape of their file, to be corrected and given\n' +
    'to `sluice jobs mend`, or as json with the place of each and long records cut. With --by-cause: the causes, how many\n' +
    'records each has, and what would correct them.',
  argument: jobId,
  options: {
    format: choice('--format <format>', 'default: that of the file', ['csv', 'ndjson', 'json']),
    byCause: flag('--by-cause', 'causes instead of records, the most frequent first'),
    cause: parsed('--cause <id>', 'only the records of this cause, from --by-cause', parseCause),
  },
  environment: true,
  json: 'the same as --format json',
  examples: [
    'sluice jobs rejects 0195… > mend-me.csv',
    'sluice jobs rejects 0195… --by-cause',
    'sluice jobs rejects 0195… --format json | jq .[].message',
  ],
  inEnvironment: async (call) => {
    const { argument: jobId, flags, terminal, json, system, environmentId } = call;
    await requireLoad(system, environmentId, jobId);
    const asked = json ? 'json' : flags.format;
    if (flags.byCause) return printCauses(call, jobId, { terminal, json: asked === 'json' });
    const { cause = null } = flags;
    const format = asked ?? (await formatOfRejects(system, environmentId, jobId));
    const bytes =
      format === 'json'
        ? rejectsAsJson(call, jobId, cause)
        : exportRejects(system, environmentId, jobId, format, cause);
    for await (const piece of bytes) {
      if (terminal.closed) return;
      await terminal.write(piece);
    }
  },
});

function parseCause(text: string): number {
  const cause = readCauseId(text);
  if (cause === null) throw new UsageError('--cause wants the id of a cause, as --by-cause prints it.');
  return cause;
}

/** One array, a page of it at a time. */
async function* rejectsAsJson(
  { system, environmentId }: EnvironmentSession,
  jobId: string,
  cause: number | null,
): AsyncGenerator<string> {
  let before = '[';
  for (let after: number | null = 0; after !== null; ) {
    const page = await listRejects(system, environmentId, jobId, { limit: MAX_PAGE_SIZE, after, cause });
    for (const reject of page.rejects) {
      yield `${before}\n${JSON.stringify(renderReject(reject))}`;
      before = ',';
    }
    after = page.more ? (page.rejects.at(-1)?.row ?? null) : null;
  }
  yield before === '[' ? '[]\n' : '\n]\n';
}

export const jobs = defineCommand({
  name: 'jobs',
  summary: 'look at loads, exports and deletions; cancel, retry',
  description:
    'Looks at the jobs of an environment, loads, exports and deletions, and acts on them. A server need not run.',
  examples: ['sluice jobs list --status failed', 'sluice jobs show 0195… --watch'],
  commands: [list, show, cancel, retry, planOfJob, applyPlanOfJob, rejects, mend],
});
