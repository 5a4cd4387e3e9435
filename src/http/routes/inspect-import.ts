import type { FastifyInstance, FastifySchema } from 'fastify';
import type { Static } from 'typebox';
import { inspection } from '../../api/inspection.ts';
import type { System } from '../../context.ts';
import { errorCodes, InputError } from '../../domain/errors.ts';
import type { Mapped } from '../../domain/saved-mapping.ts';
import { convertingStore } from '../../load/accept-load.ts';
import { inspectFile } from '../../load/inspect/inspect-file.ts';
import { type renderFound, renderOffer, renderUnreadable } from '../../load/inspect/render-inspection.ts';
import { lookIn, type RenderedInspection } from '../../load/sandbox-tasks.ts';
import { findOffered, inspectAndOffer, type OfferedInspection } from '../../load/saved-mappings.ts';
import { hintsOf, openUpload, type WholeUpload } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import { refusals } from '../schemas/answers.ts';
import type { UploadOptions } from '../upload/options.ts';
import { keepFile } from '../upload/receive-upload.ts';
import { keptLimits } from '../upload/upload.ts';
import { importBody, importHeaders, importKind, importParameters } from './create-import.ts';

type Inspected = Static<typeof inspection.schema>;

const inspectImportSchema = {
  operationId: 'inspectImport',
  summary: 'Inspect a file before it is loaded',
  description: `Keeps the file for a day, looks at its beginning with the code that loads files, and loads nothing. Takes what \`POST /v1/imports\` takes; that one loads the file by its \`upload_id\`, with other options if need be.`,
  tags: ['loads'],
  headers: importHeaders,
  querystring: importParameters,
  body: importBody,
  response: {
    200: {
      description: 'What the file holds. The file is kept.',
      content: { 'application/json': { schema: inspection.ref } },
    },
    ...refusals(
      'invalid_field',
      'missing_field',
      'empty_file',
      'not_found',
      'upload_too_slow',
      'upload_incomplete',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** What a file holds, and what would become of it. */
export function inspectImport(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: inspectImportSchema } as const;
  app.post('/v1/imports/inspect', options, async (request, reply) => {
    const { kept, options: given } = await keepFile(system, request, importKind);
    const found = await inspect(system, environmentId(request), kept, given);
    const { uploadId, filename, fileSize, sha256, expiresAt } = kept;
    const about = {
      upload_id: uploadId,
      expires_at: expiresAt.toISOString(),
      filename,
      file_size: fileSize,
      sha256,
    };
    if (found instanceof InputError) {
      return reply.send({ ...about, ...renderUnreadable(found, given.mapping) } satisfies Inspected);
    }
    const rest = { ...about, ...renderOffer(found) } satisfies Omit<Inspected, Written>;
    const json = [Buffer.from(`${JSON.stringify(rest).slice(0, -1)},`), found.found.json.subarray(1)];
    return reply.type('application/json; charset=utf-8').send(Buffer.concat(json));
  });
}

/** The members of the answer that are written where the file is read. */
type Written = keyof ReturnType<typeof renderFound>;

async function inspect(
  system: System,
  environment: number,
  kept: WholeUpload,
  { load, format, filename, mapping }: UploadOptions,
): Promise<OfferedInspection<RenderedInspection> | InputError> {
  const said = { ...hintsOf(kept), ...(filename !== undefined && { filename }) };
  const limits = keptLimits(system, kept);
  const look = async ({ source, map, format, ...asked }: typeof load & Mapped, mapSays: string) => {
    const bytes = openUpload(system.files, kept);
    try {
      const { chunkBytes } = system.config;
      const hints = { ...said, format: format ?? undefined, source, map, chunkBytes };
      const { signal } = new AbortController();
      const options = { ...asked, map, mapSays };
      const store = convertingStore(system, environment);
      const lookAt = lookIn(system.sandboxes, environment);
      return await inspectFile(store, bytes, hints, options, limits, signal, lookAt);
    } finally {
      bytes.destroy();
    }
  };
  const find = (names: readonly string[]) => findOffered(system.db, environment, names);
  try {
    const asked = { ...load, format: format ?? null };
    return await inspectAndOffer(look, asked, mapping, find);
  } catch (error) {
    // It is kept all the same: other options may read it. Unless it was removed meanwhile.
    if (error instanceof InputError && error.status !== errorCodes.not_found) return error;
    throw error;
  }
}
