import type { FastifyRequest } from 'fastify';
import { requireQueueRoom } from '../../background-jobs/queue-room.ts';
import type { System } from '../../context.ts';
import type { Load, LoadType } from '../../domain/load.ts';
import { acceptLoad } from '../../load/accept-load.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { environmentId } from '../plugins/auth.ts';
import { askForBody } from '../plugins/expect-continue.ts';
import { readUploadOptions } from '../schemas/load-options.ts';
import { queryOptions } from '../schemas/option-values.ts';
import { readUploadHeaders } from '../schemas/upload-headers.ts';
import { receiveBody } from './receive-body.ts';
import { receiveForm } from './receive-form.ts';
import type { Upload, UploadKind } from './upload.ts';
import { watchClient } from './watch-client.ts';

/**
 * Takes a file in and makes a load of it. Everything that can be told from the headers and the query is checked before
 * the body is asked for.
 */
export async function receiveUpload(
  system: System,
  request: FastifyRequest,
  type: LoadType,
  kind: UploadKind,
): Promise<Load> {
  const headers = readUploadHeaders(request.headers, kind.mediaTypes, system.config.maxUploadBytes);
  const query = queryOptions(request.query);
  readUploadOptions(query, kind.entity);
  const environment = environmentId(request);
  const { idempotencyKey } = headers;
  await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
  const upload: Upload = { system, request, kind, headers, signal: watchClient(request.raw) };
  askForBody(request.raw);
  const receiveIt = headers.mediaType === 'multipart/form-data' ? receiveForm : receiveBody;
  const { received, filename, options } = await receiveIt(upload, query);
  const accepted = await acceptLoad(system, {
    environmentId: environment,
    type,
    filename,
    received,
    options,
    idempotencyKey,
    requestId: request.id,
  });
  const load = await requireLoad(system, environment, accepted.jobId);
  // A repeated request gets the first answer again; only `skip` shows an earlier job as it is.
  const skipped = !accepted.created && options.ifDuplicate === 'skip';
  return skipped ? load : asAccepted(load);
}

/** A worker may have begun, and even ended, before the answer is written: the answer is about the acceptance. */
function asAccepted(load: Load): Load {
  return { ...load, status: 'queued', startedAt: null, endedAt: null };
}
