import { inputError } from '../domain/errors.ts';
import type { Reject } from '../domain/reject.ts';
import { type RejectsSource, readRejectsPage, readRejectsSource } from '../postgres/ledger/read-rejects.ts';
import type { LoadContext } from './context.ts';
import { requireLoad } from './inspect-load.ts';
import { RejectsAsCsv } from './rejects-as-csv.ts';
import { RejectsAsNdjson } from './rejects-as-ndjson.ts';

export type RejectsFormat = 'csv' | 'ndjson';

export interface RejectsPage {
  readonly rejects: readonly Reject[];
  /** Rejects of the load, on all pages. */
  readonly total: number;
  /** Row to continue after, or null on the last page. */
  readonly next: number | null;
}

/** Rejects held at a time while a file of them is written; each is at most MAX_REJECT_RAW_BYTES. */
const rowsAtATime = 100;

/**
 * In file order. While the load still runs, chunks that end later may add rejects before `after`.
 * @throws InputError `not_found`.
 */
export async function listRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number },
): Promise<RejectsPage> {
  const { tally } = await requireLoad(context, environmentId, jobId);
  const { loadId } = await requireSource(context, environmentId, jobId);
  const found = await readRejectsPage(context.db, loadId, page.after, page.limit + 1);
  const rejects = found.slice(0, page.limit);
  const next = found.length > page.limit ? (rejects.at(-1)?.row ?? null) : null;
  return { rejects, total: tally.rejected, next };
}

/**
 * All rejects of a load as a file that can be mended and loaded again, in its own shape where it is CSV and
 * CSV is wanted, or NDJSON and NDJSON. Memory does not grow with their number.
 * @throws InputError `not_found`.
 */
export async function* exportRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  format: RejectsFormat,
): AsyncGenerator<Buffer> {
  const source = await requireSource(context, environmentId, jobId);
  const shape = format === 'csv' ? new RejectsAsCsv(source.header) : new RejectsAsNdjson(source.header);
  if (shape.head.length > 0) yield shape.head;
  for (let after = 0; ; ) {
    const rejects = await readRejectsPage(context.db, source.loadId, after, rowsAtATime);
    if (rejects.length > 0) yield Buffer.concat(rejects.map((reject) => shape.line(reject)));
    const last = rejects.at(-1);
    if (last === undefined || rejects.length < rowsAtATime) return;
    after = last.row;
  }
}

async function requireSource(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource> {
  const source = await readRejectsSource(db, environmentId, jobId);
  if (source === null) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return source;
}
