import type { GuardLimit } from '../../domain/guards.ts';
import type { RefusalReason } from '../../domain/job.ts';
import { type FileOptions, type LoadStatus, noOutcomes, toTally } from '../../domain/load.ts';
import { toGivenSource } from '../../domain/option-table.ts';
import { noRejects, renderRun } from '../../http/render.ts';
import type { SeenFile } from './files.ts';
import { placeOf } from './folders.ts';

interface FileEnd {
  readonly status: LoadStatus;
  readonly sha256: string | null;
  readonly reasons: readonly RefusalReason[];
  readonly takenAt: Date;
  readonly endedAt: Date;
}

/** Renders the run of a file that was refused, or that had already been loaded. */
export function renderFileRun(
  file: SeenFile & { readonly options: FileOptions },
  { status, sha256, reasons: [reason], takenAt, endedAt }: FileEnd,
) {
  const { ifDuplicate, maxErrors, maxChanged, maxRemovedValues, source, ...options } = file.options;
  const isFailure = status !== 'completed' && reason !== undefined;
  return renderRun({
    jobId: null,
    type: 'import',
    status,
    origin: { kind: 'inbox', name: placeOf(file) },
    requestId: null,
    sources: [{ filename: file.name, bytes: Number(file.size), rows: null, sha256 }],
    files: [],
    options: {
      entity: options.entity,
      map: options.map,
      preset: options.preset,
      max_errors: renderGuard(maxErrors),
      max_changed: renderGuard(maxChanged),
      max_removed_values: renderGuard(maxRemovedValues),
      guard: options.guard ?? null,
      format: options.format,
      if_duplicate: ifDuplicate,
      ...toGivenSource(source),
    },
    optionsCut: false,
    counts: toTally(noOutcomes),
    rejects: noRejects,
    phases: [
      { phase: 'accepted', at: takenAt },
      { phase: status, at: endedAt },
    ],
    failure: isFailure ? { code: reason.error_code, message: reason.message } : null,
    cursor: null,
  });
}

function renderGuard(limit: GuardLimit | null): number | string | null {
  if (limit === null) return null;
  return 'count' in limit ? limit.count : `${limit.percent}%`;
}
