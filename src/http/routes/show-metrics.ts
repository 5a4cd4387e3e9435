import type { FastifyInstance } from 'fastify';
import { createTokenCheck } from '../../access/admin-login.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { showMetricsSchema } from '../schemas/show-metrics-schema.ts';

/** For Prometheus. Open, unless METRICS_TOKEN is set: the figures tell nothing of any tenant. */
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
