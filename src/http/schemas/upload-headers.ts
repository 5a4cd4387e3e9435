import type { IncomingHttpHeaders } from 'node:http';
import { inputError } from '../../domain/errors.ts';

/** Room for boundaries, part headers and fields around the file of a form. */
const formOverheadBytes = 1024 * 1024;

export interface UploadHeaders {
  /** Media type in lower case, without parameters; empty if there is none. */
  readonly mediaType: string;
  readonly gzip: boolean;
  readonly idempotencyKey: string | null;
}

/**
 * What the headers of an upload say, checked before the body is asked for. `accepted`: media types besides forms.
 * @throws InputError `unsupported_media_type`, `payload_too_large`, `invalid_field`.
 */
export function readUploadHeaders(
  headers: IncomingHttpHeaders,
  accepted: readonly string[],
  maxUploadBytes: number,
): UploadHeaders {
  const mediaType = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (mediaType !== 'multipart/form-data' && mediaType !== '' && !accepted.includes(mediaType)) {
    const message = `Send multipart/form-data with a part named file, or ${accepted.join(', ')}`;
    throw inputError('unsupported_media_type', message, `Content-Type: ${mediaType}`);
  }
  const gzip = readEncoding(headers['content-encoding']);
  if (Number(headers['content-length'] ?? 0) > maxUploadBytes + formOverheadBytes) {
    const details = `Content-Length: ${headers['content-length']}`;
    throw inputError('payload_too_large', `An upload may have ${maxUploadBytes} bytes`, details);
  }
  return { mediaType, gzip, idempotencyKey: readIdempotencyKey(headers['idempotency-key']) };
}

/** Whether a body comes as gzip. @throws InputError `unsupported_media_type`. */
export function readEncoding(header: string | undefined): boolean {
  const encoding = header?.trim().toLowerCase() ?? '';
  if (encoding === 'gzip' || encoding === 'x-gzip') return true;
  if (encoding === '' || encoding === 'identity') return false;
  throw inputError(
    'unsupported_media_type',
    'Send the body as it is, or gzip',
    `Content-Encoding: ${encoding}`,
  );
}

/** @throws InputError `invalid_field`. */
export function readIdempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header === 'string' && /^[\x20-\x7e]{1,255}$/.test(header)) return header;
  const message = 'An Idempotency-Key has 1 to 255 printable ASCII characters';
  throw inputError('invalid_field', message, 'Idempotency-Key');
}
