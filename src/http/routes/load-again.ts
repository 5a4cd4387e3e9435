import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { uploadOfLoad } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { keepFileOfLoad } from '../../load/load-again.ts';
import { environmentId } from '../plugins/auth.ts';
import { jobRefusals } from '../schemas/answers.ts';
import { jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { renderUpload } from '../schemas/upload-record.ts';

type UploadOfLoad = Static<typeof uploadOfLoad.schema>;

const loadAgainSchema = {
  operationId: 'loadAgain',
  summary: 'Take the file of a load again',
  description:
    'Makes an upload of the file that a load has stored, to be inspected and loaded with other options, such as another `map`. Nothing is sent or copied; the upload goes after a day, or with the stored file.',
  tags: ['loads'],
  params: jobParameters,
  response: {
    201: {
      description: 'The upload, and how the job read it.',
      content: { 'application/json': { schema: uploadOfLoad.ref } },
    },
    ...jobRefusals('job_expired', 'job_not_retryable'),
  },
} satisfies FastifySchema;

/** What a load has stored, to be loaded again in another way. */
export function loadAgain(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: loadAgainSchema } as const;
  app.post('/v1/background_jobs/:job_id/upload', options, async (request, reply) => {
    const { upload, options } = await keepFileOfLoad(system, environmentId(request), jobIdOf(request));
    return reply.code(201).send({ ...renderUpload(upload), options } satisfies UploadOfLoad);
  });
}
