import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import type { System } from '../context.ts';
import { baseUrl } from './base-url.ts';
import { readRowCursor, writeRowCursor } from './cursor.ts';
import { nextLink } from './next-link.ts';
import { environmentId } from './plugins/auth.ts';
import { readJobId } from './schemas/job-id.ts';
import { PageQuery } from './schemas/page-query.ts';
import { type RowsType, rowsType } from './schemas/rows-type.ts';

/** What a job tells of its records, one by one. */
export interface RowsOfJob {
  /** The end of the path, and of the names of files. */
  readonly name: string;
  readonly schema: FastifySchema;
  /** The highest position there can be: beyond it there is nothing. */
  readonly lastPosition: number;
  /** Throws `InputError` `not_found`; so do the others. */
  list(environmentId: number, jobId: string, page: RowsPage): Promise<ListedRows>;
  /** The job's id as we write it. */
  requireJob(environmentId: number, jobId: string): Promise<{ readonly jobId: string }>;
  export(environmentId: number, jobId: string, format: RowsFormat): AsyncIterable<Buffer>;
}

export interface RowsPage {
  readonly limit: number;
  /** Position of the last row before the page, 0 for none. */
  readonly after: number;
}

export interface ListedRows {
  /** Rendered. */
  readonly rows: readonly object[];
  /** Position to go on after, or null on the last page. */
  readonly next: number | null;
  /** On all pages. */
  readonly total: number;
}

export type RowsFormat = 'csv' | 'ndjson';

const formats: Readonly<Record<Exclude<RowsType, 'application/json'>, RowsFormat>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
};

/** A page as JSON, or all of them as a file, by what the caller accepts. */
export function addRowsOfJob(app: FastifyInstance, system: System, kind: RowsOfJob): void {
  const options = { config: { scope: 'read' }, schema: kind.schema } as const;
  app.get(`/v1/background_jobs/:job_id/${kind.name}`, options, async (request, reply) => {
    const jobId = readJobId(request);
    const type = rowsType(request.headers.accept);
    reply.header('vary', 'accept');
    // A file has all of them, whatever page is asked for.
    if (type !== 'application/json') new PageQuery(request.query).allow('limit', 'cursor').check();
    return type === 'application/json'
      ? sendPage(system, kind, request, reply, jobId)
      : sendFile(kind, request, reply, jobId, type);
  });
}

async function sendPage(
  { config }: System,
  kind: RowsOfJob,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
): Promise<FastifyReply> {
  const query = new PageQuery(request.query);
  const limit = query.limit();
  const position = query.read('cursor', 0, readRowCursor);
  query.check();
  const after = Math.min(position, kind.lastPosition);
  const page = await kind.list(environmentId(request), jobId, { limit, after });
  const next = page.next === null ? null : writeRowCursor(page.next);
  if (next !== null) reply.header('link', nextLink(request, baseUrl(request, config.publicUrl), next));
  return reply.send({
    data: page.rows,
    metadata: { cursor: { after: next, before: null }, limit, total_count: page.total },
  });
}

async function sendFile(
  kind: RowsOfJob,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  type: keyof typeof formats,
): Promise<FastifyReply> {
  const format = formats[type];
  const environment = environmentId(request);
  const { jobId: known } = await kind.requireJob(environment, jobId);
  reply
    .header('content-type', type === 'text/csv' ? 'text/csv; charset=utf-8' : type)
    .header('content-disposition', `attachment; filename="${known}-${kind.name}.${format}"`);
  if (request.method === 'HEAD') return reply.send('');
  return reply.send(Readable.from(kind.export(environment, jobId, format), { objectMode: false }));
}
