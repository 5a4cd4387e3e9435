import { createGunzip } from 'node:zlib';
import type { Multipart } from '@fastify/multipart';
import { InputError, inputError } from '../../domain/errors.ts';
import { UploadRate } from '../../load/receive/intake.ts';
import { readNext } from '../../load/receive/read-next.ts';
import type { Upload } from './upload.ts';

/**
 * The parts of a form as they come. Between them, as within them, the sender may neither stall nor trickle; endless
 * fields, or an endless tail, end there too.
 * @throws InputError for a form that is malformed or cut off; `upload_too_slow`.
 */
export async function* formParts(upload: Upload): AsyncGenerator<Multipart> {
  const { uploadStallMs, minUploadRate } = upload.system.config;
  const { socket } = upload.request.raw;
  const rate = new UploadRate(minUploadRate);
  const parts = openForm(upload);
  try {
    for (;;) {
      const [before, bytes] = [performance.now(), socket.bytesRead];
      const result = await readNext(parts, uploadStallMs, upload.signal);
      rate.note(performance.now() - before, socket.bytesRead - bytes);
      if (result.done === true) return;
      yield result.value;
    }
  } catch (error) {
    throw explainForm(error);
  }
}

function openForm({ request, headers }: Upload): AsyncIterator<Multipart> {
  if (!headers.gzip) return request.parts()[Symbol.asyncIterator]();
  // The plugin reads `request.raw`: it is shown one that unpacks.
  const unpacked = Object.assign(createGunzip(), { headers: request.raw.headers, aborted: false });
  request.raw.on('error', (error) => unpacked.destroy(error)).pipe(unpacked);
  const view = Object.create(request, { raw: { value: unpacked } });
  return (request.parts as () => AsyncIterableIterator<Multipart>).call(view);
}

/** The parser's complaints are plain errors: its words are the only sign. */
const complaints =
  /multipart|terminated early|Boundary not found|Malformed part header|part header|reach (?:parts|files|fields) limit/i;

/** What went wrong while a form was read, in words for its sender; errors that are not the form's as they are. */
export function explainForm(error: unknown): unknown {
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

export function secondFile(): InputError {
  return inputError(
    'invalid_field',
    'A form brings one file: there is more than one part named file',
    'file',
  );
}
