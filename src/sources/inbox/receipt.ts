import type { InboxFile, InboxOutcome, InboxReason } from '../../domain/inbox.ts';
import type { GuardLimit, Load } from '../../domain/load.ts';
import type { ReadAs, SourceOptions } from '../../domain/source.ts';
import { sourceOptionNames, sourceOptions } from '../../domain/source-options.ts';
import { renderReadAs } from '../../load/render-load.ts';
import { rejectsSuffix } from './inbox.ts';

/** The details of a load that its row in a list lacks. */
export interface FileReport {
  readonly rejectsByCode: Readonly<Record<string, number>>;
  readonly readAs: ReadAs | null;
}

/** Renders the file beside one in done or failed; times are in UTC. */
export function renderReceipt(
  file: InboxFile,
  placedName: string,
  { outcome, reasons }: Outcome,
  load: Load | null,
  { rejectsByCode, readAs }: FileReport,
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
    counts_by_kind: own?.tallyByKind ?? null,
    read_as: readAs && renderReadAs(readAs),
    rejects: {
      count: rejected,
      by_code: rejectsByCode,
      file: rejected > 0 ? placedName + rejectsSuffix : null,
    },
    options: {
      map: file.options.map,
      entity: file.options.entity,
      preset: file.options.preset,
      max_errors: renderGuard(file.options.maxErrors),
      max_changed: renderGuard(file.options.maxChanged),
      max_removed_values: renderGuard(file.options.maxRemovedValues),
      if_duplicate: file.options.ifDuplicate,
      format: file.options.format,
      ...renderSource(file.options.source),
    },
    modified_at: new Date(Number(file.modifiedNs / 1_000_000n)),
    taken_at: file.claimedAt,
    accepted_at: own?.acceptedAt ?? null,
    started_at: own?.workStartedAt ?? null,
    ended_at: own?.endedAt ?? null,
    written_at: new Date(),
  };
}

/** Renders the options from mapping.yaml. */
function renderSource(source: SourceOptions): object {
  const given = sourceOptionNames.map((name) => [name, source[sourceOptions[name].key]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function renderGuard(limit: GuardLimit | null): number | string | null {
  if (limit === null) return null;
  return 'count' in limit ? limit.count : `${limit.percent}%`;
}

export interface Outcome {
  readonly outcome: InboxOutcome;
  readonly reasons: readonly InboxReason[];
}

/**
 * Where a file goes, and why. `load` is that of its job, ended; null: there is none, or its record is gone. `changed`: the
 * claimed file is not what was loaded any more.
 */
export function decideOutcome(file: InboxFile, load: Load | null, changed: boolean): Outcome {
  if (file.state === 'refused') return { outcome: 'failed', reasons: file.reasons };
  const failure = failureOf(load);
  if (failure !== null) {
    const reasons = file.isDuplicate ? [ofTheSameBytes(failure)] : [failure];
    return { outcome: 'failed', reasons };
  }
  if (changed) return { outcome: 'failed', reasons: [changedSince] };
  return { outcome: 'done', reasons: file.isDuplicate ? [duplicate(file)] : [] };
}

function failureOf(load: Load | null): InboxReason | null {
  if (load === null)
    return reason('job_expired', 'The record of the job is gone; what became of it is not known');
  if (load.status === 'completed') return null;
  if (load.failure !== null) return reason(load.failure.code, load.failure.message);
  return reason(load.status, `The job is ${load.status}`);
}

function ofTheSameBytes({ error_code, message }: InboxReason): InboxReason {
  return reason(error_code, `The same bytes were being loaded already, and that failed: ${message}`);
}

function duplicate({ jobId }: InboxFile): InboxReason {
  return reason(
    'duplicate_file',
    'The same bytes were loaded before; nothing was loaded',
    `job_id: ${jobId}`,
  );
}

const changedSince = reason(
  'file_changed',
  'The file was written to after it had been read: what was read then is loaded, what came later is not',
  'put the whole file into the inbox again; write files under another name, and rename them when they are complete',
);

function reason(error_code: string, message: string, details = ''): InboxReason {
  return { error_code, message, details };
}
