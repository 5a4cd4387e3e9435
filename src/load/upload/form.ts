import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Multipart, MultipartFile, MultipartValue } from '@fastify/multipart';
import { InputError, inputError } from '../../base/errors.ts';
import { MIN_UPLOAD_BYTES_PER_SECOND } from '../../base/limits.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import type { InflateGuard } from '../../formats/decompress.ts';
import { readNext, UploadRate } from '../receive/intake.ts';
import type { ReceiveHints } from '../receive/receive.ts';
import { type ByteCounter, inflateGuard } from '../receive/unpack.ts';
import type { Upload as KeptUpload } from '../upload-store.ts';
import { cleanFilename, type GivenOption, type UploadOptions } from './options.ts';
import { findKept, readOptions, type Upload } from './upload.ts';

export interface Taker<T, R> {
  take(source: AsyncIterable<Uint8Array>, hints: ReceiveHints): Promise<T>;
  discard(result: T): Promise<void>;
  sent(file: SentFile<T>, options: UploadOptions): Promise<R>;
  kept(upload: KeptUpload, options: UploadOptions): Promise<R>;
}

interface SentFile<T> {
  readonly result: T;
  readonly filename: string | undefined;
  readonly before: UploadOptions;
}

/**
 * Takes a file and options from a form. An option may follow the file only if it does not affect
 * how the file is read. After an error, the file is removed.
 */
export async function takeForm<T, R>(
  upload: Upload,
  query: readonly GivenOption[],
  taker: Taker<T, R>,
): Promise<R> {
  const fields = [...query];
  let file: SentFile<T> | null = null;
  try {
    const form = openForm(upload);
    for await (const part of formParts(form, upload)) {
      if (part.type === 'field') fields.push(readField(part));
      else if (file !== null) throw secondFile();
      else file = await takePart(upload, taker, form, part, fields);
    }
    const options = await readOptions(upload, fields);
    if (file !== null) {
      if (options.uploadId !== undefined)
        throw inputError('invalid_field', 'upload_id and a file exclude each other', 'upload_id');
      return await taker.sent(file, options);
    }
    const namedUpload = await findKept(upload, options);
    if (namedUpload === null) throw inputError('missing_field', 'The form has no part named file', 'file');
    return await taker.kept(namedUpload, options);
  } catch (error) {
    if (file !== null) await taker.discard(file.result);
    throw error;
  }
}

/**
 * Refuses an option that follows the file if the option would have changed how the file was read.
 * @throws InputError `invalid_field`
 */
export function requireSaidBefore(
  table: OptionTable,
  { before }: SentFile<unknown>,
  detected: string,
  options: UploadOptions,
): void {
  if (options.format !== undefined && (options.format === 'csv') !== (detected === 'csv')) {
    const message = 'format must come before the file, or in the query: the file was read as something else';
    throw inputError('invalid_field', message, `format: ${options.format}; read as: ${detected}`);
  }
  const late = table.findDifference(before.load.source, options.load.source);
  if (late === undefined) return;
  const message = `${late} must come before the file, or in the query: the file had been read when it came`;
  throw inputError('invalid_field', message, late);
}

async function takePart<T>(
  upload: Upload,
  taker: Taker<T, unknown>,
  form: Form,
  part: MultipartFile,
  fields: readonly GivenOption[],
): Promise<SentFile<T>> {
  if (part.fieldname !== 'file') {
    const details = `found: ${String(part.fieldname).slice(0, 100)}`;
    throw inputError('missing_field', 'The file must be in a part named file', details);
  }
  // The options are read now, so that invalid ones are refused before gigabytes of data arrive.
  const before = await readOptions(upload, fields);
  const filename = cleanFilename(part.filename ?? '');
  const { source, map } = before.load;
  const hints = { filename: before.filename ?? filename, format: before.format, source, map };
  try {
    const result = await taker.take(part.file, { ...hints, contentType: part.mimetype, sent: form.sent });
    return { result, filename, before };
  } catch (error) {
    throw explainForm(error);
  }
}

function readField(part: Multipart & MultipartValue): GivenOption {
  const name = String(part.fieldname);
  const { value } = part;
  if (part.valueTruncated) throw inputError('invalid_field', 'The value is too long', name.slice(0, 100));
  return [name, typeof value === 'string' ? value : JSON.stringify(value)];
}

interface Form {
  readonly parts: AsyncIterator<Multipart>;
  readonly sent: ByteCounter | undefined;
}

/** Begins to read a form. Must be called only once. The caller must read all parts. */
function openForm({ request, headers, system }: Upload): Form {
  if (!headers.gzip) return { parts: request.parts()[Symbol.asyncIterator](), sent: undefined };
  const inflater = createGunzip();
  const sent: ByteCounter = {
    get receivedBytes() {
      return inflater.bytesWritten;
    },
  };
  const unpacked = Object.assign(guarded(inflateGuard(sent, system.config.maxInflatedBytes)), {
    headers: request.raw.headers,
    aborted: false,
  });
  // `pipeline` is not used, because it would destroy the request, which still needs a response.
  request.raw.on('error', (error) => inflater.destroy(error)).pipe(inflater);
  inflater.on('error', (error) => unpacked.destroy(error)).pipe(unpacked);
  unpacked.on('close', () => inflater.destroy());
  // The plugin reads the form from `request.raw`. It therefore gets an object that inherits from
  // the request, but whose `raw` is the unpacked stream.
  const view = Object.create(request, { raw: { value: unpacked } });
  const parts = (request.parts as () => AsyncIterableIterator<Multipart>).call(view);
  return { parts, sent };
}

function guarded(guard: InflateGuard): Transform {
  return new Transform({
    transform(bytes: Buffer, _encoding, done) {
      try {
        guard(bytes.length);
        done(null, bytes);
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

/**
 * Yields the parts of a form. While this process waits for the next part, the sender must neither
 * stall nor be too slow. Otherwise, a form whose fields or last bytes never end could occupy the
 * connection forever.
 * @throws InputError for a form that is malformed or unpacks to too many bytes, and
 * `upload_too_slow` for a slow sender
 */
async function* formParts({ parts }: Form, upload: Upload): AsyncGenerator<Multipart> {
  const { uploadStallMs } = upload.system.config;
  const { socket } = upload.request.raw;
  const rate = new UploadRate(MIN_UPLOAD_BYTES_PER_SECOND);
  try {
    while (true) {
      const startedAt = performance.now();
      const bytesBefore = socket.bytesRead;
      const result = await readNext(parts, uploadStallMs, upload.signal);
      rate.note(performance.now() - startedAt, socket.bytesRead - bytesBefore);
      if (result.done === true) return;
      yield result.value;
    }
  } catch (error) {
    throw explainForm(error);
  }
}

/** Errors of the parser can be recognised only by their messages. */
const complaints =
  /multipart|terminated early|Boundary not found|Malformed part header|part header|reach (?:parts|files|fields) limit/i;

function explainForm(error: unknown): unknown {
  if (error instanceof InputError || !(error instanceof Error)) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'FST_PARTS_LIMIT' || code === 'FST_FIELDS_LIMIT') {
    return inputError('invalid_field', 'The form has too many fields');
  }
  if (code === 'FST_FILES_LIMIT') return secondFile();
  if (code.startsWith('Z_')) {
    return inputError('unsupported_format', `The gzip data of the body is damaged: ${error.message}`);
  }
  if (code.startsWith('FST_') && code !== 'FST_MP_PREMATURE_CLOSE') {
    return inputError('invalid_field', `The form cannot be read: ${error.message}`);
  }
  if (!complaints.test(error.message)) return error;
  return inputError(
    'missing_field',
    'The form is malformed or cut off before its end',
    'multipart/form-data',
  );
}

function secondFile(): InputError {
  return inputError(
    'invalid_field',
    'A form brings one file: there is more than one part named file',
    'file',
  );
}
