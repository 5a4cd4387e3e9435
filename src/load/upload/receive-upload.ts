import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { inputError } from '../../base/errors.ts';
import type { System } from '../../context.ts';
import type { LoadType } from '../../domain/load.ts';
import { callerOrigin, environmentId } from '../../http/caller.ts';
import { watchClient } from '../../http/gone-client.ts';
import {
  idempotencyKeyOf,
  isDefaultType,
  meansJson,
  mediaTypeOf,
  readEncoding,
} from '../../http/parameters.ts';
import { askForBody } from '../../http/plugins/request-body.ts';
import { renderJob } from '../../http/render.ts';
import type { Call } from '../../http/route.ts';
import { requireQueueRoom } from '../../tasks/job-store.ts';
import { acceptLoad } from '../accept.ts';
import { type Load, requireLoad } from '../read-store.ts';
import { Intake } from '../receive/intake.ts';
import type { ReceivedFile } from '../receive/received-file.ts';
import { discardReceived } from '../received.ts';
import type { Upload as KeptUpload } from '../upload-store.ts';
import { keepUpload, removeLoadedUpload, removeUpload } from '../uploads.ts';
import { requireSaidBefore, type Taker, takeForm } from './form.ts';
import { dispositionFilename, type GivenOption, queryOptions, type UploadOptions } from './options.ts';
import {
  bodyOf,
  findKept,
  readOptions,
  storeFile,
  storeKept,
  type Upload,
  type Uploaded,
  type UploadHeaders,
  type UploadKind,
  uploadLimits,
} from './upload.ts';

interface TakenUpload extends Uploaded {
  readonly environment: number;
  readonly idempotencyKey: string | null;
}

/** Checks the headers and the query before asking the client for the body. */
async function takeUpload(system: System, request: FastifyRequest, kind: UploadKind): Promise<TakenUpload> {
  const { upload, query } = openUpload(system, request, kind);
  const environment = environmentId(request);
  const idempotencyKey = idempotencyKeyOf(request);
  await requireQueueRoom(system.db, environment, idempotencyKey, system.config.maxQueuedJobs);
  const uploaded = await take<ReceivedFile, Uploaded>(upload, query, {
    take: (source, hints) => storeFile(upload, source, hints),
    discard: ({ ref }) => discardReceived(system, ref),
    async sent(file, options) {
      requireSaidBefore(system.optionTable, file, file.result.format, options);
      const filename = options.filename ?? file.filename ?? kind.defaultFilename;
      return { received: file.result, filename, options: options.load };
    },
    kept: (file, options) => storeKept(upload, file, options),
  });
  return { ...uploaded, environment, idempotencyKey };
}

export async function receiveUpload(
  system: System,
  request: FastifyRequest,
  type: LoadType,
  kind: UploadKind,
): Promise<Load> {
  const { environment, idempotencyKey, ...uploaded } = await takeUpload(system, request, kind);
  const { received, filename, options, fileOf = null, uploadId = null } = uploaded;
  const accepted = await acceptLoad(system, {
    environmentId: environment,
    type,
    filename,
    received,
    options,
    idempotencyKey,
    fileOf,
    requestId: request.id,
    origin: callerOrigin(request),
  });
  const load = await requireLoad(system, environment, accepted.jobId);
  if (uploadId !== null) await removeLoadedUpload(system, environment, uploadId, load);
  // A repeated request gets the same response as the first one, so its job is shown as queued. With
  // `skip`, an earlier job is shown in its current state.
  const isSkipped = !accepted.created && options.ifDuplicate === 'skip';
  return isSkipped ? load : asAccepted(load);
}

function openUpload(
  system: System,
  request: FastifyRequest,
  kind: UploadKind,
): { readonly upload: Upload; readonly query: readonly GivenOption[] } {
  const headers = readUploadHeaders(request.headers, kind, system.config.maxUploadBytes);
  const query = queryOptions(request.query);
  kind.readOptions(query);
  return { upload: { system, request, kind, headers, signal: watchClient(request.raw) }, query };
}

export interface KeptFile {
  readonly kept: KeptUpload;
  readonly options: UploadOptions;
}

/**
 * Stores a file as it was sent, to be loaded later. If the request contains `upload_id`, returns
 * that upload instead.
 */
export async function keepFile(system: System, request: FastifyRequest, kind: UploadKind): Promise<KeptFile> {
  const { upload, query } = openUpload(system, request, kind);
  const environment = environmentId(request);
  const limits = uploadLimits(system.config);
  return take<KeptUpload, KeptFile>(upload, query, {
    take(source, { filename = null, contentType = null, contentEncodingGzip: isGzip = false }) {
      return keepUpload(
        system,
        environment,
        source,
        { filename, contentType, isGzip },
        limits,
        upload.signal,
      );
    },
    discard: ({ uploadId }) => removeUpload(system, environment, uploadId),
    sent: async ({ result: kept }, options) => ({ kept, options }),
    kept: async (kept, options) => ({ kept, options }),
  });
}

/**
 * Returns the load as it was when it was accepted, even if a worker has already started or ended
 * it.
 */
function asAccepted(load: Load): Load {
  return { ...load, status: 'queued', startedAt: null, endedAt: null };
}

export async function renderQueued(
  { system, environment, base }: Pick<Call, 'system' | 'environment' | 'base'>,
  jobId: string,
) {
  return renderJob(asAccepted(await requireLoad(system, environment, jobId)), base());
}

/** Takes the file from a form, from the body, or from an upload. */
async function take<T, R>(upload: Upload, query: readonly GivenOption[], taker: Taker<T, R>): Promise<R> {
  const { request, kind, headers } = upload;
  if (headers.mediaType === 'multipart/form-data') {
    askForBody(request.raw);
    return takeForm(upload, query, taker);
  }
  const options = await readOptions(upload, query);
  const namedUpload = await findKept(upload, options);
  if (namedUpload !== null) return taker.kept(namedUpload, options);
  askForBody(request.raw);
  const json = await readSmallJson(upload);
  const jsonOptions = json === null ? null : optionsIn(json);
  if (jsonOptions !== null) {
    const allOptions = await readOptions(upload, [...query, ...jsonOptions]);
    const jsonUpload = await findKept(upload, allOptions);
    if (jsonUpload !== null) return taker.kept(jsonUpload, allOptions);
  }
  const filename = options.filename ?? dispositionFilename(request.headers['content-disposition']);
  const body = json === null ? bodyOf(request.raw) : Readable.from([json], { objectMode: false });
  const { source, map } = options.load;
  const result = await taker.take(body, {
    filename,
    format: options.format,
    source,
    map,
    contentEncodingGzip: headers.gzip,
    contentType: contentTypeOf(headers.mediaType, kind),
  });
  return taker.sent({ result, filename, before: options }, options);
}

/**
 * Maximum size of a JSON body that may contain an `upload_id` instead of a file. Files are mostly
 * larger.
 */
const MAX_UPLOAD_REQUEST_BYTES = 64 * 1024;

/**
 * Returns a short JSON body, because it may contain an `upload_id`. For any other body, returns
 * `null` without reading a byte.
 */
async function readSmallJson({ system, request, kind, headers, signal }: Upload): Promise<Buffer | null> {
  const length = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
  const mayNameUpload = kind.takesUpload && meansJson(headers.mediaType) && !headers.gzip;
  if (!mayNameUpload || length > MAX_UPLOAD_REQUEST_BYTES) return null;
  const pieces: Buffer[] = [];
  const intake = new Intake(bodyOf(request.raw), uploadLimits(system.config), signal, performance);
  for await (const bytes of intake.read()) pieces.push(bytes);
  return Buffer.concat(pieces);
}

/** Returns the options in a body that contains an `upload_id`, otherwise `null`. */
function optionsIn(body: Buffer): GivenOption[] | null {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'upload_id')) return null;
    return Object.entries(value).flatMap(([name, values]) =>
      (Array.isArray(values) ? values : [values]).map(
        (each): GivenOption => [name, typeof each === 'string' ? each : JSON.stringify(each)],
      ),
    );
  } catch {
    return null;
  }
}

/**
 * Routes for one entity accept only JSON. For these routes, a missing or general media type means
 * JSON.
 */
function contentTypeOf(mediaType: string, { entity }: UploadKind): string {
  const isJson = mediaType === '' || isDefaultType(mediaType) ? entity !== null : meansJson(mediaType);
  return isJson ? 'application/json' : mediaType;
}

const formOverheadBytes = 1024 * 1024;

function readUploadHeaders(
  headers: IncomingHttpHeaders,
  { mediaTypes, otherMediaTypes }: UploadKind,
  maxUploadBytes: number,
): UploadHeaders {
  const mediaType = mediaTypeOf(headers['content-type']);
  const isForm = mediaType === 'multipart/form-data';
  if (isForm && !/;\s*boundary\s*=\s*"?[^\s";]/i.test(headers['content-type'] ?? '')) throw noBoundary();
  const isTaken = mediaTypes.includes(mediaType) || otherMediaTypes.includes(mediaType);
  if (!isForm && !isTaken && !meansJson(mediaType) && !isDefaultType(mediaType)) {
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
