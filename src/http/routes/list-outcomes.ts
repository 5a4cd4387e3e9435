import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import { exportOutcomes, listOutcomes, requireDeletion } from '../../deletion/inspect-deletions.ts';
import { baseUrl } from '../base-url.ts';
import { readRowCursor, writeRowCursor } from '../cursor.ts';
import { nextLink } from '../next-link.ts';
import { environmentId } from '../plugins/auth.ts';
import { renderOutcome } from '../render-deletion.ts';
import { readJobId } from '../schemas/job-id.ts';
import { listOutcomesSchema } from '../schemas/list-outcomes-schema.ts';
import { PageQuery } from '../schemas/page-query.ts';
import { rejectsType } from '../schemas/rejects-type.ts';

/** A page as JSON, or all of them as a file, by what the caller accepts. */
export function listOutcomesOfJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: listOutcomesSchema } as const;
  app.get('/v1/background_jobs/:job_id/outcomes', options, async (request, reply) => {
    const jobId = readJobId(request);
    const type = rejectsType(request.headers.accept);
    reply.header('vary', 'accept');
    if (type === 'application/json') return sendPage(system, request, reply, jobId);
    return sendFile(system, request, reply, jobId, type === 'text/csv' ? 'csv' : 'ndjson');
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
  const after = query.read('cursor', 0, readPosition);
  query.check();
  const page = await listOutcomes(system, environmentId(request), jobId, { limit, after });
  const next = page.next === null ? null : writeRowCursor(page.next);
  if (next !== null) {
    reply.header('link', nextLink(request, baseUrl(request, system.config.publicUrl), next));
  }
  return reply.send({
    data: page.outcomes.map(renderOutcome),
    metadata: { cursor: { after: next, before: null }, limit, total_count: page.total },
  });
}

/** Positions are numbers of 32 bits; beyond the last there is nothing. */
function readPosition(cursor: string): number {
  return Math.min(readRowCursor(cursor), 2 ** 31 - 1);
}

async function sendFile(
  system: System,
  request: FastifyRequest,
  reply: FastifyReply,
  jobId: string,
  format: 'csv' | 'ndjson',
): Promise<FastifyReply> {
  const environment = environmentId(request);
  const { jobId: known } = await requireDeletion(system, environment, jobId);
  reply
    .header('content-type', format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
    .header('content-disposition', `attachment; filename="${known}-outcomes.${format}"`);
  if (request.method === 'HEAD') return reply.send('');
  return reply.send(Readable.from(exportOutcomes(system, environment, jobId, format), { objectMode: false }));
}
