import { inputError } from '../domain/errors.ts';
import {
  MAX_PAGE_BYTES,
  MAX_REJECT_RAW_BYTES,
  MAX_SHOWN_RAW_BYTES,
  REJECT_BYTES_AT_A_TIME,
  REJECTS_AT_A_TIME,
} from '../domain/limits.ts';
import type { Reject } from '../domain/reject.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import {
  countOfCause,
  type ReadRejects,
  type RejectsSource,
  readRejectsPage,
  readRejectsSource,
} from '../postgres/stores/rejects.ts';
import type { LoadContext } from './context.ts';
import { RefusedCsv } from './refused-csv.ts';
import { RejectsAsCsv, RejectsAsNdjson } from './rejects-text.ts';

export type RejectsFormat = 'csv' | 'ndjson';

export interface RejectsPage extends Omit<ReadRejects, 'rejects'> {
  readonly rejects: readonly ListedReject[];
  /** The source's own columns, of a CSV; else null. */
  readonly columns: readonly string[] | null;
  /** Rejects of the load, on all pages. */
  readonly total: number;
}

export interface ListedReject extends Reject {
  readonly isCut: boolean;
  /** Of a record of CSV that can be read as such, what its cells hold, however many they are; else null. */
  readonly cells: readonly string[] | null;
}

const heldAtATime = {
  rows: REJECTS_AT_A_TIME,
  bytes: REJECT_BYTES_AT_A_TIME,
  rawBytes: MAX_REJECT_RAW_BYTES,
};

/**
 * In file order, with their records cut; with a `cause`, only those. While the load still runs, chunks that end later may add rejects before `after`.
 * @throws InputError `not_found`.
 */
export async function listRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  page: { readonly limit: number; readonly after: number; readonly cause?: number | null },
): Promise<RejectsPage> {
  const { tally } = await requireLoad(context, environmentId, jobId);
  const { cause = null } = page;
  const { loadId, header } = await requireSource(context, environmentId, jobId);
  const bounds = { rows: page.limit, bytes: MAX_PAGE_BYTES, rawBytes: MAX_SHOWN_RAW_BYTES };
  const found = await readRejectsPage(context.db, loadId, page.after, bounds, cause);
  const total = cause === null ? tally.rejected : await countOfCause(context.db, loadId, cause);
  const cellsOf = createCellReader(header);
  const rejects = found.rejects.map((reject) => ({ ...reject, cells: cellsOf(reject) }));
  return { ...found, rejects, total, columns: header?.columns ?? null };
}

function createCellReader(header: CsvHeader | null) {
  const records = header === null ? null : new RefusedCsv(header);
  return ({ raw, isCut }: Reject & { readonly isCut: boolean }): readonly string[] | null => {
    if (records === null || isCut) return null;
    const bytes = Buffer.from(raw);
    return records.split(bytes)?.map(({ text }) => text) ?? records.allCells(bytes);
  };
}

/**
 * All rejects of a load, or of a cause, as a file that can be mended and loaded again, in its own shape where it is CSV and
 * CSV is wanted, or NDJSON and NDJSON. Memory does not grow with their number.
 * @throws InputError `not_found`.
 */
export async function* exportRejects(
  context: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  format: RejectsFormat,
  cause: number | null = null,
): AsyncGenerator<Buffer> {
  const source = await requireSource(context, environmentId, jobId);
  const shape = format === 'csv' ? new RejectsAsCsv(source.header) : new RejectsAsNdjson(source.header);
  if (shape.head.length > 0) yield shape.head;
  for (let after: number | null = 0; after !== null; ) {
    const piece: Piece = await readPiece(context, source, shape, after, cause);
    if (piece.lines.length > 0) yield piece.lines;
    after = piece.next;
  }
}

interface Piece {
  readonly lines: Buffer;
  readonly next: number | null;
}

/** The rejects themselves are forgotten before a reader, who may be slow, takes their lines. */
async function readPiece(
  { db }: Pick<LoadContext, 'db'>,
  { loadId }: RejectsSource,
  shape: RejectsAsCsv | RejectsAsNdjson,
  after: number,
  cause: number | null,
): Promise<Piece> {
  const { rejects, more } = await readRejectsPage(db, loadId, after, heldAtATime, cause);
  const lines = Buffer.concat(rejects.map((reject) => shape.line(reject)));
  return { lines, next: more ? (rejects.at(-1)?.row ?? null) : null };
}

export async function requireSource(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource> {
  const source = await readRejectsSource(db, environmentId, jobId);
  if (source === null) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  return source;
}
