import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { deletionJobDetail } from '../../api/deletion.ts';
import { exportJobDetail } from '../../api/export.ts';
import { jobDetail } from '../../api/load.ts';
import { renderJobDetail, requireJob } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

type JobDetail = Static<typeof jobDetail.schema>;

type ExportJobDetail = Static<typeof exportJobDetail.schema>;

type DeletionJobDetail = Static<typeof deletionJobDetail.schema>;

const showJobSchema = {
  operationId: 'showJob',
  summary: 'Show a background job',
  description: 'The job with its progress, its counts and, if it failed, why.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: {
      description: 'The job.',
      content: {
        'application/json': {
          schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
        },
      },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showJobSchema } as const;
  app.get('/v1/background_jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const job = await requireJob(system.reader, environment, jobId);
    const base = baseUrl(request, system.config.publicUrl);
    const detail: JobDetail | ExportJobDetail | DeletionJobDetail = await renderJobDetail(
      system.reader,
      environment,
      job,
      base,
    );
    return reply.send(detail);
  });
}
