import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { errorAnswers } from './error-answers.ts';

export const showMetricsSchema: FastifySchema = {
  operationId: 'showMetrics',
  summary: 'Show the figures of the service',
  description:
    "For Prometheus, in its text format. Holds no tenant's data. Where METRICS_TOKEN is set: `Authorization: Bearer <METRICS_TOKEN>`.",
  tags: ['operations'],
  security: [{}, { metricsToken: [] }],
  response: {
    200: { description: 'The figures.', content: { 'text/plain': { schema: Type.String() } } },
    ...errorAnswers('internal_error'),
    // The scheme that is expected here is another than everywhere else.
    401: { ...errorAnswers('invalid_api_key')[401], headers: {} },
  },
};
