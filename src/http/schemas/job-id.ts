import type { FastifyRequest } from 'fastify';
import { inputError } from '../../domain/errors.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @throws InputError `not_found` for what cannot be a job id: there is no such job either. */
export function readJobId(request: FastifyRequest): string {
  const { job_id: jobId = '' } = request.params as { job_id?: string };
  if (uuid.test(jobId)) return jobId.toLowerCase();
  throw inputError('not_found', 'there is no such job', `job_id: ${jobId.slice(0, 100)}`);
}
