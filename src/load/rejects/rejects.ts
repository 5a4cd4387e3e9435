import { Fault, inputError } from '../../base/errors.ts';
import { KiB, MAX_PAGE_BYTES, MAX_REJECT_RAW_BYTES, MAX_SHOWN_RAW_BYTES } from '../../base/limits.ts';
import { walkPages } from '../../base/pages.ts';
import { capitaliseSentence, write } from '../../base/sentence.ts';
import { shorten } from '../../base/wording.ts';
import { recordKinds } from '../../domain/entity.ts';
import { ALL_RECORDS_REFUSED, FIRST_RECORDS_REFUSED } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { parseObject } from '../../formats/json-text.ts';
import type { Database } from '../../postgres/database.ts';
import type { LoadContext } from '../context.ts';
import { foreignColumns, foreignRecord, type Recognise } from '../map/foreign.ts';
import { countRejects, requireLoad } from '../read-store.ts';
import {
  countOfCause,
  type ReadRejects,
  type RejectsSource,
  readFirstReject,
  readRejectsPage,
  readRejectsSource,
} from './store.ts';
import { RefusedCsv, RejectsAsCsv, RejectsAsNdjson } from './text.ts';

const REJECTS_AT_A_TIME = 1_000;
const REJECT_BYTES_AT_A_TIME = 256 * KiB;

export type RejectsFormat = 'csv' | 'ndjson';

interface RejectsPage extends Omit<ReadRejects, 'rejects'> {
  readonly rejects: readonly ListedReject[];
  /** `null` for NDJSON. */
  readonly columns: readonly string[] | null;
  readonly total: number;
}

export interface ListedReject extends Reject {
  readonly isCut: boolean;
  /** Cells of the record. `null` if they cannot be read, and for NDJSON. */
  readonly cells: readonly string[] | null;
}

const readBounds = {
  rows: REJECTS_AT_A_TIME,
  bytes: REJECT_BYTES_AT_A_TIME,
  rawBytes: MAX_REJECT_RAW_BYTES,
};

/**
 * Lists the rejects after the row `after`. While the load runs, rejects may still be added before
 * this row, because chunks end in any order.
 * @throws InputError `not_found`
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
  const list = await readRejectsPage(context.db, loadId, page.after, bounds, cause);
  const total = cause === null ? tally.rejected : await countOfCause(context.db, loadId, cause);
  const cellsOf = createCellReader(header);
  const rejects = list.rejects.map((reject) => ({ ...reject, cells: cellsOf(reject) }));
  return { ...list, rejects, total, columns: header?.columns ?? null };
}

function createCellReader(header: CsvHeader | null) {
  const records = header === null ? null : new RefusedCsv(header);
  return (reject: Reject & { readonly isCut: boolean }): readonly string[] | null => {
    if (records === null || reject.isCut) return null;
    return records.texts(reject) ?? records.allCells(reject);
  };
}

/**
 * Yields a file of rejects that can be corrected. Memory use is bounded.
 * @throws InputError `not_found`
 */
export async function* exportRejects(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
  format: RejectsFormat,
  cause: number | null = null,
): AsyncGenerator<Buffer> {
  const source = await requireSource({ db }, environmentId, jobId);
  const shape =
    format === 'csv' ? new RejectsAsCsv(source.header, jobId) : new RejectsAsNdjson(source.header, jobId);
  if (shape.head.length > 0) yield shape.head;
  const read = (after: number) => readPiece(db, source, shape, after, cause);
  for await (const { lines } of walkPages(0, read)) if (lines.length > 0) yield lines;
}

interface Piece {
  readonly lines: Buffer;
  readonly next: number | null;
}

/**
 * Returns some rejects as lines. Does not return the rejects themselves, so their memory can be
 * freed while a slow reader takes the lines.
 */
async function readPiece(
  db: Database,
  { loadId }: RejectsSource,
  shape: RejectsAsCsv | RejectsAsNdjson,
  after: number,
  cause: number | null,
): Promise<Piece> {
  const { rejects, next } = await readRejectsPage(db, loadId, after, readBounds, cause);
  return { lines: Buffer.concat(rejects.map((reject) => shape.line(reject))), next };
}

export async function requireSource(
  { db }: Pick<LoadContext, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<RejectsSource> {
  const source = await readRejectsSource(db, environmentId, jobId);
  if (source === null) throw inputError('not_found', 'There is no such job', `job_id: ${jobId}`);
  return source;
}

interface Refusals {
  readonly header: CsvHeader | null;
  readonly byCode: Readonly<Record<string, number>>;
  readonly sample: Reject;
  readonly recognise: Recognise | null;
}

interface ReadSoFar {
  readonly read: number;
  readonly unread: number;
}

const mostNames = 12;
const longestName = 40;
/** Common names of columns with ids. */
const idLike =
  /^(?:_?id|uuid|uid|e-?mail|(?:user|customer|client|account|member|company|org\w*)[\s_-]?(?:id|key)?)$/i;
const ours: ReadonlySet<string> = new Set(['user_id', 'company_id']);

/** Failure of a load in which all records read so far were refused. */
export async function allRefused(
  { db, rewriter }: Pick<LoadContext, 'db' | 'rewriter'>,
  { environmentId, subjectId, jobId }: TaskClaim,
): Promise<TaskFailure> {
  const job = jobId ?? '';
  const source = await readRejectsSource(db, environmentId, job);
  const byCode = await countRejects({ db }, environmentId, job);
  const sample = await readFirstReject(db, subjectId, Object.keys(byCode)[0] ?? '');
  if (source === null || sample === null)
    throw new Fault('all records were refused, and none of them was kept');
  const { tally, totalRows } = await requireLoad({ db }, environmentId, job);
  const unread = totalRows - tally.read;
  const recognise = rewriter?.recognise ?? null;
  return {
    code: unread === 0 ? ALL_RECORDS_REFUSED : FIRST_RECORDS_REFUSED,
    message: explainRefusals(
      { header: source.header, byCode, sample, recognise },
      { read: tally.read, unread },
    ),
  };
}

/** States the probable reason, without any value from the data. */
export function explainRefusals({ header, byCode, sample, recognise }: Refusals, load?: ReadSoFar): string {
  const count = Object.values(byCode).reduce((sum, each) => sum + each, 0);
  const { read, unread } = load ?? { read: count, unread: 0 };
  const records =
    unread > 0
      ? `The first ${read} records were all refused, and the other ${unread} not read`
      : `All ${read} records were refused`;
  const all = read === 1 && unread === 0 ? 'The only record was refused' : records;
  const shares = Object.entries(byCode).map(([code, each]) => (each === count ? code : `${each} ${code}`));
  // If the column is missing, the preset did not recognise the record.
  const isPreset = sample.code === 'unknown_event_type' && sample.column === null;
  const likely =
    ofForeign(header, sample, recognise) ?? (header === null ? ofNdjson(sample) : ofCsv(header, sample));
  const reason = (isPreset ? null : likely) ?? `The first, in line ${sample.line}: ${sample.message}`;
  const retry = unread > 0 ? '. To load the others all the same, retry the job' : '';
  return `${all} (${shares.join(', ')}). ${reason}${retry}`;
}

function ofNdjson(sample: Reject): string | null {
  const text = textOf(sample);
  const start = text.trimStart();
  switch (sample.code) {
    case 'invalid_json':
      if (/^[{[]\s*'/.test(start)) return 'Names and texts are in single quotes. JSON needs double quotes';
      return start.startsWith('{')
        ? null
        : 'The lines are not JSON. If this is CSV, send it with format=csv or as .csv';
    case 'not_an_object':
      return 'Each line must be an object such as {"user_id":"a","metadata":{}}';
    case 'missing_id':
      return lacksId(Object.keys(parseObject(text) ?? {}));
    default:
      return ofAnyFormat(sample);
  }
}

function ofCsv(header: CsvHeader, sample: Reject): string | null {
  if (textOf(sample).trimStart().startsWith('{')) {
    return 'The lines look like NDJSON. Send the file with format=ndjson or as .ndjson';
  }
  switch (sample.code) {
    case 'missing_id':
      return `The cell of the id is empty in every record. The columns are ${list(header.columns)}. If another one is the id, name it with map (${example(header.columns)})`;
    case 'wrong_field_count':
      return `The header has ${header.columns.length} columns (delimiter ${JSON.stringify(header.delimiter)}), and no record has as many cells. If the first line is not the header, or the delimiter is another, use the options header and delimiter. ragged=pad fills short records`;
    case 'invalid_quote':
    case 'unclosed_quote':
      return 'The quotes are not those of CSV, where a cell with quotes is quoted as a whole and doubles them. Send quote=none if they mean nothing, or escape=\\ if a backslash precedes them';
    default:
      return ofAnyFormat(sample);
  }
}

function ofAnyFormat({ code, raw }: Reject): string | null {
  // After conversion from another encoding, the byte 0xFF marks an invalid character.
  if (code === 'invalid_utf8' && !raw.includes(0xff))
    return 'The file is not in UTF-8. Name its encoding, for example encoding=windows-1252';
  if (code === 'unknown_event_type') {
    return `event_type must be the kind of a record: ${recordKinds.join(', ')}. If it is a property of yours, send map=event_type=metadata.event_type`;
  }
  return code === 'nul_character' ? 'The file holds zero bytes. Send text in UTF-8' : null;
}

function lacksId(names: readonly string[]): string {
  // The stored part of a long record may be too short to contain a complete name.
  if (names.length === 0) return 'No record has a user_id or company_id';
  return `No record has a user_id or company_id. The first one has ${list(names)}. If another field is the id, name it with map (${example(names)})`;
}

function example(names: readonly string[]): string {
  const idName = names.find((name) => !ours.has(name) && idLike.test(name)) ?? 'Their Name';
  return `map=${shownName(idName)}=${/compan|org|account/i.test(idName) ? 'company_id' : 'user_id'}`;
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, mostNames).map(shownName);
  return shown.join(', ') + (names.length > mostNames ? ' …' : '');
}

function shownName(name: string): string {
  return shorten(name, longestName)
    .replace(/\p{Cc}/gu, ' ')
    .toWellFormed();
}

/** The reason if records need a preset, or if events do not state their kind. */
function ofForeign(header: CsvHeader | null, sample: Reject, recognise: Recognise | null): string | null {
  if (sample.code !== 'missing_id' && sample.code !== 'unknown_event_type') return null;
  const foreign =
    header === null
      ? foreignRecord(parseObject(textOf(sample)) ?? {}, recognise)
      : foreignColumns(header.columns, recognise);
  return foreign && write(capitaliseSentence(foreign.advice));
}

function textOf({ raw }: Reject): string {
  return Buffer.from(raw).toString('utf8');
}

export function tooManyRejects(rejected: number, maxErrors: number): TaskFailure {
  return {
    code: 'too_many_rejects',
    message: `Stopped: ${rejected} refused, ${maxErrors} allowed by max_errors; nothing written`,
  };
}
