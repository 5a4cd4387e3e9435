import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { requireQueueRoom } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { Interrupted, inputError } from '../../domain/errors.ts';
import type { Load, LoadType } from '../../domain/load.ts';
import { acceptLoad } from '../../load/accept-load.ts';
import { requireLoad } from '../../postgres/stores/read-loads.ts';
import { environmentId } from '../plugins/auth.ts';
import { askForBody } from '../plugins/request-body.ts';
import { idempotencyKeyOf, isUnsaid, meansJson, mediaTypeOf, readEncoding } from '../request-headers.ts';
import { receiveForm } from './form.ts';
import { dispositionFilename, type GivenOption, queryOptions } from './options.ts';
import {
  bodyOf,
  storeFile,
  type Upload,
  type Uploaded,
  type UploadHeaders,
  type UploadKind,
} from './upload.ts';

/**
 * Takes a file in and makes a load of it. Everything that the headers and the query show is checked before
 * the body is asked for.
 */
export async function receiveUpload(
  system: System,
  request: FastifyRequest,
  type: LoadType,
  kind: UploadKind,
): Promise<Load> {
  const headers = readUploadHeaders(request.headers, kind, system.config.maxUploadBytes);
  const query = queryOptions(request.query);
  kind.readOptions(query);
  const environment = environmentId(request);
  const idempotencyKey = idempotencyKeyOf(request);
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

/** A body that is the file itself. */
async function receiveBody(upload: Upload, given: readonly GivenOption[]): Promise<Uploaded> {
  const { request, kind, headers } = upload;
  const options = kind.readOptions(given);
  const filename = options.filename ?? dispositionFilename(request.headers['content-disposition']);
  const received = await storeFile(upload, bodyOf(request.raw), {
    filename,
    format: options.format,
    contentType: contentTypeOf(headers.mediaType, kind),
    contentEncodingGzip: headers.gzip,
    source: options.load.source,
    map: options.load.map,
  });
  return { received, filename: filename ?? kind.defaultFilename, options: options.load };
}

/** What the body is said to be: JSON by any name, and, where nothing else is taken, also if nothing is said. */
function contentTypeOf(mediaType: string, { entity }: UploadKind): string {
  const isJson = mediaType === '' || isUnsaid(mediaType) ? entity !== null : meansJson(mediaType);
  return isJson ? 'application/json' : mediaType;
}

/** Room for boundaries, part headers and fields around the file of a form. */
const formOverheadBytes = 1024 * 1024;

/**
 * What the headers of an upload say, checked before the body is asked for.
 * @throws InputError `unsupported_media_type`, `payload_too_large`, `invalid_field`.
 */
function readUploadHeaders(
  headers: IncomingHttpHeaders,
  { mediaTypes, otherMediaTypes }: UploadKind,
  maxUploadBytes: number,
): UploadHeaders {
  const mediaType = mediaTypeOf(headers['content-type']);
  const isForm = mediaType === 'multipart/form-data';
  if (isForm && !/;\s*boundary\s*=\s*"?[^\s";]/i.test(headers['content-type'] ?? '')) throw noBoundary();
  const isTaken = mediaTypes.includes(mediaType) || otherMediaTypes.includes(mediaType);
  if (!isForm && !isTaken && !meansJson(mediaType) && !isUnsaid(mediaType)) {
    const message = `Send multipart/form-data with a part named file, or ${mediaTypes.join(', ')}`;
    throw inputError('unsupported_media_type', message, `Content-Type: ${mediaType}`);
  }
  const gzip = readEncoding(headers['content-encoding']);
  if (Number(headers['content-length'] ?? 0) > maxUploadBytes + formOverheadBytes) {
    const details = `Content-Length: ${headers['content-length']}`;
    throw inputError('payload_too_large', `An upload may have ${maxUploadBytes} bytes`, details);
  }
  return { mediaType, gzip };
}

function noBoundary(): Error {
  const message =
    'Content-Type names no boundary between the parts of the form; leave the header to your HTTP client, which makes both';
  return inputError('invalid_field', message, 'Content-Type: multipart/form-data');
}

/** Aborts when the connection ends before the whole body has come: what was sent so far is worth nothing. */
function watchClient(raw: IncomingMessage): AbortSignal {
  const gone = new AbortController();
  const onClose = (): void => {
    if (!raw.complete) gone.abort(new Interrupted('the client went away while it was sending'));
  };
  if (raw.destroyed) onClose();
  else raw.once('close', onClose);
  return gone.signal;
}
