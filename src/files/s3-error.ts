import { Fault, messageOf, TransientError } from '../base/errors.ts';
import { MissingFileError } from './file-store.ts';

/** `endpoint` is `null` for Amazon's own. */
interface Place {
  readonly bucket: string;
  readonly endpoint: string | null;
}

const missing: ReadonlySet<string> = new Set(['NoSuchKey', 'NotFound', 'NoSuchUpload']);
const wrongCredentials: ReadonlySet<string> = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
  'TokenRefreshRequired',
]);
const wrongRegion: ReadonlySet<string> = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
]);
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'TimeoutError',
  'AbortError',
]);

/**
 * Explains a failed request to an operator. Every error except a missing file is transient. The
 * SDK's error contains signed data and is dropped.
 */
export function s3Error(activity: string, place: Place, error: unknown): Error {
  if (error instanceof Fault || error instanceof TransientError || error instanceof MissingFileError)
    return error;
  const name = nameOf(error);
  const cause = new Error(`${name}: ${messageOf(error)}`);
  if (missing.has(name)) return new MissingFileError(`${activity}: the file is gone`, { cause });
  return new TransientError(`S3 storage, ${activity}: ${explain(name, place, error, cause.message)}`, {
    cause,
  });
}

/** Code of a network error, or the name, which is S3's code. */
export function nameOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return nameOf(error.errors[0]);
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === 'string' && unreachable.has(code)) return code;
  return typeof name === 'string' && name !== 'Error' ? name : String(code ?? 'Error');
}

function explain(name: string, { bucket, endpoint }: Place, error: unknown, message: string): string {
  const status =
    (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode ?? 0;
  const where = endpoint ?? "Amazon's S3";
  if (name === 'NoSuchBucket')
    return `there is no bucket ${bucket} at ${where}; create it, or correct STORAGE_URL`;
  if (name === 'CredentialsProviderError')
    return 'no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role';
  if (wrongCredentials.has(name))
    return `the credentials are wrong or have expired (${name}); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN`;
  if (wrongRegion.has(name) || status === 301)
    return `bucket ${bucket} is in another region (${name}); set region in STORAGE_URL`;
  if (name === 'AccessDenied' || status === 403)
    return `access to bucket ${bucket} is denied; allow what docs/storage.md lists`;
  if (message.includes('Region is missing')) return 'no region is set; add region=… to STORAGE_URL';
  if (unreachable.has(name))
    return `${where} cannot be reached or does not answer (${name}); is it running, and is STORAGE_URL right?`;
  return status === 0 ? message : `${message} (status ${status})`;
}
