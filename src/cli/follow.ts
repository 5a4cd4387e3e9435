/** Looking at a job until it has ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Job } from '../background-jobs/jobs.ts';
import type { System } from '../context.ts';
import { requireDeletion } from '../deletion/inspect-deletions.ts';
import type { Deletion } from '../domain/deletion.ts';
import type { Export } from '../domain/export.ts';
import type { Load } from '../domain/load.ts';
import { requireExport } from '../export/inspect-exports.ts';
import { isTransient } from '../postgres/sqlstate.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import { CommandFailed } from './errors.ts';
import { createProgress, type Progress, showExport, showLoad } from './progress.ts';
import type { Terminal } from './terminal.ts';

/** What is followed, until when, and where it is shown. */
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
    show: (seen) => showExport(progress, seen),
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

/** A job of any kind. `quiet`: no progress is shown. */
export async function followJob(
  system: System,
  job: Job,
  followed: Followed,
  { terminal, quiet }: { readonly terminal: Terminal; readonly quiet: boolean },
): Promise<Job> {
  if (job.kind === 'deletion') return { ...job, deletion: await followDeletion(system, followed) };
  const progress = createProgress(terminal, job.kind === 'export' ? 'export' : job.jobId, quiet);
  if (job.kind === 'export') return { ...job, export: await followExport(system, followed, progress) };
  return { ...job, load: await followLoad(system, followed, progress) };
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
  /** What becomes of the job when the database is gone. */
  readonly whenGone: string;
}

/** Looks until the job has ended or the signal aborts; returns how it was seen last. */
async function follow<T extends { readonly endedAt: Date | null }>(
  { signal }: Followed,
  { look, show, whenGone }: Looks<T>,
): Promise<T> {
  const gone = (): CommandFailed => new CommandFailed(`The database went away. ${whenGone}`);
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
    if (seen !== null && (seen.endedAt !== null || signal.aborted)) return seen;
    if (signal.aborted) throw gone();
    await delay(pollMs, undefined, { signal }).catch(() => undefined);
  }
}
