import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { createdExport } from '../../api/export.ts';
import { withExamples } from '../../api/schema.ts';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { renderCreated, requireExport } from '../../export/inspect-exports.ts';
import { exportRequest } from '../../export/read-request.ts';
import { requestExport } from '../../export/request-export.ts';
import { baseUrl } from '../page.ts';
import { callerEnvironment, callerOrigin } from '../plugins/auth.ts';
import { bodyBytes, readJsonObject } from '../plugins/json-body.ts';
import { bodyHeaders, readIdempotency } from '../request-headers.ts';
import { refusals } from '../schemas/answers.ts';

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
