import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import type { LimitFunction } from 'p-limit';
import pLimit from 'p-limit';
import type { Static } from 'typebox';
import type { System } from '../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../domain/limits.ts';
import { takeTurns } from '../postgres/pool.ts';
import { readRowCursor, rowPage, sendEnvelope, sendJson, writeRowCursor } from './page.ts';
import { environmentId } from './plugins/auth.ts';
import { listQuery } from './plugins/validation.ts';
import { jobIdOf, type jobParameters } from './schemas/job-record.ts';

/** What is offered, by the media types that name it. */
const formats = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
} as const satisfies Readonly<Record<string, RowsFormat | 'json'>>;
const offered = Object.keys(formats) as (keyof typeof formats)[];

/** What a job tells of its records, one by one. */
interface RowsOfJob {
  /** The end of the path, and of the names of files. */
  readonly name: string;
  readonly schema: FastifySchema;
  /** The highest position there can be: beyond it there is nothing. */
  readonly lastPosition: number;
  /** Throws `InputError` `not_found`; so do the others. */
  list(environmentId: number, jobId: string, page: RowsPage, query: RowQuery): Promise<ListedRows>;
  /** The job's id as we write it. */
  requireJob(environmentId: number, jobId: string): Promise<{ readonly jobId: string }>;
  export(environmentId: number, jobId: string, format: RowsFormat, query: RowQuery): AsyncIterable<Buffer>;
  /** What JSON is answered with instead of rows; null: this query asks for rows. */
  summary?(environmentId: number, jobId: string, query: RowQuery): Promise<object | null>;
}

interface RowsPage {
  readonly limit: number;
  /** Position of the last row before the page, 0 for none. */
  readonly after: number;
}

interface ListedRows {
  /** Rendered. */
  readonly rows: readonly { readonly position: number; readonly row: object }[];
  /** Others follow. */
  readonly more: boolean;
  /** What the answer says of the page, beside its cursor. */
  readonly metadata: { readonly total_count: number; readonly columns?: readonly string[] | null };
}

type RowsFormat = 'csv' | 'ndjson';

const mediaTypes: Readonly<Record<RowsFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson',
};

export const rowQuery = listQuery(rowPage);
/** With what only refused records are asked by. */
interface RowQuery extends Static<typeof rowQuery> {
  readonly cause?: string;
  readonly group_by?: 'cause';
  readonly format?: RowsFormat;
}

interface RowsRequest {
  Params: Static<typeof jobParameters>;
  Querystring: RowQuery;
}

/** Files of which the next piece is read at a time: the others wait, and leave the database to those who bring data in. */
export const piecesAtATime = 2;

/** A page as JSON, or all of them as a file, by what the caller accepts. */
export function addRowsOfJob(app: FastifyInstance, system: System, kind: RowsOfJob): void {
  const inTurn = pLimit(piecesAtATime);
  const options = { config: { scope: 'read', answerBytes: MAX_PAGE_BYTES }, schema: kind.schema } as const;
  const path = `/v1/background_jobs/:job_id/${kind.name}`;
  app.get<RowsRequest>(path, options, async (request, reply) => {
    const jobId = jobIdOf(request);
    reply.header('vary', 'accept');
    // A caller who accepts nothing of it gets JSON, as one who says nothing.
    const [type] = [request.type(offered)].flat();
    const format = request.query.format ?? formats[type as keyof typeof formats] ?? 'json';
    // A file has all of them, whatever page is asked for.
    if (format !== 'json') return sendFile(kind, request, request.query, reply, jobId, format, inTurn);
    const summary = await kind.summary?.(environmentId(request), jobId, request.query);
    if (summary != null) return sendJson(reply, JSON.stringify(summary));
    return sendPage(system, kind, request, request.query, reply, jobId);
  });
}

async function sendPage(
  { config }: System,
  kind: RowsOfJob,
  request: FastifyRequest,
  query: RowQuery,
  reply: FastifyReply,
  jobId: string,
): Promise<FastifyReply> {
  const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = query;
  const after = Math.min(readRowCursor(cursor) ?? 0, kind.lastPosition);
  const page = await kind.list(environmentId(request), jobId, { limit, after }, query);
  const { rows, last } = firstThatFit(page);
  const next = last === null ? null : writeRowCursor(last);
  return sendEnvelope(request, reply, config.publicUrl, {
    items: rows,
    next,
    limit,
    more: page.metadata,
  });
}

/** The rows of a page as JSON, and the position to go on after, null on the last page. */
function firstThatFit({ rows, more }: ListedRows): { readonly rows: string[]; readonly last: number | null } {
  const texts: string[] = [];
  for (let bytes = 0; bytes < MAX_PAGE_BYTES && texts.length < rows.length; ) {
    const text = JSON.stringify(rows[texts.length]?.row);
    bytes += Buffer.byteLength(text);
    texts.push(text);
  }
  const isLast = !more && texts.length === rows.length;
  return { rows: texts, last: isLast ? null : (rows[texts.length - 1]?.position ?? null) };
}

export async function sendFile(
  kind: Pick<RowsOfJob, 'name' | 'requireJob' | 'export'>,
  request: FastifyRequest,
  query: RowQuery,
  reply: FastifyReply,
  jobId: string,
  format: RowsFormat,
  inTurn: LimitFunction,
): Promise<FastifyReply> {
  const environment = environmentId(request);
  const { jobId: known } = await kind.requireJob(environment, jobId);
  reply
    .header('content-type', mediaTypes[format])
    .header('content-disposition', `attachment; filename="${known}-${kind.name}.${format}"`);
  if (request.method === 'HEAD') return reply.send('');
  const pieces = takeTurns(kind.export(environment, jobId, format, query), inTurn);
  return reply.send(Readable.from(pieces, { objectMode: false }));
}
