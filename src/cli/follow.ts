/** Follows a job until it has ended, and shows how far it is. */

import { clearLine, cursorTo } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { formatBytes, formatCount, formatDuration, plural } from '../base/wording.ts';
import type { System } from '../context.ts';
import { requireDeletion } from '../deletion/deletions.ts';
import type { Deletion } from '../deletion/store.ts';
import { requireExport } from '../export/inspect-exports.ts';
import type { Export } from '../export/store.ts';
import type { Job } from '../jobs/jobs.ts';
import { type Load, requireLoad } from '../load/read-store.ts';
import { rowsPerSecond } from '../load/render-load.ts';
import { isTransient } from '../postgres/sqlstate.ts';
import { CommandFailed } from './errors.ts';
import { printable, type Terminal } from './terminal.ts';

export interface Followed {
  readonly environmentId: number;
  readonly jobId: string;
  readonly signal: AbortSignal;
}

export function followLoad({ db }: System, followed: Followed, progress: Progress): Promise<Load> {
  return follow(followed, {
    look: () => requireLoad({ db }, followed.environmentId, followed.jobId),
    show: (load) => showLoad(progress, load),
    whenGone: `Job ${followed.jobId} is safe in it, and continues when database and workers run again: \`sluice start\`.`,
  }).finally(() => progress.end());
}

export function followExport({ db }: System, followed: Followed, progress: Progress): Promise<Export> {
  return follow(followed, {
    look: () => requireExport({ db }, followed.environmentId, followed.jobId),
    show: ({ status, progress: share, rowsWritten, bytesWritten }) =>
      progress.show(share, () =>
        status === 'queued'
          ? 'waits for a worker'
          : `${plural(rowsWritten, 'row')} · ${formatBytes(bytesWritten)}`,
      ),
    whenGone: `Export ${followed.jobId} continues when database and workers run again; nothing was written here.`,
  }).finally(() => progress.end());
}

export function followDeletion({ db }: System, followed: Followed): Promise<Deletion> {
  return follow(followed, {
    look: () => requireDeletion({ db }, followed.environmentId, followed.jobId),
    show: () => undefined,
    whenGone: `Deletion ${followed.jobId} is safe in it, and continues when database and workers run again: \`sluice start\`.`,
  });
}

/** Follows a job of any kind. `quiet`: no progress is shown. */
export async function followJob(
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

/** A small job ends within a moment, a large one does not care: look often first, then less. */
const firstPollMs = 20;
const longestPollMs = 200;
const pollGrowth = 1.3;
/** A database that restarts is back within this time. */
const outageMs = 60_000;

interface Looks<T> {
  readonly look: () => Promise<T>;
  readonly show: (seen: T) => void;
  /** Says what becomes of the job when the database is gone. */
  readonly whenGone?: string;
  /** The pause between two looks; by default it grows. */
  readonly everyMs?: number;
}

/** Looks until what is followed has ended, is held, or the signal aborts; returns how it was seen last. A database that restarts is waited for. */
export async function follow<T extends { readonly endedAt: Date | null; readonly status?: string }>(
  { signal }: Pick<Followed, 'signal'>,
  { look, show, whenGone = '', everyMs }: Looks<T>,
): Promise<T> {
  const gone = (): CommandFailed => new CommandFailed(`The database went away. ${whenGone}`.trimEnd());
  let seen: T | null = null;
  let seenAt = performance.now();
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * pollGrowth, longestPollMs)) {
    try {
      seen = await look();
      seenAt = performance.now();
      show(seen);
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - seenAt > outageMs) throw gone();
    }
    if (seen !== null && (seen.endedAt !== null || seen.status === 'held' || signal.aborted)) return seen;
    if (signal.aborted) throw gone();
    await delay(everyMs ?? pollMs, undefined, { signal }).catch(() => undefined);
  }
}

export interface Progress {
  /** `share` is from 0 to 1, null where the whole is not known. */
  show(share: number | null, text: () => string): void;
  /** Leaves the line to whoever writes next. */
  end(): void;
}

const longestName = 28;
const lineEveryMs = 3_000;
const silent: Progress = { show: () => undefined, end: () => undefined };

/** Creates a moving bar for a person, a line every few seconds for a log, or nothing if so wished. */
export function createProgress(terminal: Terminal, name: string, quiet: boolean): Progress {
  if (quiet) return silent;
  return terminal.live ? movingBar(name) : lines(terminal, name);
}

const BAR_CHARS = 24;
const drawEveryMs = 100;

function movingBar(name: string): Progress {
  const { stderr } = process;
  const short = name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name;
  let drawnAt = Number.NEGATIVE_INFINITY;
  const erase = () => {
    cursorTo(stderr, 0);
    clearLine(stderr, 0);
  };
  return {
    show(share, text) {
      if (performance.now() - drawnAt < drawEveryMs) return;
      drawnAt = performance.now();
      const percent = share === null ? '    ' : `${Math.floor(100 * share)}%`.padStart(4);
      const bar = '█'.repeat(Math.floor(BAR_CHARS * (share ?? 0))).padEnd(BAR_CHARS, '░');
      erase();
      // A longer line would break, and the next one could not erase it.
      stderr.write(`${short} ${bar} ${percent} ${text()}`.slice(0, stderr.columns - 1));
    },
    end: () => (drawnAt === Number.NEGATIVE_INFINITY ? undefined : erase()),
  };
}

function lines(terminal: Terminal, name: string): Progress {
  let shownAt = performance.now();
  return {
    show(share, text) {
      if (performance.now() - shownAt < lineEveryMs) return;
      shownAt = performance.now();
      terminal.inform(`${name}: ${share === null ? '' : `${Math.floor(100 * share)}% · `}${text()}`);
    },
    end: () => undefined,
  };
}

/** Says why a load is held, and what to do. */
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
