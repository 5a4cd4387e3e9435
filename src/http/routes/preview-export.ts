import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { exportPreview } from '../../api/export.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES, PREVIEWED_ROWS } from '../../domain/limits.ts';
import { previewExport } from '../../export/preview-export.ts';
import { exportRequest } from '../../export/read-request.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { refusals } from '../schemas/answers.ts';

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
