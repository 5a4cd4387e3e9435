import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, type TString, Type } from 'typebox';
import { inputError } from '../base/errors.ts';
import { PREVIEWED_ROWS } from '../base/limits.ts';
import { ruled, worded } from '../base/validation.ts';
import type { System } from '../context.ts';
import { exportFormatFacts, exportFormats } from '../domain/export.ts';
import { named } from '../http/answers.ts';
import { callerEnvironment, callerOf, callerOrigin } from '../http/caller.ts';
import { askedPage, jobCursor, jobPage, linkJobs, pageBytes } from '../http/page.ts';
import {
  bodyHeaders,
  conditionHeaders,
  jobParameters,
  namesTag,
  readIdempotency,
  readSeveral,
  statusParameter,
} from '../http/parameters.ts';
import { bodyBytes, readJsonObject } from '../http/plugins/json-body.ts';
import { lenientQuery } from '../http/plugins/validation.ts';
import { render } from '../http/render.ts';
import { type Route, route } from '../http/route.ts';
import { text, uuid, withExamples } from '../http/schema.ts';
import { actingAs } from '../postgres/acts.ts';
import { requireQueueRoom } from '../tasks/job-store.ts';
import { createdExport, exportItem, exportJob, exportPreview } from './api.ts';
import {
  contentType,
  fileLinks,
  findLinkedFile,
  type LinkedFile,
  type LinkHolder,
  linkHolder,
  linksExpireAt,
  noSuchLink,
  openLinkedFile,
  recordDownload,
} from './file-links.ts';
import { renderCreated, renderExport, renderExportItem, requireExport } from './inspect-exports.ts';
import type { ExportOptions } from './options.ts';
import { previewExport, requestExport } from './request-export.ts';
import { pageExports } from './store.ts';

const path = '/api/v1/analytics/exports';

const requestRefusals = [
  'invalid_date',
  'invalid_range',
  'invalid_cursor',
  'cursor_expired',
  'unknown_segment',
  'unknown_event_type',
] as const;

const create = ({ schema }: ExportOptions) =>
  route({
    at: `POST ${path}`,
    operationId: 'createExport',
    summary: 'Create an export',
    description:
      'Writes users, companies and events, as they are at one moment, to files that can be downloaded. Every field is optional, and so is the body. Unknown fields are ignored and named in `warnings`.',
    access: 'export',
    bodyKind: 'json',
    headers: bodyHeaders,
    content: {
      'application/json': withExamples(schema, {
        everything: { summary: 'All data', value: {} },
        events: {
          summary: 'One kind of event in a week as CSV, with an e-mail at the end',
          value: {
            from: '2026-11-16',
            to: '2026-11-22',
            event_type: ['track'],
            exclusions: 'user:test-*',
            emails: ['ada@example.com'],
            format: 'csv',
          },
        },
      }),
    },
    answer: {
      status: 201,
      description: 'The export is accepted and runs in the background.',
      schema: createdExport.ref,
    },
    refuses: requestRefusals,
    handle: async ({ system, request, environment, base }) => {
      const body = bodyBytes(request);
      const wishBody = readJsonObject(body);
      const idempotency = readIdempotency(request, body);
      await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
      const jobId = await requestExport(system, environment, wishBody, idempotency, {
        requestId: request.id,
        origin: callerOrigin(request),
      });
      const created = await requireExport(system, environment, jobId);
      return renderCreated(created, callerEnvironment(request), base());
    },
  });

const preview = ({ schema }: ExportOptions) =>
  route({
    at: `POST ${path}/preview`,
    operationId: 'previewExport',
    summary: 'Preview an export',
    description: `Takes the body of an export and starts none. Returns the number of rows, an estimate of the file sizes, and the first ${PREVIEWED_ROWS} rows of each file, all of one moment. Returns 503 if that takes more than some seconds; the export itself has no such limit.`,
    access: 'export',
    config: pageBytes,
    bodyKind: 'json',
    content: {
      'application/json': withExamples(schema, {
        users: { summary: 'All users as CSV', value: { event_type: ['users'], format: 'csv' } },
      }),
    },
    answer: { description: 'The preview.', schema: exportPreview.ref },
    refuses: requestRefusals,
    handle: async ({ system, request, environment }) => {
      const wishBody = readJsonObject(bodyBytes(request));
      const { files, request: range, warnings } = await previewExport(system, environment, wishBody);
      return {
        rows: files.reduce((sum, file) => sum + file.rows, 0),
        is_exact: files.every((file) => file.isExact),
        bytes: files.reduce((sum, file) => sum + file.bytes, 0),
        from: range.from,
        to: range.to,
        files: files.map(render),
        warnings,
      };
    },
  });

const list = route({
  at: `GET ${path}/jobs`,
  operationId: 'listExports',
  summary: 'List exports',
  description:
    'Lists the exports of the environment, newest first. The body is a bare array; the next page is in `Link`.',
  access: 'export',
  config: pageBytes,
  query: lenientQuery({ ...jobPage, status: statusParameter('Only return exports in this state.') }),
  answer: {
    description: 'A page of exports.',
    headers: ['X-Total-Count', 'Link'],
    schema: Type.Array(exportItem.ref),
  },
  handle: async (call) => {
    const { reader } = call.system;
    const filter = { statuses: readSeveral(call.query.status) };
    const pageRequest = askedPage(call.query, jobCursor);
    const page = await pageExports(reader.db, call.environment, filter, pageRequest);
    linkJobs(call, page);
    const environment = callerEnvironment(call.request);
    const base = call.base();
    return page.exports.map((each) => renderExportItem(each, environment, base));
  },
});

const show = route({
  at: `GET ${path}/jobs/:job_id`,
  operationId: 'showExport',
  summary: 'Show an export',
  description:
    'Returns the progress of the export and, once it is completed, links to its files. Every request creates new links.',
  access: 'export',
  params: jobParameters,
  answer: { description: 'The export.', schema: exportJob.ref },
  handle: async ({ system, request, params, environment, base }) => {
    const job = await requireExport(system.reader, environment, params.job_id);
    const expireAt = linksExpireAt();
    const links = await fileLinks(system, job, base(), expireAt, linkHolder(callerOf(request)));
    return renderExport(job, callerEnvironment(request), links, base());
  },
});

const bytes = {
  schema: Type.String({ format: 'binary', description: 'The file, or the requested part of it.' }),
};

const manifest = {
  schema: Type.Any({
    description: 'The manifest, or the requested part of it.',
    examples: [{ rows: { users: 1200 } }],
  }),
};

const content = {
  'application/gzip': bytes,
  ...Object.fromEntries(exportFormats.map((format) => [exportFormatFacts[format].mediaType, bytes])),
  'application/json': manifest,
};

const fileHeaders = ['ETag', 'Accept-Ranges', 'Content-Disposition', 'Cache-Control'] as const;

/** The response does not reveal why a link is invalid. */
const noSuchFile = { wording: noSuchLink, isOneProblem: true } as const;

const matching = (form: RegExp, schema: TString) =>
  ruled(schema, (text) => (form.test(text) ? null : noSuchLink.message));

const fromLink = () => text('From the link.');

const params = worded(
  Type.Object({
    job_id: matching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, uuid('ID of the export.')),
    // The name must not contain U+0000, because PostgreSQL rejects it.
    filename: matching(/^[^\0]*$/, text('Name of the file.', 'users.ndjson.gz')),
  }),
  noSuchFile,
);

const query = worded(
  Type.Object({
    expires: matching(/^[1-9]\d{0,11}$/, fromLink()),
    key: Type.Optional(matching(/^\w{1,64}$/, fromLink())),
    session: Type.Optional(matching(/^[\w-]{1,64}$/, fromLink())),
    signature: fromLink(),
  }),
  noSuchFile,
);

const download = route({
  at: 'GET /api/v1/analytics/exports/files/:job_id/:filename',
  operationId: 'downloadExportFile',
  summary: 'Download a file of an export',
  description:
    'Serves the links of an export. No key is required: the link itself authorises, until it expires, or the key or session that requested it ends. `Range` (one range), `If-Range` and `If-None-Match` are supported; the ETag is the SHA-256 of the file.',
  access: 'open',
  security: [],
  params,
  query,
  headers: {
    Range: Type.Optional(text('The requested part: one range of bytes.', 'bytes=1048576-')),
    'If-Range': Type.Optional(
      text('ETag of the file that the part belongs to. If the file is another, all of it is sent.'),
    ),
    ...conditionHeaders,
  },
  answer: { description: 'The file.', headers: fileHeaders, content },
  answers: {
    206: { description: 'A part of the file.', headers: named(...fileHeaders, 'Content-Range'), content },
    304: { type: 'null', description: 'The caller has the file already.', headers: named('ETag') },
  },
  refuses: [
    'link_expired',
    'job_expired',
    'range_not_satisfiable',
    'rate_limited',
    'internal_error',
    'unavailable',
  ],
  handle: async ({ system, request, reply, params: { job_id: jobId, filename }, query }) => {
    const { expires, signature } = query;
    const link = { jobId, filename, expires, holder: readHolder(query), signature };
    const file = await findLinkedFile(system, link);
    const etag = `"${file.sha256}"`;
    reply.header('etag', etag);
    if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    const range = wantedRange(request, file, etag);
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${file.bytes}`);
      throw inputError('range_not_satisfiable', 'The file has no such part', `it has ${file.bytes} bytes`);
    }
    if (request.method !== 'HEAD')
      await recordDownload(actingAs(system, file.actor), file.environmentId, jobId, filename);
    return sendFile(system, request, reply, file, range);
  },
});

function readHolder({ key, session }: Static<typeof query>): LinkHolder | null {
  if (key !== undefined) return { kind: 'key', id: key };
  return session === undefined ? null : { kind: 'session', id: session };
}

/** A range of another version of the file (`If-Range`) is ignored. */
function wantedRange({ headers }: FastifyRequest, file: LinkedFile, etag: string) {
  const condition = headers['if-range'];
  return condition === undefined || condition === etag ? readByteRange(headers.range, file.bytes) : null;
}

async function sendFile(
  system: System,
  request: FastifyRequest,
  reply: FastifyReply,
  file: LinkedFile,
  range: ByteRange | null,
): Promise<FastifyReply> {
  const { start, end } = range ?? { start: 0, end: file.bytes };
  const isEmpty = request.method === 'HEAD' || start === end;
  // Fastify does not set the content length for a stream.
  const body = isEmpty ? Readable.from([]) : await openLinkedFile(system, file, { start, end });
  if (range !== null) reply.code(206).header('content-range', `bytes ${start}-${end - 1}/${file.bytes}`);
  return reply
    .header('content-type', contentType(file.filename))
    .header('content-length', String(end - start))
    .header('accept-ranges', 'bytes')
    .header('content-disposition', `attachment; filename="${file.filename}"`)
    .send(body);
}

interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads the `Range` header. If the result is `null`, the whole file is sent. RFC 9110 allows this
 * for several ranges and for a malformed header. The library range-parser refuses a suffix longer
 * than the file and a range that ends before it begins.
 */
function readByteRange(header: string | undefined, bytes: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    if (Number(last) === 0 || bytes === 0) return 'unsatisfiable';
    return { start: Math.max(0, bytes - Number(last)), end: bytes };
  }
  const start = Number(first);
  const end = last === '' ? bytes : Math.min(Number(last) + 1, bytes);
  if (last !== '' && Number(last) < start) return null;
  return start < bytes ? { start, end } : 'unsatisfiable';
}

export const exportRoutes = (options: ExportOptions): readonly Route[] => [
  create(options),
  preview(options),
  list,
  show,
  download,
];
