import type { FastifyInstance, FastifyRequest } from 'fastify';
import { requireJob } from '../../background-jobs/find-jobs.ts';
import type { System } from '../../context.ts';
import { inputError } from '../../domain/errors.ts';
import { cancelExport } from '../../export/cancel-export.ts';
import { cancelLoad } from '../../load/cancel-load.ts';
import { baseUrl } from '../base-url.ts';
import { environmentId, requireScope } from '../plugins/auth.ts';
import { renderExportRecord } from '../render-export.ts';
import { renderJob } from '../render-job.ts';
import { cancelJobSchema } from '../schemas/cancel-job-schema.ts';
import { readJobId } from '../schemas/job-id.ts';
import type { JobRecord } from '../schemas/job-record.ts';
import { readIdempotencyKey } from '../schemas/upload-headers.ts';

export function cancelJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: cancelJobSchema } as const;
  app.post('/v1/background_jobs/:job_id/cancel', options, async (request, reply) =>
    reply.code(202).send(await cancel(system, request)),
  );
}

async function cancel(system: System, request: FastifyRequest): Promise<JobRecord> {
  const jobId = readJobId(request);
  const environment = environmentId(request);
  const base = baseUrl(request, system.config.publicUrl);
  const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key']);
  const job = await requireJob(system, environment, jobId);
  // What it was made by this request; since a first such request a load may have been retried.
  if (job.kind === 'load') {
    const endedAt = await cancelLoad(system, environment, jobId, idempotencyKey);
    const after = await requireJob(system, environment, jobId);
    const load = after.kind === 'load' ? after.load : job.load;
    return renderJob({ ...load, status: 'cancelled', endedAt }, base);
  }
  if (job.kind === 'deletion') {
    throw inputError('job_not_cancellable', 'a deletion is not cancelled', `job_id: ${jobId}`);
  }
  requireScope(request, 'export');
  const endedAt = await cancelExport(system, environment, jobId, idempotencyKey);
  return renderExportRecord({ ...job.export, status: 'cancelled', endedAt }, base);
}
