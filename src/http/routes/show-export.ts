import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { fileLinks, linksExpireAt } from '../../export/file-links.ts';
import { renderExport, requireExport } from '../../export/inspect-exports.ts';
import { baseUrl } from '../page.ts';
import { callerEnvironment, callerKeyId } from '../plugins/auth.ts';
import { component, jobRefusals, orNull } from '../schemas/answers.ts';
import {
  exampleJobId,
  exampleUrl,
  exportFields,
  failure,
  jobIdOf,
  jobParameters,
  warnings,
} from '../schemas/job-record.ts';

function linkFields(filename: string) {
  return {
    filename: Type.String({ description: 'The name to keep it under.', examples: [filename] }),
    url: Type.String({
      format: 'uri',
      description: 'Whoever has it may read the file, without a key, until it expires.',
      examples: [`${exampleUrl}/files/${exampleJobId}/${filename}?expires=1795000000&signature=6yCkQ0Xb`],
    }),
    bytes: Type.Integer({ minimum: 0, description: 'Bytes as they are downloaded.', examples: [84213] }),
    sha256: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the file as it is downloaded.',
      examples: ['3b'.repeat(32)],
    }),
  };
}

const presignedUrl = Type.Object(
  {
    ...linkFields('users.ndjson.gz'),
    rows: Type.Integer({ minimum: 0, description: 'Rows in it.', examples: [1200] }),
  },
  { additionalProperties: false },
);

const manifestLink = Type.Object(linkFields('manifest.json'), {
  additionalProperties: false,
  description: 'What says of every file its rows, bytes and SHA-256; null as long as there are no files.',
});

export const exportJob = component(
  'ExportJob',
  Type.Object(
    {
      ...exportFields,
      snapshot_time: orNull(
        Type.String({
          format: 'date-time',
          description: 'All files show the data as it was then.',
          examples: ['2026-11-20T11:58:59.601Z'],
        }),
      ),
      presigned_urls: Type.Array(presignedUrl, {
        description:
          'The files of data, once it is completed and while they are kept; new links at every request.',
      }),
      manifest: orNull(manifestLink),
      files_expired: Type.Boolean({ description: 'The files are no longer kept.' }),
      warnings,
      failure: orNull(failure),
    },
    { additionalProperties: false, description: 'An export.' },
  ),
);
type ExportJob = Static<typeof exportJob.schema>;

const showExportSchema = {
  operationId: 'showExport',
  summary: 'Show an export',
  description: 'How far it is and, once it is completed, links to its files: new ones at every request.',
  tags: ['exports'],
  params: jobParameters,
  response: {
    200: { description: 'The export.', content: { 'application/json': { schema: exportJob.ref } } },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

/** Its answer opens the data, so it wants the scope that exports want. */
export function showExport(app: FastifyInstance, system: System): void {
  const { config } = system;
  const options = { config: { scope: 'export' }, schema: showExportSchema } as const;
  app.get('/api/v1/analytics/exports/jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = callerEnvironment(request);
    const found = await requireExport(system.reader, environment.environmentId, jobId);
    const base = baseUrl(request, config.publicUrl);
    const expireAt = linksExpireAt(system.files, config.linkTtlHours);
    const { apiKey } = config;
    const links = await fileLinks({ ...system, apiKey }, found, base, expireAt, callerKeyId(request));
    return reply.send(renderExport(found, environment, links, base) satisfies ExportJob);
  });
}
