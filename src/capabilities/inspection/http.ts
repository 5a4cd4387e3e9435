import { errorCodes, InputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import { abortWhenClosed } from '../../http/gone-client.ts';
import { route } from '../../http/route.ts';
import { readBeginning } from '../../load/foreign-file.ts';
import { importKind, takesFile } from '../../load/http.ts';
import { convertingStore } from '../../load/received.ts';
import { findMended, readAsMended } from '../../load/rejects/mends.ts';
import type { UploadOptions } from '../../load/upload/options.ts';
import { keepFile } from '../../load/upload/receive-upload.ts';
import { keptLimits } from '../../load/upload/upload.ts';
import type { Upload } from '../../load/upload-store.ts';
import { hintsOf, openUpload } from '../../load/uploads.ts';
import { readDocument } from '../rules/rules.ts';
import { inspection } from './api.ts';
import { type Inspector, inspectFile, renderProblem, renderUnreadable } from './inspect-file.ts';
import { type RenderedInspection, sandboxInspector } from './sandbox.ts';

export const inspectImport = (table: OptionTable) => {
  const kind = importKind(table);
  return route({
    ...takesFile(table),
    at: 'POST /v1/imports/inspect',
    operationId: 'inspectImport',
    summary: 'Inspect a file before it is loaded',
    description:
      'Keeps the file for one day, reads its beginning with the code that loads files, and loads nothing. Takes what `POST /v1/imports` takes. To load the file afterwards, with the same or other options, name its `upload_id` there.',
    answer: { description: 'The content of the file. The file is kept.', schema: inspection.ref },
    refuses: ['empty_file', 'not_found'],
    handle: async ({ system, request, reply, environment }) => {
      const { kept, options: uploadOptions } = await keepFile(system, request, kind);
      const { signal } = abortWhenClosed(reply);
      const inspection = await inspect(system, environment, kept, uploadOptions, signal);
      const about = {
        upload_id: kept.uploadId,
        expires_at: kept.expiresAt.toISOString(),
        filename: kept.filename,
        file_size: kept.fileSize,
        sha256: kept.sha256,
      };
      if (inspection instanceof InputError) return { ...about, ...renderUnreadable(inspection) };
      // The sandbox has rendered most members of the response as JSON. The members rendered here
      // are joined to this JSON as text.
      const rest = JSON.stringify({ ...about, ...renderProblem(inspection) });
      const json = Buffer.concat([Buffer.from(`${rest.slice(0, -1)},`), inspection.json.subarray(1)]);
      return reply.type('application/json; charset=utf-8').send(json);
    },
  });
};

/** Corrected rejects are read with the options of the load that refused them. */
function inspectorAsLoaded(system: System, environment: number): Inspector<RenderedInspection> {
  const inspect = sandboxInspector(system, environment);
  return async (store, received, options, signal) => {
    const mended = await findMended(
      { db: system.db, files: store },
      environment,
      received,
      await readBeginning(store, received),
    );
    const read = mended === null ? { received, options } : readAsMended({ received, options }, mended);
    return inspect(store, read.received, read.options, signal);
  };
}

async function inspect(
  system: System,
  environment: number,
  kept: Upload,
  { load, format, filename }: UploadOptions,
  signal: AbortSignal,
): Promise<RenderedInspection | InputError> {
  const limits = keptLimits(system, kept);
  const { source, map, ...options } = load;
  const { chunkBytes } = system.config;
  const hints = {
    ...hintsOf(kept),
    ...(filename !== undefined && { filename }),
    format,
    source,
    map,
    chunkBytes,
  };
  const bytes = openUpload(system.files, kept);
  try {
    const rules = await readDocument(system.db, environment);
    const all = { ...options, map, source, rules };
    const store = convertingStore(system, environment);
    return await inspectFile(
      store,
      bytes,
      hints,
      all,
      limits,
      signal,
      inspectorAsLoaded(system, environment),
    );
  } catch (error) {
    // The file may be readable with other options.
    if (error instanceof InputError && error.status !== errorCodes.not_found && !signal.aborted) return error;
    throw error;
  } finally {
    bytes.destroy();
  }
}
