import { renderJobListItem } from '../api/render.ts';
import type { IdOutcome } from '../domain/deletion.ts';
import { inputError } from '../domain/errors.ts';
import { defuse } from '../domain/formula.ts';
import { csvCell } from '../load/rejects-text.ts';
import type { Database } from '../postgres/database.ts';
import { type Deletion, readDeletions, readOutcomes } from '../postgres/stores/deletions.ts';

interface Context {
  readonly db: Database;
}

/** Throws `InputError` `not_found`, also for another environment's job and for one that deletes nothing. */
export async function requireDeletion(
  { db }: Context,
  environmentId: number,
  jobId: string,
): Promise<Deletion> {
  const [found] = await readDeletions(db, environmentId, [jobId]);
  if (found === undefined) throw inputError('not_found', 'there is no such deletion', `job_id: ${jobId}`);
  return found;
}

export interface OutcomePage {
  readonly outcomes: readonly IdOutcome[];
  readonly total: number;
  readonly more: boolean;
}

/** In the order of the request. @throws InputError `not_found`. */
export async function listOutcomes(
  context: Context,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number },
): Promise<OutcomePage> {
  const { deletionId, counts } = await requireDeletion(context, environmentId, jobId);
  const found = await readOutcomes(context.db, deletionId, page.after, page.limit + 1);
  const outcomes = found.slice(0, page.limit);
  return { outcomes, total: counts.requested, more: found.length > page.limit };
}

const rowsAtATime = 1_000;
const columns = ['id', 'outcome', 'events', 'users'] as const;

/** The outcomes of all ids as a file. Memory does not grow with their number. @throws InputError `not_found`. */
export async function* exportOutcomes(
  context: Context,
  environmentId: number,
  jobId: string,
  format: 'csv' | 'ndjson',
): AsyncGenerator<Buffer> {
  const { deletionId } = await requireDeletion(context, environmentId, jobId);
  if (format === 'csv') yield Buffer.from(`${columns.join(',')}\n`);
  const line = format === 'csv' ? csvLine : jsonLine;
  for (let after = 0; ; ) {
    const outcomes = await readOutcomes(context.db, deletionId, after, rowsAtATime);
    if (outcomes.length > 0) yield Buffer.from(outcomes.map(line).join(''));
    const last = outcomes.at(-1);
    if (last === undefined || outcomes.length < rowsAtATime) return;
    after = last.position;
  }
}

function csvLine(item: IdOutcome): string {
  return `${columns.map((column) => csvCell(defuse(String(item[column])), ',')).join(',')}\n`;
}

function jsonLine({ id, outcome, events, users }: IdOutcome): string {
  return `${JSON.stringify({ id, outcome, events, users })}\n`;
}

/* A deletion as callers see it, in the API and with `--json`. Times are ISO 8601, UTC, with milliseconds. */

export function renderDeletionDetail(found: Deletion, baseUrl: string, now = new Date()) {
  const { status, counts } = found;
  const item = renderJobListItem(found, baseUrl, now);
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
