import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { renderLiveChunk } from '../../live/views.ts';
import { readChunks } from '../../postgres/stores/background-jobs.ts';
import { chunkStates } from '../../postgres/stores/live.ts';
import { rowQuery } from '../job-rows.ts';
import { envelope, readRowCursor, sendEnvelope, writeRowCursor } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, jobRefusals, named, orNull } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });
const time = (description: string, example: string) =>
  orNull(Type.String({ format: 'date-time', description, examples: [example] }));

export const loadChunk = component(
  'LoadChunk',
  Type.Object(
    {
      chunk: count('Its number in the file, from 0.'),
      state: Type.Enum([...chunkStates], {
        type: 'string',
        description: '`running`: a worker has it.',
        examples: ['done'],
      }),
      attempt: count('The number of the attempt that did it or does it; 0: none was begun.'),
      losses: count('Workers that vanished with it.'),
      worker: orNull(
        Type.String({
          description: 'Host and process id of the worker; null while it waits.',
          examples: ['loader-1 4711'],
        }),
      ),
      start_time: time('When that worker took it.', '2026-11-20T11:58:59.600Z'),
      end_time: time('When its rows were committed.', '2026-11-20T11:59:00.020Z'),
      ms: orNull(Type.Integer({ minimum: 0, description: 'Between the two.', examples: [420] })),
      rows: count('Records in it.'),
      bytes: count('Of the stored file.'),
      rejected: orNull(
        Type.Integer({ minimum: 0, description: 'Records of it that were refused; null until it is done.' }),
      ),
      last_error: orNull(
        Type.String({
          description: 'What its last try ran into; null where nothing is wrong.',
          examples: [null],
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'A part of a load: unit of work, of retries and of parallelism.',
    },
  ),
);

export const chunkPage = envelope('LoadChunkPage', loadChunk.ref, 'A page of chunks.', {
  total_count: Type.Integer({ minimum: 0, description: 'Chunks of the load, on all pages.' }),
});

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
