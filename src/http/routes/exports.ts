import { Type } from 'typebox';
import { createdExport, exportItem, exportJob, exportPreview } from '../../api/export.ts';
import { render } from '../../api/render.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import { DEFAULT_PAGE_SIZE, PREVIEWED_ROWS } from '../../domain/limits.ts';
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
import { cancelExport } from '../../export/run-export.ts';
import { pageExports } from '../../postgres/stores/exports.ts';
import { jobPage, linkNext, pageBytes, readJobCursor, writeJobCursor } from '../page.ts';
import { jobParameters, readSeveral, statusParameter } from '../parameters.ts';
import { callerEnvironment, callerKeyId, callerOrigin } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { listQuery } from '../plugins/validation.ts';
import { actionHeaders, bodyHeaders, idempotencyKeyOf, readIdempotency } from '../request-headers.ts';
import { type Route, route } from '../route.ts';

const path = '/api/v1/analytics/exports';

const requestRefusals = ['invalid_date', 'invalid_range', 'unknown_segment', 'unknown_event_type'] as const;

const create = route({
  at: `POST ${path}`,
  operationId: 'createExport',
  summary: 'Create an export',
  description:
    'Writes users, companies and events, as they are at one moment, to files that can be downloaded. Every field is optional, and so is the body. Unknown fields are ignored and named in `warnings`.',
  access: 'export',
  bodyKind: 'json',
  headers: bodyHeaders,
  content: {
    'application/json': withExamples(exportRequest, {
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
    const idempotency = readIdempotency(request, body);
    await requireQueueRoom(system.db, environment, idempotency?.key ?? null, system.config.maxQueuedJobs);
    const jobId = await requestExport(system, environment, readJsonObject(body), idempotency, {
      requestId: request.id,
      origin: callerOrigin(request),
    });
    const found = await requireExport(system, environment, jobId);
    return renderCreated(found, callerEnvironment(request), base());
  },
});

const preview = route({
  at: `POST ${path}/preview`,
  operationId: 'previewExport',
  summary: 'Preview an export',
  description: `Takes the body of an export and starts none. Returns the number of rows, an estimate of the file sizes, and the first ${PREVIEWED_ROWS} rows of each file, all of one moment. Returns 503 if that takes more than some seconds; the export itself has no such limit.`,
  access: 'export',
  config: pageBytes,
  bodyKind: 'json',
  content: {
    'application/json': withExamples(exportRequest, {
      users: { summary: 'All users as CSV', value: { event_type: ['users'], format: 'csv' } },
    }),
  },
  answer: { description: 'The preview.', schema: exportPreview.ref },
  refuses: requestRefusals,
  handle: async ({ system, request, environment }) => {
    const body = readJsonObject(bodyBytes(request));
    const { files, request: asked, warnings } = await previewExport(system, environment, body);
    return {
      rows: files.reduce((sum, file) => sum + file.rows, 0),
      is_exact: files.every((file) => file.isExact),
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
      from: asked.from,
      to: asked.to,
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
    'Lists the exports of the environment, newest first. The body is a bare array; the next page is in `Link`. Unknown parameters are refused.',
  access: 'export',
  config: pageBytes,
  query: listQuery({ ...jobPage, status: statusParameter('Only return exports in this state.') }),
  answer: {
    description: 'A page of exports.',
    headers: ['X-Total-Count', 'Link'],
    schema: Type.Array(exportItem.ref),
  },
  handle: async (call) => {
    const { reader } = call.system;
    const { limit = DEFAULT_PAGE_SIZE, cursor = '', status } = call.query;
    const filter = { statuses: readSeveral(status) };
    const after = readJobCursor(cursor);
    const page = await pageExports(reader.db, call.environment, filter, { limit, after });
    call.reply.header('x-total-count', String(page.total));
    linkNext(call, page.next === null ? null : writeJobCursor(page.next));
    const [environment, base] = [callerEnvironment(call.request), call.base()];
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
    const { linkTtlHours, apiKey } = system.config;
    const found = await requireExport(system.reader, environment, params.job_id);
    const expireAt = linksExpireAt(system.files, linkTtlHours);
    const links = await fileLinks({ ...system, apiKey }, found, base(), expireAt, callerKeyId(request));
    return renderExport(found, callerEnvironment(request), links, base());
  },
});

const cancel = route({
  at: `POST ${path}/jobs/:job_id/cancel`,
  operationId: 'cancelExport',
  summary: 'Cancel an export',
  description: 'Stops an export that has not ended, and removes what it has written.',
  access: 'export',
  params: jobParameters,
  headers: actionHeaders,
  answer: { status: 202, description: 'The export is cancelled.', schema: exportItem.ref },
  refuses: ['job_not_cancellable'],
  handle: async ({ system, request, params, environment, base }) => {
    const jobId = params.job_id;
    await cancelExport(system, environment, jobId, idempotencyKeyOf(request));
    const found = await requireExport(system, environment, jobId);
    return renderExportItem(found, callerEnvironment(request), base());
  },
});

export const exportRoutes: readonly Route[] = [create, preview, list, show, cancel];
