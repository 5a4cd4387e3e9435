import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { MAX_PAGE_BYTES, MEASURED_ROWS, PREVIEWED_ROWS } from '../../domain/limits.ts';
import { previewExport } from '../../export/preview-export.ts';
import { exportRequest } from '../../export/read-request.ts';
import { environmentId } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { component, orNull, refusals, withExamples } from '../schemas/answers.ts';
import { warnings } from '../schemas/job-record.ts';

const closed = { additionalProperties: false };
const rows = Type.Integer({ minimum: 0, description: 'Rows, as of this moment.' });
const isExact = Type.Boolean({
  description:
    'They were counted. False: counting takes too long and they are estimated, or some of them are in archives.',
});
const bytes = Type.Integer({
  minimum: 0,
  description: `As the files will be stored; an estimate from the first ${MEASURED_ROWS} rows.`,
});

const previewedFile = Type.Object(
  {
    dataset: Type.Enum(['users', 'companies', 'events', 'stream'], {
      type: 'string',
      description: 'What the rows are.',
    }),
    rows,
    is_exact: isExact,
    bytes,
    header: orNull(
      Type.String({ description: 'Of CSV: the line that names the columns; else null.', examples: [null] }),
    ),
    first_rows: Type.Array(Type.String(), {
      maxItems: PREVIEWED_ROWS,
      description:
        'As they will stand in the file; of Parquet and Avro as NDJSON. Long ones are cut, with an ellipsis. Of events those that are not in archives.',
    }),
  },
  closed,
);

export const exportPreview = component(
  'ExportPreview',
  Type.Object(
    {
      rows,
      is_exact: isExact,
      bytes,
      from: orNull(
        Type.String({
          format: 'date-time',
          description: 'Where the range begins, included; null: the beginning.',
          examples: ['2026-11-16T00:00:00.000000Z'],
        }),
      ),
      to: Type.String({ format: 'date-time', description: 'Where the range ends, excluded.' }),
      files: Type.Array(previewedFile, { description: 'One for each kind of rows.' }),
      warnings,
    },
    {
      ...closed,
      description: 'What an export would hold.',
      examples: [
        {
          rows: 2,
          is_exact: true,
          bytes: 312,
          from: '2026-11-16T00:00:00.000000Z',
          to: '2026-11-23T00:00:00.000000Z',
          files: [
            {
              dataset: 'users',
              rows: 2,
              is_exact: true,
              bytes: 312,
              header: 'user_id,company_id,plan,first_seen_at,last_seen_at',
              first_rows: [
                'u1,acme,pro,2026-11-01T08:00:00.000000Z,2026-11-20T12:34:56.123456Z',
                'u2,,free,2026-11-02T09:00:00.000000Z,2026-11-20T12:34:56.123456Z',
              ],
            },
          ],
          warnings: [],
        },
      ],
    },
  ),
);

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
