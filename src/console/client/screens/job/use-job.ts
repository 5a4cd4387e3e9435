import { useState } from 'preact/hooks';
import type { JobHistory } from '../../../../api/job.ts';
import type { LoadChunk } from '../../../../api/load.ts';
import { type ApiError, api } from '../../lib/api.ts';
import { isUnfinished, jobPath, workMs } from '../../lib/jobs.ts';
import { type LiveEvent, live, useLive } from '../../lib/live.ts';
import type { JobDetail, LiveJob } from '../../lib/records.ts';
import { useData } from '../../lib/use-data.ts';

/** The time between two loads of the job without a stream. */
const pollMs = 2_000;

interface JobEvent extends LiveEvent {
  readonly job: LiveJob | null;
  readonly chunks: readonly LoadChunk[];
}

export interface ShownJob {
  readonly detail: JobDetail | undefined;
  readonly history: JobHistory | undefined;
  readonly chunks: readonly LoadChunk[];
  readonly error: ApiError | null;
  readonly reload: () => void;
}

/** Returns the job as the ledger has it at this moment: what the stream says replaces what was loaded. */
export function useJob(id: string): ShownJob {
  const path = jobPath(id);
  const [now, setNow] = useState<LiveJob | null>(null);
  const [chunks, setChunks] = useState<readonly LoadChunk[]>([]);
  // It is loaded again when its state changes, because some of it comes only with the end.
  const state = now === null ? '' : `${now.status} ${now.attempts}`;
  const mayPoll = now === null || isUnfinished(now);
  const everyMs = live.value.isOpen || !mayPoll ? undefined : pollMs;
  const detail = useData(`${path} ${state}`, (signal) => api<JobDetail>(path, { signal }), { everyMs });
  const history = useData(`${path}/history ${state}`, (signal) =>
    api<JobHistory>(`${path}/history`, { signal }),
  );
  useLive<JobEvent>(detail.error?.status === 404 ? null : `job:${id}`, (event) => {
    setNow(event.job);
    setChunks((before) => (event.snapshot ? event.chunks : merge(before, event.chunks)));
  });
  return {
    detail: detail.data === undefined ? undefined : withLive(detail.data, now),
    history: history.data,
    chunks,
    error: detail.error ?? history.error,
    reload: () => {
      detail.reload();
      history.reload();
    },
  };
}

function withLive(detail: JobDetail, now: LiveJob | null): JobDetail {
  if (now === null) return detail;
  const { counts, rows_before: before, ...fields } = now;
  const runMs = workMs(now) ?? 0;
  const rows = now.completed_rows - before;
  const progress = now.total_rows === 0 ? detail.progress : now.completed_rows / now.total_rows;
  return {
    ...detail,
    ...fields,
    ...(counts === null ? {} : { counts }),
    ...(now.status === 'processing'
      ? { progress, rows_per_second: runMs > 500 && rows > 0 ? Math.round((rows / runMs) * 1_000) : null }
      : {}),
  };
}

function merge(before: readonly LoadChunk[], changed: readonly LoadChunk[]): readonly LoadChunk[] {
  if (changed.length === 0) return before;
  const all = new Map(before.map((chunk) => [chunk.chunk, chunk]));
  for (const chunk of changed) all.set(chunk.chunk, chunk);
  return [...all.values()].sort((a, b) => a.chunk - b.chunk);
}
