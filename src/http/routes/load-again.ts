import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { keepFileOfLoad } from '../../load/load-again.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, jobRefusals } from '../schemas/answers.ts';
import { exampleJobId, jobIdOf, jobParameters } from '../schemas/job-record.ts';
import { exampleUpload, renderUpload, uploadFields } from '../schemas/upload-record.ts';

export const uploadOfLoad = component(
  'UploadOfLoad',
  Type.Object(
    {
      ...uploadFields,
      options: Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'The options with which `POST /v1/imports` reads the file as the job did: it is kept unpacked and in UTF-8, tables as CSV and all else as NDJSON.',
          examples: [
            { entity: 'users', map: { 'Customer No': 'user_id' }, format: 'csv', encoding: 'utf-8' },
          ],
        },
      ),
    },
    {
      additionalProperties: false,
      description: 'The file of a load, as an upload.',
      examples: [
        {
          ...exampleUpload,
          content_type: null,
          received_bytes: 1048576,
          sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
          file_of: exampleJobId,
          options: {
            entity: 'users',
            map: { 'Customer No': 'user_id' },
            format: 'csv',
            encoding: 'utf-8',
          },
        },
      ],
    },
  ),
);
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
