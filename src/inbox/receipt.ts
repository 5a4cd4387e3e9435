import type { InboxFile } from '../domain/inbox.ts';
import type { Load } from '../domain/load.ts';
import { rejectsSuffix } from './names.ts';
import type { Verdict } from './verdict.ts';

/** What stands beside a file in done or failed; times in UTC. */
export function renderReceipt(
  file: InboxFile,
  placedName: string,
  { outcome, reasons }: Verdict,
  load: Load | null,
  rejectsByCode: Readonly<Record<string, number>>,
): object {
  const own = file.isDuplicate ? null : load;
  const rejected = own?.tally.rejected ?? 0;
  return {
    file: placedName,
    dropped_as: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
    environment: file.environment,
    outcome,
    reasons,
    size: Number(file.size),
    sha256: file.sha256,
    job_id: file.jobId,
    status: load?.status ?? null,
    entity: load?.entity ?? null,
    duplicate_of: file.isDuplicate ? file.jobId : (load?.duplicateOf ?? null),
    counts: own?.tally ?? null,
    rejects: {
      count: rejected,
      by_code: rejectsByCode,
      file: rejected > 0 ? placedName + rejectsSuffix : null,
    },
    options: {
      map: file.options.map,
      entity: file.options.entity,
      max_errors: renderMaxErrors(file.options.maxErrors),
      if_duplicate: file.options.ifDuplicate,
      format: file.options.format,
    },
    modified_at: new Date(Number(file.modifiedNs / 1_000_000n)),
    taken_at: file.claimedAt,
    accepted_at: own?.acceptedAt ?? null,
    started_at: own?.startedAt ?? null,
    ended_at: own?.endedAt ?? null,
    written_at: new Date(),
  };
}

function renderMaxErrors(maxErrors: InboxFile['options']['maxErrors']): number | string | null {
  if (maxErrors === null) return null;
  return 'count' in maxErrors ? maxErrors.count : `${maxErrors.percent}%`;
}
