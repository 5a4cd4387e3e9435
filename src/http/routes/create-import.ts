import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { baseUrl } from '../base-url.ts';
import { renderImport } from '../render-job.ts';
import { receiveUpload } from '../upload/receive-upload.ts';
import type { UploadKind } from '../upload/upload.ts';

const kind: UploadKind = {
  entity: null,
  mediaTypes: [
    'text/csv',
    'text/tab-separated-values',
    'application/x-ndjson',
    'application/ndjson',
    'application/jsonl',
    'application/x-jsonlines',
    'application/json',
    'application/gzip',
    'application/x-gzip',
    'application/octet-stream',
  ],
  defaultFilename: 'upload',
};

/** A file of users or companies, in a form or as the body itself. */
export function createImport(app: FastifyInstance, system: System): void {
  app.post('/v1/imports', { config: { scope: 'import' } }, async (request, reply) => {
    const load = await receiveUpload(system, request, reply, 'import', kind);
    return reply.code(200).send(renderImport(load, baseUrl(request, system.config.publicUrl)));
  });
}
