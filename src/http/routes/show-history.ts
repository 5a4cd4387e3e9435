import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { jobHistory } from '../../api/job.ts';
import type { System } from '../../context.ts';
import { readJobHistory } from '../../postgres/stores/background-jobs.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

const showHistorySchema = {
  operationId: 'showJobHistory',
  summary: 'Show what came before a background job',
  description:
    'Who or what started it, by which request and with which parameters; and when it reached each phase.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: { description: 'The history.', content: { 'application/json': { schema: jobHistory.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showHistory(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showHistorySchema } as const;
  app.get('/v1/background_jobs/:job_id/history', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const { requestId, origin, parameters, isCut, phases } = await readJobHistory(
      system.reader.db,
      environmentId(request),
      jobId,
    );
    const answer: Static<typeof jobHistory.schema> = {
      job_id: jobId,
      request_id: requestId,
      origin,
      parameters,
      parameters_cut: isCut,
      phases: phases.map(({ phase, at }) => ({ phase, at: at.toISOString() })),
    };
    return reply.send(answer);
  });
}
