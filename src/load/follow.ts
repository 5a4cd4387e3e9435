import { formatCount, formatDuration, plural, summaries } from '../base/wording.ts';
import { flag, type Invocation, jobIdArgument } from '../cli/define-command.ts';
import { exitCodeOf } from '../cli/errors.ts';
import { createProgress, type Followed, follow, type Progress } from '../cli/follow.ts';
import { listenForStop } from '../cli/processes.ts';
import { type EnvironmentSession, withEnvironment } from '../cli/session.ts';
import { printable, printDone } from '../cli/terminal.ts';
import { withWorkers } from '../cli/workers.ts';
import type { System } from '../context.ts';
import { renderJobListItem } from '../http/render.ts';
import { countLiveWorkers } from '../tasks/worker-store.ts';
import { type Load, readShown, requireLoad } from './read-store.ts';
import { rowsPerSecond } from './render-load.ts';

/** Follows a load to its end, and then waits for the remaining work of capabilities. */
export async function followLoad(
  { db, loads }: Pick<System, 'db' | 'loads'>,
  followed: Followed,
  progress: Progress,
): Promise<Load> {
  const { environmentId, jobId } = followed;
  const whenGone = `Job ${jobId} is safe in it, and continues when database and workers run again: \`sluice start\`.`;
  const load = await follow(followed, {
    read: () => requireLoad({ db }, environmentId, jobId),
    show: (seen) => showLoad(progress, seen),
    whenGone,
  }).finally(() => progress.end());
  if (load.endedAt === null) return load;
  const read = async () => {
    const { isOpen, fields } = await readShown({ db, loads }, environmentId, load);
    // The load is read after the fields, because the work of capabilities may have changed it.
    const last = await requireLoad({ db }, environmentId, jobId);
    return { last, fields, endedAt: isOpen ? null : last.endedAt };
  };
  const show = ({ endedAt, fields }: Awaited<ReturnType<typeof read>>) => {
    if (endedAt === null) progress.show(null, () => describeRemaining(fields));
  };
  return (await follow(followed, { read, show, whenGone }).finally(() => progress.end())).last;
}

function describeRemaining(fields: object): string {
  return summaries(fields)
    .map(([, summary]) => printable(summary, 300))
    .join('; ');
}

export function describeHold({ jobId, held }: Load): string {
  const reasons = (held?.reasons ?? []).map(({ figure, message }) => `${figure}: ${message}`);
  return [
    `Held, and nothing was written. ${reasons.map((each) => printable(each, 300)).join('; ')}`,
    `To load it anyway: sluice jobs release ${jobId}; to discard it: sluice jobs cancel ${jobId}`,
  ].join('\n');
}

function showLoad(progress: Progress, load: Load): void {
  const { status, totalRows, queuePosition, tally } = load;
  const { read, rejected } = tally;
  progress.show(totalRows > 0 ? Math.min(1, read / totalRows) : null, () => {
    if (status === 'queued' && (queuePosition ?? 0) > 0)
      return `waits for ${plural(queuePosition ?? 0, 'load')} before it`;
    const parts = [`${formatCount(read)}/${plural(totalRows, 'row')}`];
    const rate = rowsPerSecond(load, new Date()) ?? 0;
    if (rate > 0) parts.push(`${formatCount(rate)} rows/s`);
    if (rejected > 0) parts.push(`${formatCount(rejected)} rejected`);
    if (rate > 0 && read < totalRows) parts.push(`${formatDuration((totalRows - read) / rate)} left`);
    if (read === totalRows) parts.push('finishing');
    return parts.join(' · ');
  });
}

/** Queues a load, and runs it if `waits` is true. `show` returns a sentence about the result. */
export async function queueLoad(
  invocation: Invocation,
  waits: boolean,
  queue: (session: EnvironmentSession, signal: AbortSignal) => Promise<string>,
  show: (session: EnvironmentSession, load: Load) => Promise<string | undefined> = async () => undefined,
): Promise<void> {
  const { cli, terminal, json } = invocation;
  const stop = listenForStop();
  const { signal } = stop;
  await withEnvironment(invocation, async (session) => {
    const { system, environmentId, baseUrl } = session;
    const jobId = await queue(session, signal);
    if (!waits) {
      const load = await requireLoad(system, environmentId, jobId);
      const continues =
        (await countLiveWorkers(system.db)) > 0
          ? 'the running workers do it.'
          : 'it begins as soon as workers run: `sluice start`. (With --wait it is done here and now.)';
      return printDone(invocation, renderJobListItem(load, baseUrl), `Job ${jobId} is queued; ${continues}`);
    }
    const progress = createProgress(terminal, jobId, json);
    await withWorkers(session, { entry: cli.entry, stop }, async () => {
      const load = await followLoad(system, { environmentId, jobId, signal }, progress);
      process.exitCode = exitCodeOf(load);
      const sentence = await show(session, load);
      const status = load.status === 'held' ? describeHold(load) : `The job is ${load.status}.`;
      printDone(invocation, renderJobListItem(load, baseUrl), sentence ?? status);
    });
  });
}

export const waitOption = flag(
  '--wait',
  'do it now, and follow it to its end, without needing a running server',
);

export const queues = {
  argument: jobIdArgument,
  options: { wait: waitOption },
  environment: true,
  json: 'print the job record as JSON',
} as const;
