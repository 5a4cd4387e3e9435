/** `sluice jobs`: loads, exports and deletions; look at them, cancel, retry, undo, plan, and correct what a load refused. */

import { MAX_PAGE_SIZE } from '../base/limits.ts';
import { formatCount, plural } from '../base/wording.ts';
import { choice, defineCommand, flag, jobIdArgument, limitOption, several } from '../cli/define-command.ts';
import { exitCodeOf } from '../cli/errors.ts';
import { followJob } from '../cli/follow.ts';
import { listenForStop } from '../cli/processes.ts';
import { withEnvironment } from '../cli/session.ts';
import {
  printable,
  printDone,
  printList,
  printRecord,
  printRecords,
  printTable,
  type Terminal,
} from '../cli/terminal.ts';
import { queueLoad } from '../cli/workers.ts';
import { noLimits } from '../domain/guards.ts';
import { loadStatuses, onDriftChoices, type PlannedEvents } from '../domain/load.ts';
import { type ListedJob, renderJobListItem, renderListedJob } from '../http/render.ts';
import { type ShownPlan, showPlan } from '../load/plans/plans.ts';
import { requireLoad } from '../load/read-store.ts';
import { rejects } from '../load/rejects/cli.ts';
import { planJson } from '../load/render-load.ts';
import { applyPlan, releaseLoad, retryLoad } from '../load/retry-load.ts';
import { acceptUndo } from '../load/undo/accept-undo.ts';
import { cancelFoundJob, jobTypes, renderJobDetail, requireJob, requireRetryable } from './jobs.ts';
import { pageJobs } from './store.ts';

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
    for (let after: string | null = null; ; ) {
      const page = { limit: Math.min(limit - jobs.length, MAX_PAGE_SIZE), after };
      const found = await pageJobs(system.db, environmentId, filter, page);
      jobs.push(...found.jobs);
      total = found.total;
      after = found.next;
      if (after === null || jobs.length >= limit) break;
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
      const found = await requireJob(system, environmentId, jobId);
      const followed = { environmentId, jobId, signal };
      const job = flags.watch ? await followJob(system, found, followed, { terminal, quiet: json }) : found;
      const record = await renderJobDetail(system, environmentId, job, baseUrl);
      printRecord(invocation, json ? record : withoutAbsentKinds(record));
      if (flags.watch) process.exitCode = exitCodeOf(job);
    });
  },
});

/** Kinds of which a file has no record would fill the screen with zeros. */
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
    const stays =
      job.kind === 'load' && job.held?.decidedAt == null
        ? `${formatCount(job.tally.read)} of ${plural(job.totalRows, 'row')} had been done and stay.`
        : 'nothing of it stays.';
    printDone(call, renderJobListItem(job, baseUrl), `Cancelled; ${stays}`);
  },
});

const waitOption = flag('--wait', 'do it now, and follow it to its end, without needing a running server');

const queues = {
  argument: jobIdArgument,
  options: { wait: waitOption },
  environment: true,
  json: 'print the job record as JSON',
} as const;

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

const release = defineCommand({
  name: 'release',
  summary: 'load a file that its guard holds',
  description:
    'Queues a held load: its file is loaded although it differs from what its guard expects. `sluice jobs cancel` discards it.',
  ...queues,
  examples: ['sluice jobs list --status held', 'sluice jobs release 0195… --wait'],
  run: async (invocation) => {
    const { argument: jobId, flags } = invocation;
    await queueLoad(invocation, flags.wait, async ({ system, environmentId }) => {
      await releaseLoad(system, environmentId, jobId, { kind: 'command_line', name: null });
      return jobId;
    });
  },
});

const undo = defineCommand({
  name: 'undo',
  summary: 'take back what loads wrote',
  description:
    'Puts values back that loads changed, removes profiles and events that they added, and brings profiles back that they\n' +
    'removed. What somebody else has changed since stays. An undo cannot be undone: load the file again instead.',
  argument: several('<job-id...>', 'loads that have ended'),
  options: {
    plan: flag('--plan', 'only show what it would do; `sluice jobs apply` then does it'),
    wait: waitOption,
  },
  environment: true,
  json: 'print the job record as JSON',
  examples: ['sluice jobs undo 0195… --plan --wait', 'sluice jobs undo 0195… 0196… --wait'],
  run: async (invocation) => {
    const { argument, flags, json, terminal } = invocation;
    const jobIds = [...new Set(argument.map(jobIdArgument.read))];
    const asked = {
      idempotencyKey: null,
      requestId: null,
      origin: { kind: 'command_line', name: null },
    } as const;
    await queueLoad(
      invocation,
      flags.wait,
      ({ system, environmentId }) =>
        acceptUndo(system, { jobIds, plan: flags.plan, ...noLimits }, { environmentId, ...asked }),
      async ({ system, environmentId }, { jobId, plan: planned }) => {
        if (planned !== null && !json) printPlan(terminal, await showPlan(system, environmentId, jobId));
        return undefined;
      },
    );
  },
});

const plan = defineCommand({
  name: 'plan',
  summary: 'what a planned load would do',
  description:
    'Shows what a load with --plan would change: profiles, values by property, some rows before and after.',
  argument: jobIdArgument,
  json: 'print the plan as JSON',
  examples: ['sluice jobs plan 0195…', 'sluice jobs plan 0195… --json | jq .values'],
  inEnvironment: async ({ system, environmentId, baseUrl, argument, json, terminal }) => {
    const plan = await showPlan(system, environmentId, argument);
    if (json) terminal.print(planJson(plan, baseUrl));
    else printPlan(terminal, plan);
  },
});

const apply = defineCommand({
  name: 'apply',
  summary: 'load a plan',
  description:
    'Queues a plan to be loaded, with the same file and options. If profiles have changed since, nothing is written,\n' +
    'unless --proceed is given.',
  argument: jobIdArgument,
  options: { proceed: flag('--proceed', 'load it even if profiles have changed since') },
  json: 'print the job record as JSON',
  examples: ['sluice jobs apply 0195…', 'sluice jobs apply 0195… --proceed --json'],
  inEnvironment: async (call) => {
    const { system, environmentId, argument, flags } = call;
    await applyPlan(system, environmentId, argument, onDriftChoices[flags.proceed ? 1 : 0]);
    const load = await requireLoad(system, environmentId, argument);
    printDone(
      call,
      renderJobListItem(load, call.baseUrl),
      `Queued. To follow it: sluice jobs show ${argument} --watch`,
    );
  },
});

const shownProperties = 20;
const shownRows = 10;

export function printPlan(terminal: Terminal, { summary, sample, jobId: id }: ShownPlan): void {
  const { profiles, values, properties, morePropertyNames, events } = summary;
  printRecords(
    terminal,
    Object.entries(profiles).map(([entity, counts]) => ({ profiles: entity, ...counts })),
  );
  terminal.print('');
  const shown = properties.slice(0, shownProperties);
  printTable(
    terminal,
    {
      entity: ({ entity }) => entity,
      property: ({ name }) => printable(name, 40),
      '>added': ({ appear }) => appear,
      '>changed': ({ change }) => change,
      '>removed': ({ go }) => go,
      '>type changed': ({ retype }) => retype,
      '': ({ isNew }) => (isNew ? 'new' : ''),
    },
    [...shown, { ...values, entity: 'all', name: '', isNew: false }],
  );
  const more = properties.length - shown.length + morePropertyNames;
  if (more > 0) terminal.print(`… and ${formatCount(more)} more ${more === 1 ? 'property' : 'properties'}`);
  terminal.print('');
  printEvents(terminal, events);
  const rows = sample.slice(0, shownRows).map(({ key: id, ...row }) => ({ id, ...row }));
  if (rows.length > 0) printRecords(terminal, rows, ['entity', 'id', 'before', 'after']);
  terminal.print(`To load it: sluice jobs apply ${id}`);
}

/** Prints how many events would be added, by name and by day. */
function printEvents(terminal: Terminal, { names, moreNames, days, earlierDays }: PlannedEvents): void {
  if (names.length === 0) return;
  const more = (count: number, what: string) =>
    count > 0 && terminal.print(`… and ${formatCount(count)} ${what}`);
  const shown = names.slice(0, shownProperties);
  printTable(terminal, { event: ({ name }) => printable(name, 40), '>added': ({ count }) => count }, shown);
  more(names.length - shown.length + moreNames, 'more names');
  terminal.print('');
  const latest = days.slice(-shownProperties);
  printTable(terminal, { day: ({ day }) => day, '>added': ({ count }) => count }, latest);
  more(days.length - latest.length + earlierDays, 'earlier days');
  terminal.print('');
}

export const jobs = defineCommand({
  name: 'jobs',
  summary: 'look at loads, exports and deletions; cancel, retry, undo',
  description:
    'Looks at the jobs of an environment, loads, exports and deletions, and acts on them. A server need not run.',
  examples: ['sluice jobs list --status failed', 'sluice jobs show 0195… --watch'],
  commands: [list, show, cancel, retry, release, undo, plan, apply, rejects],
});
