import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { System } from '../../context.ts';
import type { Entity } from '../../domain/entity.ts';
import type { LoadOptions } from '../../domain/load.ts';
import { convertingStore } from '../../load/accept-load.ts';
import type { ReceiveLimits } from '../../load/receive/intake.ts';
import { type ReceivedFile, type ReceiveHints, receive } from '../../load/receive/receive.ts';
import { withMapping } from '../../load/saved-mappings.ts';
import { hintsOf, openUpload, requireWholeUpload, type WholeUpload } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import type { GivenOption, ReadOptions, UploadOptions } from './options.ts';

/** What the uploads of a route have in common. */
export interface UploadKind {
  /** The only entity it takes, or null where the file may say. */
  readonly entity: Entity | null;
  readonly readOptions: ReadOptions;
  /** Media types of a body that is the file itself. */
  readonly mediaTypes: readonly string[];
  /** Others that clients send for the same, which the document leaves out; those of JSON, and those of clients that set none, aside. */
  readonly otherMediaTypes: readonly string[];
  /** The name of a file that was sent without one. */
  readonly defaultFilename: string;
  /** What may be named in place of a file that is sent. */
  readonly named?: NamedRecords;
}

/** Records that are here already. */
export interface NamedRecords {
  /** That names them, in the query, in a form, or in a small JSON object. */
  readonly option: 'upload_id' | 'apply';
  store(upload: Upload, environment: number, options: UploadOptions): Promise<Uploaded>;
}

export interface UploadHeaders {
  /** Media type in lower case, without parameters; empty if there is none. */
  readonly mediaType: string;
  readonly gzip: boolean;
}

/** An upload under way. */
export interface Upload {
  readonly system: System;
  readonly request: FastifyRequest;
  readonly kind: UploadKind;
  readonly headers: UploadHeaders;
  readonly signal: AbortSignal;
}

/** A file in the store that no job knows of yet. */
export interface Uploaded {
  readonly received: ReceivedFile;
  readonly filename: string;
  readonly options: LoadOptions;
  /** The job whose stored file it is; missing: it was sent. */
  readonly fileOf?: string | null;
  /** The saved mapping that they come from in part. */
  readonly mapping: string | null;
}

/** What is asked for; with what a saved mapping says, if one is named. @throws InputError what `ReadOptions` does, `not_found`. */
export async function readOptions(
  { system, request, kind }: Pick<Upload, 'system' | 'request' | 'kind'>,
  given: readonly GivenOption[],
): Promise<UploadOptions> {
  const options = kind.readOptions(given);
  const { load, mapping } = options;
  if (mapping === null) return options;
  const asked = { ...load, format: options.format ?? null };
  const { format, ...all } = await withMapping(system.db, environmentId(request), mapping, asked);
  return { ...options, load: all, format: format ?? undefined };
}

/** Streams a file into the store under the limits of the configuration. */
export function storeFile(
  { system, request, kind, signal }: Upload,
  source: AsyncIterable<Uint8Array>,
  hints: ReceiveHints,
  limits: ReceiveLimits = uploadLimits(system.config),
): Promise<ReceivedFile> {
  const { config } = system;
  const envelope = kind.entity ?? undefined;
  const all = { ...hints, envelope, chunkBytes: config.chunkBytes };
  return receive(source, convertingStore(system, environmentId(request)), all, limits, signal);
}

export function uploadLimits(config: System['config']): ReceiveLimits {
  return {
    maxUploadBytes: config.maxUploadBytes,
    maxInflatedBytes: config.maxInflatedBytes,
    minBytesPerSecond: config.minUploadRate,
    stallMs: config.uploadStallMs,
  };
}

/** The file of a load is stored unpacked, and was within the limits when it came. */
export function keptLimits({ config }: System, { fileOf }: WholeUpload): ReceiveLimits {
  const limits = uploadLimits(config);
  return fileOf === null ? limits : { ...limits, maxUploadBytes: config.maxInflatedBytes };
}

/** A load's file, from one that was sent to be inspected. */
export async function storeKept(
  upload: Upload,
  environment: number,
  options: UploadOptions,
): Promise<Uploaded> {
  const { system, kind } = upload;
  const kept = await requireWholeUpload(system, environment, options.named ?? '');
  const filename = options.filename ?? kept.filename ?? kind.defaultFilename;
  const { source, map } = options.load;
  const bytes = openUpload(system.files, kept);
  try {
    const said = { ...hintsOf(kept), filename, format: options.format, source, map };
    // Of a file that was unpacked or rewritten when it came: what was sent is what counts.
    const sent = { sha256: kept.sha256, receivedBytes: kept.fileSize };
    const received = { ...(await storeFile(upload, bytes, said, keptLimits(system, kept))), ...sent };
    return { received, filename, fileOf: kept.fileOf, options: options.load, mapping: options.mapping };
  } finally {
    bytes.destroy();
  }
}

/** The body as it comes; leaving off does not close the connection, on which an answer is still owed. */
export function bodyOf(raw: IncomingMessage): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => raw.iterator({ destroyOnReturn: false }) };
}
