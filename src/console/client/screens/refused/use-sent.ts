import { useEffect, useState } from 'preact/hooks';
import type { Reject, RejectPage } from '../../../../api/reject.ts';
import { api } from '../../lib/api.ts';
import { isEnded, jobPath, useLoad } from '../../lib/jobs.ts';
import { useData } from '../../lib/use-data.ts';
import type { Edits } from './reject-record.ts';

/** Edits that were sent and whose outcome is not known yet. */
export interface Sent {
  /** The edits under way; empty once their job has ended. */
  readonly edits: Edits;
  /** The number of edits that were sent. */
  readonly count: number;
  /** Their records that were refused again, in their current state. */
  readonly again: readonly Reject[];
  /** The reason why their job did not complete; `null` if it did. */
  readonly failure: string | null;
  readonly follow: (jobId: string, edits: Edits) => void;
}

const none: Edits = new Map();
/** The most records shown as refused again; all of them are in the list. */
const shownAgain = 200;

/** Follows the job of the edits that were sent last. `onEnd` receives those to send again because the job failed. */
export function useSent(onEnd: (unsent: Edits) => void): Sent {
  const [{ jobId, edits }, setSent] = useState({ jobId: '', edits: none });
  const [ended, setEnded] = useState('');
  const job = useLoad(jobId === ended ? '' : jobId);
  const load = job.data?.job_id === jobId ? job.data : undefined;
  const isOver = load !== undefined && isEnded(load);
  const path = `${jobPath(jobId)}/rejects?limit=${shownAgain}`;
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
  // The records of the job are numbered anew, in the order of the rows.
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
