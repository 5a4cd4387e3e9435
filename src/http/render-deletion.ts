import type { Deletion, IdOutcome } from '../domain/deletion.ts';
import type { DeletionJobDetail } from './schemas/deletion-job-detail.ts';
import type { JobListItem, JobRecord } from './schemas/job-record.ts';
import type { IdOutcomeItem } from './schemas/outcome-page.ts';

export function renderDeletion(found: Deletion, baseUrl: string): JobRecord {
  const { jobId, entity, status, acceptedAt, endedAt, counts } = found;
  return {
    job_id: jobId,
    type: `delete_${entity}`,
    status,
    filename: `delete-${entity}-${acceptedAt.toISOString().slice(0, 10)}`,
    file_size: 0,
    total_rows: counts.requested,
    start_time: acceptedAt.toISOString(),
    end_time: endedAt?.toISOString() ?? null,
    links: `${baseUrl}/v1/background_jobs/${jobId}`,
  };
}

export function renderDeletionListItem(found: Deletion, baseUrl: string, now = new Date()): JobListItem {
  const ms = (found.endedAt ?? now).getTime() - found.acceptedAt.getTime();
  return { ...renderDeletion(found, baseUrl), elapsed_time: Math.max(0, Math.floor(ms / 1000)) };
}

export function renderDeletionDetail(found: Deletion, baseUrl: string, now = new Date()): DeletionJobDetail {
  const { status, counts } = found;
  const item = renderDeletionListItem(found, baseUrl, now);
  const settled = counts.deleted + counts.not_found;
  return {
    ...item,
    completed_rows: settled,
    // When all ids are settled, files remain to be removed.
    progress:
      status === 'completed' ? 1 : Math.min(0.99, Math.floor((settled / counts.requested) * 100) / 100),
    counts,
    removed: found.removed,
    purge_exports: found.purgeExports,
    outcomes: { links: `${item.links}/outcomes` },
    failure: found.failure && { error_code: found.failure.code, message: found.failure.message },
    last_error: found.lastError,
    attempts: found.attempts,
    queue_position: found.queuePosition,
  };
}

export function renderOutcome({ id, outcome, events, users }: IdOutcome): IdOutcomeItem {
  return { id, outcome, events, users };
}
