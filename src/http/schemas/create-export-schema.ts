import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { createdExport } from './created-export.ts';
import { refusals } from './error-answers.ts';
import { exportRequest } from './export-request.ts';
import { bodyHeaders } from './request-headers.ts';
import { withExamples } from './with-examples.ts';

export const createExportSchema = {
  operationId: 'createExport',
  summary: 'Start an export',
  description:
    'Writes users, companies and events, as they are at one moment, into files to download. Every field is optional, and so is the body.',
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
