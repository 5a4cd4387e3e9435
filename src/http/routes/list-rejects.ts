import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { exportRejects, listRejects, type RejectsFormat } from '../../load/inspect-rejects.ts';
import { baseUrl } from '../base-url.ts';
import { readRowCursor, writeRowCursor } from '../cursor.ts';
import { nextLink } from '../next-link.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderReject } from '../render-reject.ts';
import { readJobId } from '../schemas/job-id.ts';
import { listRejectsSchema } from '../schemas/list-rejects-schema.ts';
import { PageQuery } from '../schemas/page-query.ts';
import { type RejectsType, rejectsType } from '../schemas/rejects-type.ts';

/** A page as JSON, or all of them as a file to mend and send again, by what the caller accepts. */
export function listRejectsOfJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: listRejectsSchema } as const;
  app.get('/v1/background_jobs/:job_id/rejects', options, async (request, reply) => {
    const jobId = readJobId(request);
    const type = rejectsType(request.headers.accept);
    reply.header('vary', 'accept');
    return type === 'application/json'
      ? sendPage(system, request, reply, jobId)
      : sendFile(system, request, reply, jobId, type);
  });
}

async function sendPage(
  system: System,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
): Promise<FastifyReply> {
  const query = new PageQuery(request.query);
  const limit = query.limit();
  const after = query.read('cursor', 0, readRowCursor);
  query.check();
  const page = await listRejects(system, environmentId(request), jobId, { limit, after });
  const next = page.next === null ? null : writeRowCursor(page.next);
  if (next !== null) {
    reply.header('link', nextLink(request, baseUrl(request, system.config.publicUrl), next));
  }
  return reply.send({
    data: page.rejects.map(renderReject),
    metadata: { cursor: { after: next, before: null }, limit, total_count: page.total },
  });
}

const files: Readonly<Record<Exclude<RejectsType, 'application/json'>, RejectsFormat>> = {
  'text/csv': 'csv',
  'application/x-ndjson': 'ndjson',
};

async function sendFile(
  system: System,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  type: keyof typeof files,
): Promise<FastifyReply> {
  const format = files[type];
  const environment = environmentId(request);
  const { jobId: known } = await requireLoad(system, environment, jobId);
  reply
    .header('content-type', type === 'text/csv' ? 'text/csv; charset=utf-8' : type)
    .header('content-disposition', `attachment; filename="${known}-rejects.${format}"`);
  if (request.method === 'HEAD') return reply.send('');
  return reply.send(Readable.from(exportRejects(system, environment, jobId, format), { objectMode: false }));
}
