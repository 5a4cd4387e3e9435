import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import { renderImport } from '../render-job.ts';
import { createImportSchema } from '../schemas/create-import-schema.ts';
import { importMediaTypes } from '../schemas/import-media-types.ts';
import { receiveUpload } from '../upload/receive-upload.ts';
import type { UploadKind } from '../upload/upload.ts';

const kind: UploadKind = {
  entity: null,
  mediaTypes: Object.values(importMediaTypes).flat(),
  defaultFilename: 'upload',
};

/** A file of users or companies, in a form or as the body itself. */
export function createImport(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: createImportSchema } as const;
  app.post('/v1/imports', options, async (request, reply) => {
    const load = await receiveUpload(system, request, 'import', kind);
    return reply.code(200).send(renderImport(load, baseUrl(request, system.config.publicUrl)));
  });
}
