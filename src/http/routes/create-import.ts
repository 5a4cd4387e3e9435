import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { renderLoad } from '../../load/render-load.ts';
import { baseUrl } from '../base-url.ts';
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
    const job = renderLoad(load, baseUrl(request, system.config.publicUrl));
    // The interface shows these two numbers as strings here, and here alone.
    return reply.send({ ...job, file_size: String(job.file_size), total_rows: String(job.total_rows) });
  });
}
