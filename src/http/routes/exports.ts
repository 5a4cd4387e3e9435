import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { createdExport, exportItem, exportJob, exportPreview } from '../../api/export.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES, PREVIEWED_ROWS } from '../../domain/limits.ts';
import { cancelExport } from '../../export/end-export.ts';
import { fileLinks, linksExpireAt } from '../../export/file-links.ts';
import {
  renderCreated,
  renderExport,
  renderExportItem,
  requireExport,
} from '../../export/inspect-exports.ts';
import { previewExport } from '../../export/preview-export.ts';
import { exportRequest } from '../../export/read-request.ts';
import { requestExport } from '../../export/request-export.ts';
import { pageExports } from '../../postgres/stores/exports.ts';
import { baseUrl, jobPage, nextLink, readJobCursor, writeJobCursor } from '../page.ts';
import { callerEnvironment, callerKeyId, callerOrigin, environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { actionHeaders, bodyHeaders, idempotencyKeyOf, readIdempotency } from '../request-headers.ts';
import { jobRefusals, named, readSeveral, refusals } from '../schemas/answers.ts';
import { type ExportItem, jobIdOf, jobParameters, statusParameter } from '../schemas/job-record.ts';

type CreatedExport = Static<typeof createdExport.schema>;

const createExportSchema = {
  operationId: 'createExport',
  summary: 'Start an export',
  description:
    'Writes users, companies and events, as they are at one moment, into files to download. Every field is optional, and so is the body. Unknown fields are ignored and named in `warnings`.',
  tags: ['exports'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(exportRequest, {
        everything: { summary: 'Everything there is', value: {} },
        events: {
          summary: 'One kind of event of a week, as CSV, and a message when it is done',
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
  },
  response: {
    201: {
      description: 'It is accepted, and runs in the background.',
      content: { 'application/json': { schema: createdExport.ref } },
    },
    ...refusals(
      'invalid_json',
      'invalid_field',
      'invalid_date',
      'invalid_range',
      'unknown_segment',
      'unknown_event_type',
      'upload_too_slow',
      'idempotency_conflict',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function createExport(scope: FastifyInstance, system: System): void {
  const options = { config: { scope: 'export' }, schema: createExportSchema } as const;
  scope.post('/api/v1/analytics/exports', options, async (request, reply) => {
    const environment = callerEnvironment(request);
    const { environmentId } = environment;
    const body = bodyBytes(request);
    const idempotency = readIdempotency(request, body);
    await requireQueueRoom(system.db, environmentId, idempotency?.key ?? null, system.config.maxQueuedJobs);
    const jobId = await requestExport(system, environmentId, readJsonObject(body), idempotency, {
      requestId: request.id,
      origin: callerOrigin(request),
    });
    const found = await requireExport(system, environmentId, jobId);
    return reply
      .code(201)
      .send(
        renderCreated(found, environment, baseUrl(request, system.config.publicUrl)) satisfies CreatedExport,
      );
  });
}

const previewExportSchema = {
  operationId: 'previewExport',
  summary: 'Count what an export would hold',
  description: `Takes the body of an export and starts none: how many rows it would have, about how large its files would be, and the first ${PREVIEWED_ROWS} rows of each, of one moment. What cannot be read within some seconds is 503; the export itself takes as long as it takes.`,
  tags: ['exports'],
  body: {
    content: {
      'application/json': withExamples(exportRequest, {
        users: { summary: 'All users as CSV', value: { event_type: ['users'], format: 'csv' } },
      }),
    },
  },
  response: {
    200: { description: 'The preview.', content: { 'application/json': { schema: exportPreview.ref } } },
    ...refusals(
      'invalid_json',
      'invalid_field',
      'invalid_date',
      'invalid_range',
      'unknown_segment',
      'unknown_event_type',
      'upload_too_slow',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

export function previewExportRoute(scope: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'export', answerBytes: MAX_PAGE_BYTES },
    schema: previewExportSchema,
  } as const;
  scope.post('/api/v1/analytics/exports/preview', options, async (request, reply) => {
    const body = readJsonObject(bodyBytes(request));
    const found = await previewExport(system, environmentId(request), body);
    const files = found.files.map((file) => ({
      dataset: file.dataset,
      rows: file.rows,
      is_exact: file.isExact,
      bytes: file.bytes,
      header: file.header,
      first_rows: [...file.firstRows],
    }));
    const answer: Static<typeof exportPreview.schema> = {
      rows: files.reduce((sum, file) => sum + file.rows, 0),
      is_exact: files.every((file) => file.is_exact),
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      from: found.request.from,
      to: found.request.to,
      files,
      warnings: [...found.warnings],
    };
    return reply.send(answer);
  });
}

const query = listQuery({ ...jobPage, status: statusParameter('Only exports in this state.') });

const listExportsSchema = {
  operationId: 'listExports',
  summary: 'List exports',
  description:
    'The exports of the environment, newest first. The body is a bare array: the next page is in `Link`. Other parameters are refused.',
  tags: ['exports'],
  querystring: query,
  response: {
    200: {
      description: 'A page of exports.',
      headers: named('X-Total-Count', 'Link'),
      content: { 'application/json': { schema: Type.Array(exportItem.ref) } },
    },
    ...refusals('invalid_field', 'invalid_cursor'),
  },
} satisfies FastifySchema;

/** Newest first; a bare array, its continuation in the headers. */
export function listExportsRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'export', answerBytes: MAX_PAGE_BYTES },
    schema: listExportsSchema,
  } as const;
  app.get<{ Querystring: Static<typeof query> }>(
    '/api/v1/analytics/exports/jobs',
    options,
    async (request, reply) => {
      const { limit = DEFAULT_PAGE_SIZE, cursor = '', status } = request.query;
      const environment = callerEnvironment(request);
      const filter = { statuses: readSeveral(status) };
      const after = readJobCursor(cursor);
      const page = await pageExports(system.reader.db, environment.environmentId, filter, { limit, after });
      const base = baseUrl(request, system.config.publicUrl);
      reply.header('x-total-count', String(page.total));
      if (page.next !== null) reply.header('link', nextLink(request, base, writeJobCursor(page.next)));
      return reply.send(page.exports.map((each): ExportItem => renderExportItem(each, environment, base)));
    },
  );
}

type ExportJob = Static<typeof exportJob.schema>;

const showExportSchema = {
  operationId: 'showExport',
  summary: 'Show an export',
  description: 'How far it is and, once it is completed, links to its files: new ones at every request.',
  tags: ['exports'],
  params: jobParameters,
  response: {
    200: { description: 'The export.', content: { 'application/json': { schema: exportJob.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

/** Its answer opens the data, so it wants the scope that exports want. */
export function showExport(app: FastifyInstance, system: System): void {
  const { config } = system;
  const options = { config: { scope: 'export' }, schema: showExportSchema } as const;
  app.get('/api/v1/analytics/exports/jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = callerEnvironment(request);
    const found = await requireExport(system.reader, environment.environmentId, jobId);
    const base = baseUrl(request, config.publicUrl);
    const expireAt = linksExpireAt(system.files, config.linkTtlHours);
    const { apiKey } = config;
    const links = await fileLinks({ ...system, apiKey }, found, base, expireAt, callerKeyId(request));
    return reply.send(renderExport(found, environment, links, base) satisfies ExportJob);
  });
}

const cancelExportSchema = {
  operationId: 'cancelExport',
  summary: 'Cancel an export',
  description: 'Stops an export that has not ended. What it has written is removed.',
  tags: ['exports'],
  params: jobParameters,
  headers: Type.Object(actionHeaders),
  response: {
    202: { description: 'It is cancelled.', content: { 'application/json': { schema: exportItem.ref } } },
    ...jobRefusals('job_not_cancellable', 'idempotency_conflict'),
  },
} satisfies FastifySchema;

export function cancelExportRoute(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'export' }, schema: cancelExportSchema } as const;
  app.post('/api/v1/analytics/exports/jobs/:job_id/cancel', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = callerEnvironment(request);
    const idempotencyKey = idempotencyKeyOf(request);
    await cancelExport(system, environment.environmentId, jobId, idempotencyKey);
    const found = await requireExport(system, environment.environmentId, jobId);
    return reply
      .code(202)
      .send(
        renderExportItem(found, environment, baseUrl(request, system.config.publicUrl)) satisfies ExportItem,
      );
  });
}
