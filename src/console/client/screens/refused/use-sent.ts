import { useEffect, useState } from 'preact/hooks';
import { api } from '../../lib/api.ts';
import { useData } from '../../lib/use-data.ts';
import { isEnded, useLoad } from '../load/load-record.ts';
import type { Edits, Reject, RejectPage } from './reject-record.ts';

/** Edits that were sent, until it is known what became of them. */
export interface Sent {
  /** On their way; empty once their job has ended. */
  readonly edits: Edits;
  /** How many there were. */
  readonly count: number;
  /** Records of it that were refused again, as they are now. */
  readonly again: readonly Reject[];
  /** Why their job ended without completing; null where it completed. */
  readonly failure: string | null;
  readonly follow: (jobId: string, edits: Edits) => void;
}

const none: Edits = new Map();
/** Records that were refused again are shown up to so many; all of them are in the list. */
const shownAgain = 200;

/** Follows the job of the edits that were sent last. `onEnd` is given those that are to be sent again, for it failed. */
export function useSent(onEnd: (unsent: Edits) => void): Sent {
  const [{ jobId, edits }, setSent] = useState({ jobId: '', edits: none });
  const [ended, setEnded] = useState('');
  const job = useLoad(jobId === ended ? '' : jobId);
  const load = job.data?.job_id === jobId ? job.data : undefined;
  const isOver = load !== undefined && isEnded(load);
  const path = `/v1/background_jobs/${jobId}/rejects?limit=${shownAgain}`;
  const isRefused = isOver && load.counts.rejected > 0;
  const refused = useData(isRefused ? path : null, async (signal) => ({
    of: jobId,
    rejects: (await api<RejectPage>(path, { signal })).data,
  }));
  useEffect(() => {
    if (!isOver || ended === jobId) return;
    setEnded(jobId);
    onEnd(load.status === 'completed' ? none : edits);
  }, [isOver, jobId]);
  // Its records are numbered anew, in the order of the rows.
  const rows = [...edits.keys()].sort((a, b) => a - b);
  const again = isRefused && refused.data?.of === jobId ? refused.data.rejects : [];
  return {
    edits: ended === jobId ? none : edits,
    count: edits.size,
    again: again.map((reject) => ({ ...reject, row: rows[reject.row - 1] ?? 0 })),
    failure: isOver && load.status !== 'completed' ? (load.failure?.message ?? load.status) : null,
    follow: (job_id, sent) => setSent({ jobId: job_id, edits: sent }),
  };
}
