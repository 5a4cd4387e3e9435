import type { FastifyInstance, FastifySchema } from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { System } from '../../context.ts';
import { errorAnswers, named } from '../schemas/answers.ts';

const part = (description: string) => Type.Enum(['ok', 'away'], { type: 'string', description });

const parts = Type.Object(
  {
    database: part('PostgreSQL.'),
    queue: part('What wakes workers.'),
    storage: part('Where files are kept.'),
  },
  { additionalProperties: false, description: 'What the service stands on.' },
);

const showReadinessSchema = {
  operationId: 'showReadiness',
  summary: 'Can the service be used?',
  description:
    'Looks at everything the service stands on, and answers within two seconds even if some of it hangs. With the queue alone away it is `degraded`: uploads are accepted, and loaded when the queue is back. Wants no key.',
  tags: ['operations'],
  response: {
    200: {
      description: 'It can.',
      content: { 'application/json': { schema: report('ready', 'degraded') } },
    },
    ...errorAnswers('internal_error'),
    503: {
      description: 'Database or storage are away, or the service is about to stop.',
      headers: named('Retry-After'),
      content: { 'application/json': { schema: report('not_ready') } },
    },
  },
} satisfies FastifySchema;

function report(...statuses: readonly string[]): TSchema {
  const status = Type.Enum([...statuses], { type: 'string', description: 'The sum of it.' });
  return Type.Object({ status, parts }, { additionalProperties: false });
}

const retryAfterSeconds = '5';

/** Whether to send requests here. Says what is away and not why: that is in the log. */
export function showReadiness(app: FastifyInstance, { health }: System, state: { closing: boolean }): void {
  app.addHook('preClose', async () => {
    state.closing = true;
  });
  const options = { config: { alwaysServed: true }, schema: showReadinessSchema } as const;
  app.get('/health/ready', options, async (_request, reply) => {
    const { status: found, parts } = await health.check();
    const status = state.closing ? 'not_ready' : found;
    reply.header('cache-control', 'no-store');
    if (status === 'not_ready') reply.code(503).header('retry-after', retryAfterSeconds);
    return reply.send({ status, parts });
  });
}
