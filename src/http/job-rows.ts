import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify';
import pLimit, { type LimitFunction } from 'p-limit';
import type { System } from '../context.ts';
import { MAX_PAGE_BYTES } from '../domain/limits.ts';
import { baseUrl, nextLink } from './links.ts';
import { PageQuery, readRowCursor, writeRowCursor } from './page.ts';
import { environmentId } from './plugins/auth.ts';
import { readJobId } from './schemas/job-record.ts';

const offered = ['application/json', 'text/csv', 'application/x-ndjson'] as const;
type RowsType = (typeof offered)[number];

const aliases: Readonly<Record<string, RowsType>> = {
  'application/ndjson': 'application/x-ndjson',
  'application/jsonl': 'application/x-ndjson',
};

/** Of what is offered, what the caller likes best; JSON where it names none of it (anything, or no header). */
function rowsType(accept = ''): RowsType {
  const wanted = accept
    .split(',')
    .map((each) => {
      const [type = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      return { type: aliases[type] ?? type, quality: quality === undefined ? 1 : Number(quality) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  for (const { type } of wanted) {
    const found = offered.find((each) => each === type);
    if (found !== undefined) return found;
  }
  return 'application/json';
}

/** What a job tells of its records, one by one. */
interface RowsOfJob {
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
  /** On all pages. */
  readonly total: number;
}

type RowsFormat = 'csv' | 'ndjson';

const formats: Readonly<Record<Exclude<RowsType, 'application/json'>, RowsFormat>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
};

/** Files of which the next piece is read at a time: the others wait, and leave the database to those who bring data in. */
const piecesAtATime = 2;

/** A page as JSON, or all of them as a file, by what the caller accepts. */
export function addRowsOfJob(app: FastifyInstance, system: System, kind: RowsOfJob): void {
  const inTurn = pLimit(piecesAtATime);
  const options = { config: { scope: 'read', answerBytes: MAX_PAGE_BYTES }, schema: kind.schema } as const;
  app.get(`/v1/background_jobs/:job_id/${kind.name}`, options, async (request, reply) => {
    const jobId = readJobId(request);
    const type = rowsType(request.headers.accept);
    reply.header('vary', 'accept');
    // A file has all of them, whatever page is asked for.
    if (type !== 'application/json') new PageQuery(request.query).allow('limit', 'cursor').check();
    return type === 'application/json'
      ? sendPage(system, kind, request, reply, jobId)
      : sendFile(kind, request, reply, jobId, type, inTurn);
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
  const { rows, last } = firstThatFit(page);
  const next = last === null ? null : writeRowCursor(last);
  if (next !== null) reply.header('link', nextLink(request, baseUrl(request, config.publicUrl), next));
  const metadata = { cursor: { after: next, before: null }, limit, total_count: page.total };
  return reply
    .header('content-type', 'application/json; charset=utf-8')
    .send(`{"data":[${rows.join(',')}],"metadata":${JSON.stringify(metadata)}}`);
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

async function sendFile(
  kind: RowsOfJob,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  type: keyof typeof formats,
  inTurn: LimitFunction,
): Promise<FastifyReply> {
  const format = formats[type];
  const environment = environmentId(request);
  const { jobId: known } = await kind.requireJob(environment, jobId);
  reply
    .header('content-type', type === 'text/csv' ? 'text/csv; charset=utf-8' : type)
    .header('content-disposition', `attachment; filename="${known}-${kind.name}.${format}"`);
  if (request.method === 'HEAD') return reply.send('');
  const pieces = takeTurns(kind.export(environment, jobId, format), inTurn);
  return reply.send(Readable.from(pieces, { objectMode: false }));
}

async function* takeTurns<T>(pieces: AsyncIterable<T>, inTurn: LimitFunction): AsyncGenerator<T> {
  const source = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      const piece = await inTurn(() => source.next());
      if (piece.done === true) return;
      yield piece.value;
    }
  } finally {
    await source.return?.();
  }
}
