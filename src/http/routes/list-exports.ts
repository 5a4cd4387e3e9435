import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { exportItem } from '../../api/export.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { renderExportItem } from '../../export/inspect-exports.ts';
import { pageExports } from '../../postgres/stores/read-exports.ts';
import { baseUrl, jobPage, nextLink, readJobCursor, writeJobCursor } from '../page.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { named, readSeveral, refusals } from '../schemas/answers.ts';
import { type ExportItem, statusParameter } from '../schemas/job-record.ts';

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
