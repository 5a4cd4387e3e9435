import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { createTokenCheck } from '../../access/admin-login.ts';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { errorAnswers, responseName } from '../schemas/answers.ts';

const sample = '# HELP sluice_up Whether the process answers.\n# TYPE sluice_up gauge\nsluice_up 1\n';

const page = withExamples(Type.String({ description: 'One figure a line.' }), {
  figures: { summary: 'One figure', value: sample },
});

const showMetricsSchema: FastifySchema = {
  operationId: 'showMetrics',
  summary: 'Show the figures of the service',
  description:
    "For Prometheus, in its text format. Holds no tenant's data. Where METRICS_TOKEN is set: `Authorization: Bearer <METRICS_TOKEN>`.",
  tags: ['operations'],
  security: [{}, { metricsToken: [] }],
  response: {
    200: { description: 'The figures.', content: { 'text/plain': page } },
    ...errorAnswers('internal_error'),
    // The scheme that is expected here is another than everywhere else.
    401: { ...errorAnswers('invalid_api_key')[401], headers: {}, [responseName]: undefined },
  },
};

/** For Prometheus. Open, unless METRICS_TOKEN is set: the figures show nothing of any tenant. */
export function showMetrics(app: FastifyInstance, { metrics, config }: System): void {
  const mayRead = createTokenCheck(config.metricsToken);
  const options = { config: { alwaysServed: true }, schema: showMetricsSchema } as const;
  app.get('/metrics', options, async (request, reply) => {
    if (!mayRead(request.headers.authorization)) {
      reply.header('www-authenticate', 'Bearer');
      const details = 'the header Authorization: Bearer <METRICS_TOKEN>';
      throw inputError('invalid_api_key', 'Unauthorized - Invalid token', details);
    }
    const { contentType, text } = await metrics.render();
    return reply.type(contentType).send(text);
  });
}
