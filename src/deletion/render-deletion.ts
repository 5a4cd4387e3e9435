import type { Deletion, IdOutcome } from '../domain/deletion.ts';

/* A deletion as callers see it, in the API and with `--json`. Times are ISO 8601, UTC, with milliseconds. */

export function renderDeletion(found: Deletion, baseUrl: string) {
  const { jobId, entity, status, acceptedAt, endedAt, counts } = found;
  return {
    job_id: jobId,
    type: `delete_${entity}` as const,
    status,
    filename: `delete-${entity}-${acceptedAt.toISOString().slice(0, 10)}`,
    file_size: 0,
    total_rows: counts.requested,
    start_time: acceptedAt.toISOString(),
    end_time: endedAt?.toISOString() ?? null,
    links: `${baseUrl}/v1/background_jobs/${jobId}`,
  };
}

export function renderDeletionListItem(found: Deletion, baseUrl: string, now = new Date()) {
  const ms = (found.endedAt ?? now).getTime() - found.acceptedAt.getTime();
  return { ...renderDeletion(found, baseUrl), elapsed_time: Math.max(0, Math.floor(ms / 1000)) };
}

export function renderDeletionDetail(found: Deletion, baseUrl: string, now = new Date()) {
  const { status, counts } = found;
  const item = renderDeletionListItem(found, baseUrl, now);
  const ended = counts.deleted + counts.not_found;
  return {
    ...item,
    completed_rows: ended,
    // When all ids are done, files remain to be removed.
    progress: status === 'completed' ? 1 : Math.min(0.99, Math.floor((ended / counts.requested) * 100) / 100),
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

export function renderOutcome({ id, outcome, events, users }: IdOutcome) {
  return { id, outcome, events, users };
}
