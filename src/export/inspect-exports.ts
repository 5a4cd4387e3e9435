import { inputError } from '../domain/errors.ts';
import type { Export, ExportStatus } from '../domain/export.ts';
import { readExports } from '../postgres/ledger/read-exports.ts';
import type { ExportContext } from './context.ts';

/** Throws `InputError` `not_found`, also for another environment's export, and for a job that is none. */
export async function requireExport(
  { db }: Pick<ExportContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<Export> {
  const [found] = await readExports(db, environmentId, [jobId]);
  if (found === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return found;
}

export interface ExportPage {
  readonly exports: readonly Export[];
  /** Exports that match, on all pages. */
  readonly total: number;
  /** Job id to continue after, or null on the last page. */
  readonly next: string | null;
}

/** Newest first. `after` is the job id at which the page before ended. */
export async function listExports(
  { db }: Pick<ExportContext, 'db'>,
  environmentId: number,
  filter: { readonly status?: ExportStatus },
  page: { readonly limit: number; readonly after: string | null },
): Promise<ExportPage> {
  let matching = db.selectFrom('exports').where('environment_id', '=', environmentId);
  if (filter.status !== undefined) matching = matching.where('status', '=', filter.status);
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  let rows = matching
    .select('job_id')
    .orderBy('job_id', 'desc')
    .limit(page.limit + 1);
  if (page.after !== null) rows = rows.where('job_id', '<', page.after);
  const ids = (await rows.execute()).map((row) => row.job_id);
  const shown = ids.slice(0, page.limit);
  const exports = (await readExports(db, environmentId, shown)).sort(newestFirst);
  return { exports, total, next: ids.length > page.limit ? (shown.at(-1) ?? null) : null };
}

function newestFirst(a: Export, b: Export): number {
  return a.jobId < b.jobId ? 1 : -1;
}
