import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import pLimit from 'p-limit';
import type { Static } from 'typebox';
import { MAX_PAGE_BYTES } from '../base/limits.ts';
import type { ActContext } from '../postgres/acts.ts';
import { takeTurns } from '../postgres/pool.ts';
import { askedPage, rowCursor, rowPage, sendEnvelope, sendJson } from './page.ts';
import { lenientQuery } from './plugins/validation.ts';
import type { Call } from './route.ts';

// Sends a job's records, either one page as JSON or all records as a file. The `Accept` header
// decides.

const formats = {
  'application/json': 'json',
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
} as const satisfies Readonly<Record<string, RowsFormat | 'json'>>;
const offered = Object.keys(formats) as (keyof typeof formats)[];

type RowsFormat = 'csv' | 'ndjson';

const mediaTypes: Readonly<Record<RowsFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson',
};

export const rowQuery = lenientQuery(rowPage);

interface RowQuery extends Static<typeof rowQuery> {
  readonly cause?: string;
  readonly group_by?: 'cause';
  readonly format?: RowsFormat;
}

type RowsCall = Omit<Call<{ readonly job_id: string }, RowQuery>, 'prepared'>;

interface RowsFile {
  readonly name: string;
  /** Normalizes the ID. @throws InputError `not_found`, as all functions here do */
  requireJob(environmentId: number, jobId: string): Promise<{ readonly jobId: string }>;
  export(environmentId: number, jobId: string, format: RowsFormat, query: RowQuery): AsyncIterable<Buffer>;
}

interface RowsOfJob extends RowsFile {
  readonly lastPosition: number;
  list(environmentId: number, jobId: string, page: RowsPage, query: RowQuery): Promise<ListedRows>;
  /** Response in place of the rows. `null` if the rows are sent. */
  summary?(environmentId: number, jobId: string, query: RowQuery): Promise<object | null>;
}

interface RowsPage {
  readonly limit: number;
  readonly after: number;
}

interface ListedRows {
  readonly rows: readonly { readonly position: number; readonly row: object }[];
  readonly more: boolean;
  readonly metadata: { readonly total_count: number; readonly columns?: readonly string[] | null };
}

/**
 * Maximum number of simultaneous queries for downloads, because connections must remain free for
 * loads.
 */
const piecesAtATime = 2;

export function recordRowsDownload(
  { db, acts }: ActContext,
  environmentId: number,
  jobId: string,
  name: string,
): Promise<void> {
  return acts.record(db, { action: `${name}.downloaded`, environmentId, thing: jobId, isFrequent: true });
}

export function rowsFile(file: RowsFile) {
  const inTurn = pLimit(piecesAtATime);
  return async (
    { system, request, reply, params, query, environment }: RowsCall,
    format: RowsFormat,
  ): Promise<FastifyReply> => {
    const { job_id: id } = params;
    const { jobId } = await file.requireJob(environment, id);
    reply
      .header('content-type', mediaTypes[format])
      .header('content-disposition', `attachment; filename="${jobId}-${file.name}.${format}"`);
    if (request.method === 'HEAD') return reply.send('');
    await recordRowsDownload(system, environment, jobId, file.name);
    const pieces = takeTurns(file.export(environment, id, format, query), inTurn);
    return reply.send(Readable.from(pieces, { objectMode: false }));
  };
}

export function answerRows(kind: RowsOfJob): (call: RowsCall) => Promise<FastifyReply> {
  const sendFile = rowsFile(kind);
  return async (call) => {
    const { request, reply, query, params, environment } = call;
    reply.header('vary', 'accept');
    const format = query.format ?? acceptedFormat(request.headers.accept ?? '') ?? 'json';
    if (format !== 'json') return sendFile(call, format);
    const { job_id: jobId } = params;
    const summary = await kind.summary?.(environment, jobId, query);
    if (summary != null) return sendJson(reply, JSON.stringify(summary));
    const { limit, after: position } = askedPage(query, rowCursor);
    const after = Math.min(position ?? 0, kind.lastPosition);
    const page = await kind.list(environment, jobId, { limit, after }, query);
    const { items, last } = takeFitting(page);
    const next = last === null ? null : rowCursor.write(last);
    return sendEnvelope(call, items, next, page.metadata);
  };
}

function acceptedFormat(header: string): (typeof formats)[keyof typeof formats] | undefined {
  const ranges = header.split(',').map((range) => {
    const [type = '', ...parameters] = range
      .toLowerCase()
      .split(';')
      .map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith('q='));
    return {
      type,
      quality: quality === undefined ? 1 : Number(quality.slice(2)),
      wide: type.split('*').length,
    };
  });
  const preferred = ranges
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.wide - b.wide)
    .flatMap(({ type }) =>
      offered.filter((offer) => type === '*/*' || offer.startsWith(type.replace(/\*$/, ''))),
    );
  return preferred[0] && formats[preferred[0]];
}

/** `last` is the position of the last row, or `null` on the last page. */
function takeFitting({ rows, more }: ListedRows): {
  readonly items: { readonly json: string }[];
  readonly last: number | null;
} {
  const items: { readonly json: string }[] = [];
  let bytes = 0;
  while (bytes < MAX_PAGE_BYTES && items.length < rows.length) {
    const json = JSON.stringify(rows[items.length]?.row);
    bytes += Buffer.byteLength(json);
    items.push({ json });
  }
  const isLast = !more && items.length === rows.length;
  return { items, last: isLast ? null : (rows[items.length - 1]?.position ?? null) };
}
