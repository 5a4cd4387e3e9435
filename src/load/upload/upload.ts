import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import { MIN_UPLOAD_BYTES_PER_SECOND } from '../../base/limits.ts';
import type { System } from '../../context.ts';
import type { Entity, LoadEntity } from '../../domain/entity.ts';
import type { LoadOptions } from '../../domain/load.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import { environmentId } from '../../http/caller.ts';
import { exampleText, listOf, withExamples } from '../../http/schema.ts';
import { companyItem, userItem } from '../../ingest/api.ts';
import { withOptionsOf } from '../options-of.ts';
import type { ReceiveLimits } from '../receive/intake.ts';
import { type ReceiveHints, receive } from '../receive/receive.ts';
import type { ReceivedFile } from '../receive/received-file.ts';
import { convertingStore } from '../received.ts';
import type { Upload as KeptUpload } from '../upload-store.ts';
import { hintsOf, openUpload, requireUpload } from '../uploads.ts';
import { type GivenOption, type ReadOptions, type UploadOptions, uploadOptions } from './options.ts';

export interface UploadKind {
  /** Kind of the records. `null` if the file determines the kind. */
  readonly entity: Entity | null;
  readonly readOptions: ReadOptions;
  readonly mediaTypes: readonly string[];
  /**
   * Media types that are also accepted, but are not in the API document. In addition, JSON and a
   * missing type are accepted.
   */
  readonly otherMediaTypes: readonly string[];
  readonly defaultFilename: string;
  /**
   * True if `upload_id` can replace the file. `upload_id` may be in the query, in a form, or in a
   * small JSON object.
   */
  readonly takesUpload: boolean;
}

export interface UploadHeaders {
  /** Media type in lower case, without parameters. Empty if the header is missing. */
  readonly mediaType: string;
  readonly gzip: boolean;
}

export interface Upload {
  readonly system: System;
  readonly request: FastifyRequest;
  readonly kind: UploadKind;
  readonly headers: UploadHeaders;
  readonly signal: AbortSignal;
}

export interface Uploaded {
  readonly received: ReceivedFile;
  readonly filename: string;
  readonly options: LoadOptions;
  /** Job whose stored file is used. Missing if the file was sent. */
  readonly fileOf?: string | null;
  readonly uploadId?: string;
}

/**
 * Reads options, including those of `options_of`.
 * @throws InputError `not_found`, or the error of `ReadOptions`
 */
export async function readOptions(
  { system, request, kind }: Pick<Upload, 'system' | 'request' | 'kind'>,
  fields: readonly GivenOption[],
): Promise<UploadOptions> {
  const options = kind.readOptions(fields);
  return { ...options, load: await withOptionsOf(system, environmentId(request), options.load) };
}

/**
 * Finds the upload that the request names. Returns `null` if the request contains no `upload_id`.
 * @throws InputError `not_found`
 */
export async function findKept(
  { system, request }: Pick<Upload, 'system' | 'request'>,
  { uploadId }: UploadOptions,
): Promise<KeptUpload | null> {
  return uploadId === undefined ? null : requireUpload(system, environmentId(request), uploadId);
}

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
    minBytesPerSecond: MIN_UPLOAD_BYTES_PER_SECOND,
    stallMs: config.uploadStallMs,
  };
}

/**
 * The file of a load has already been unpacked, so only the limit for unpacked files applies to it.
 */
export function keptLimits({ config }: System, { fileOf }: KeptUpload): ReceiveLimits {
  const limits = uploadLimits(config);
  return fileOf === null ? limits : { ...limits, maxUploadBytes: config.maxInflatedBytes };
}

export async function storeKept(upload: Upload, kept: KeptUpload, options: UploadOptions): Promise<Uploaded> {
  const { system, kind } = upload;
  const filename = options.filename ?? kept.filename ?? kind.defaultFilename;
  const { source, map } = options.load;
  const bytes = openUpload(system.files, kept);
  try {
    const hints = { ...hintsOf(kept), filename, format: options.format, source, map };
    // Hash and size of the bytes that were sent, even if the stored file was unpacked or rewritten.
    const sent = { sha256: kept.sha256, receivedBytes: kept.fileSize };
    const received = { ...(await storeFile(upload, bytes, hints, keptLimits(system, kept))), ...sent };
    return { received, filename, fileOf: kept.fileOf, uploadId: kept.uploadId, options: options.load };
  } finally {
    bytes.destroy();
  }
}

/** If the caller stops reading early, the connection stays open, so that a response can be sent. */
export function bodyOf(raw: IncomingMessage): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => raw.iterator({ destroyOnReturn: false }) };
}

const csvText = 'user_id,name,plan,company_id\nu1,Ada Lovelace,free,acme\nu2,"Hopper, Grace",pro,acme\n';

const ndjsonText =
  '{"user_id":"u1","company_id":"acme","metadata":{"plan":"pro","logins":7}}\n{"user_id":"u2","email":"grace@example.com"}\n';

export const csvBody = exampleText(
  'CSV with a header that contains `user_id` or `company_id`. Every other column is a property. Delimiter, line ends and encoding are detected.',
  'users',
  'Users',
  csvText,
);

export const tsvBody = exampleText(
  'CSV with tabs as delimiters.',
  'users',
  'Users',
  'user_id\tname\nu1\tAda Lovelace\n',
);

export const ndjsonBody = exampleText(
  'One JSON object per line: a user if it has `user_id`, otherwise a company.',
  'users',
  'Users',
  ndjsonText,
);

const binary = (description: string) => ({ schema: Type.String({ format: 'binary', description }) });

export const packedBody = binary('CSV, NDJSON or a JSON array, compressed with gzip.');
export const columnarBody = binary('A Parquet file. A null leaves the property unchanged.');
export const workbookBody = binary(
  'An Excel workbook (.xlsx). Its first sheet with data, or the one that `sheet` names, is read like CSV.',
);
export const archiveBody = binary('A ZIP archive that contains one such file.');
const anyFile = 'CSV, NDJSON, a JSON array, Excel (.xlsx) or Parquet, plain, gzipped or in a ZIP archive.';
export const anyBody = binary(anyFile);

function arrayBody(entity: Entity, item: TSchema, example: object) {
  const items = listOf(`The ${entity}.`, item, { minItems: 1 });
  const envelope = Type.Object({ [entity]: items }, { additionalProperties: true });
  const name = `${entity.charAt(0).toUpperCase()}${entity.slice(1)}`;
  const description = `${name}: an array of any length, bare or under \`${entity}\`.`;
  return withExamples(Type.Union([envelope, Type.Array(item, { minItems: 1 })], { description }), {
    [entity]: { summary: name, value: { [entity]: [example] } },
    array: { summary: 'A bare array', value: [example] },
  });
}

export const usersBody = arrayBody('users', userItem.ref, {
  user_id: 'u1',
  metadata: { plan: 'pro', logins: 7 },
});

export const companiesBody = arrayBody('companies', companyItem.ref, {
  company_id: 'acme',
  metadata: { name: 'Acme GmbH', size: 120 },
});

export function formBody(table: OptionTable, entities: readonly LoadEntity[], exampleFile = csvText) {
  const fields: Record<string, TSchema> = {
    ...uploadOptions(table, entities),
    file: Type.String({ format: 'binary', description: `The file: ${anyFile}` }),
  };
  return withExamples(
    Type.Object(fields, { additionalProperties: false, description: 'A file and options.' }),
    {
      file: { summary: 'A file', value: { file: exampleFile } },
      options: { summary: 'A file and an option', value: { max_errors: '5%', file: exampleFile } },
    },
  );
}
