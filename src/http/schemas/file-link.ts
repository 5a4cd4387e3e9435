import type { FastifyRequest } from 'fastify';
import { type LinkRequest, noSuchFile } from '../../export/linked-file.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const keyForm = /^\w{1,64}$/;
const expiry = /^[1-9]\d{0,11}$/;

/** What a link to a file says. Written in any other way than we do, it is not ours. @throws InputError `not_found`. */
export function readLink(request: FastifyRequest): LinkRequest {
  const { job_id: jobId = '', filename = '' } = request.params as { job_id?: string; filename?: string };
  const { expires, key: keyId = null, signature } = request.query as Record<string, unknown>;
  if (!uuid.test(jobId) || typeof expires !== 'string' || !expiry.test(expires)) throw noSuchFile();
  // Postgres would refuse to look for it.
  if (filename.includes('\0') || typeof signature !== 'string') throw noSuchFile();
  if (keyId !== null && (typeof keyId !== 'string' || !keyForm.test(keyId))) throw noSuchFile();
  return { jobId, filename, expires, keyId, signature };
}
