import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { originKinds } from '../../domain/origin.ts';
import { readJobHistory } from '../../postgres/stores/background-jobs.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, jobRefusals, orNull } from '../schemas/answers.ts';
import { jobFields, jobIdOf, jobParameters } from '../schemas/job-record.ts';

export const jobHistory = component(
  'JobHistory',
  Type.Object(
    {
      job_id: jobFields.job_id,
      request_id: orNull(
        Type.String({
          description: 'The `x-request-id` of the request that it came by; null if it came another way.',
          examples: ['7f9c1a52-0c4e-4c5e-9b0d-0d8f6f0f2a11'],
        }),
      ),
      origin: orNull(
        Type.Object(
          {
            kind: Type.Enum([...originKinds], { type: 'string', description: 'Who or what started it.' }),
            name: orNull(
              Type.String({
                description: 'Id of the key, name of the schedule, or place in the inbox.',
                examples: ['q8m2x0v7c1rt'],
              }),
            ),
          },
          { additionalProperties: false, description: 'Null: that is not known.' },
        ),
      ),
      parameters: Type.Object(
        {},
        {
          additionalProperties: true,
          description: 'What it was told to do. Of long lists the beginning is shown.',
          examples: [{ entity: 'users', map: { 'Customer No': 'user_id' }, dry_run: false }],
        },
      ),
      parameters_cut: Type.Boolean({
        description: 'There is more of the parameters than is shown.',
        examples: [false],
      }),
      phases: Type.Array(
        Type.Object(
          {
            phase: Type.String({
              description:
                '`accepted`, `started`, `planned` (its plan is complete), `applied` (its loading was requested), `resumed` (later work began: the loading of a plan, or a retry), `merged` (last chunk of a load is done), `repeats_resolved`, `snapshot` (exports only), `completed`, `failed`, `cancelled`.',
              examples: ['accepted'],
            }),
            at: Type.String({ format: 'date-time', description: 'When it was reached.' }),
          },
          { additionalProperties: false },
        ),
        { description: 'The phases that it has reached, oldest first.' },
      ),
    },
    { additionalProperties: false, description: 'What came before a job, and how it went.' },
  ),
);

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
