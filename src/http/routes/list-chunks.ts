import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { chunkPage, type loadChunk } from '../../api/load.ts';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { renderLiveChunk } from '../../live/views.ts';
import { readChunks } from '../../postgres/stores/background-jobs.ts';
import { rowQuery } from '../job-rows.ts';
import { readRowCursor, sendEnvelope, writeRowCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals, named } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

const listChunksSchema = {
  operationId: 'listChunks',
  summary: 'List the chunks of a load',
  description: 'In the order of the file: who does each, who did it, and how long that took.',
  tags: ['jobs'],
  params: jobParameters,
  querystring: rowQuery,
  response: {
    200: {
      description: 'A page of chunks.',
      headers: named('Link'),
      content: { 'application/json': { schema: chunkPage.ref } },
    },
    ...jobRefusals('invalid_cursor'),
  },
} satisfies FastifySchema;

interface ChunksRequest {
  Params: Static<typeof jobParameters>;
  Querystring: Static<typeof rowQuery>;
}

export function listChunksRoute(app: FastifyInstance, system: System): void {
  const options = {
    config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
    schema: listChunksSchema,
  } as const;
  app.get<ChunksRequest>('/v1/background_jobs/:job_id/chunks', options, async (request, reply) => {
    const { limit = DEFAULT_PAGE_SIZE, cursor = '' } = request.query;
    const after = Math.min(readRowCursor(cursor) ?? 0, lastChunk);
    const page = await readChunks(system.reader.db, environmentId(request), jobIdOf(request), {
      limit,
      after,
    });
    const items = page.chunks.map((chunk): Static<typeof loadChunk.schema> => renderLiveChunk(chunk));
    return sendEnvelope(request, reply, system.config.publicUrl, {
      items: items.map((item) => JSON.stringify(item)),
      next: page.more ? writeRowCursor(after + items.length) : null,
      limit,
      more: { total_count: page.total },
    });
  });
}

/** There can be none beyond it. */
const lastChunk = 2 ** 31 - 1;
