import { errorCodes, InputError, type Problem, TransientError } from '../domain/errors.ts';
import { isCancelledStatement, isDiskFull, isTransient } from '../postgres/sqlstate.ts';
import { noSuchAddress } from './plugins/not-found.ts';

/** What a caller is told of an error. */
export interface Explained {
  readonly status: number;
  readonly problems: readonly Problem[];
}

/** Fastify's and its plugins' own errors that a caller can cause, by their codes. */
const frameworkErrors: Readonly<Record<string, Problem['code']>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_json',
  FST_ERR_BAD_URL: 'invalid_field',
  FST_ERR_MAX_PARAM_LENGTH: 'route_not_found',
  FST_ERR_VALIDATION: 'invalid_field',
};

/** Of errors of plugins that have a status and no code that we know: paths that no file of theirs can have. */
const pathStatuses: ReadonlySet<unknown> = new Set([400, 403, 404]);

const tookTooLong = 'The database took too long for this; ask for less at a time, or try again later';

/**
 * The one place that turns errors into answers: what the caller must change, what is away for the moment, and, for
 * everything else, nothing but the fact. No text of an error that is not meant for callers gets out.
 */
export function explainError(error: unknown): Explained {
  if (error instanceof InputError) return { status: error.status, problems: error.problems };
  const code = codeOf(error);
  const known = frameworkErrors[code];
  if (known !== undefined) return explained(known, (error as Error).message);
  if (pathStatuses.has(statusOf(error))) return explained('route_not_found', noSuchAddress);
  if (isDiskFull(error)) return diskFull(code === '53100' ? 'the database' : 'the files');
  if (isCancelledStatement(error)) return explained('unavailable', tookTooLong);
  if (error instanceof TransientError || isTransient(error)) {
    return explained('unavailable', 'The service cannot do this at the moment; try again later');
  }
  return explained('internal_error', 'The service failed; the error is in its log under the request id');
}

/** `of`: whose disk it is. */
export function diskFull(of: string): Explained {
  return explained('unavailable', 'The disk is full; try again later', `disk of ${of}: no room left`);
}

function explained(code: Problem['code'], message: string, details = ''): Explained {
  return { status: errorCodes[code], problems: [{ code, message, details }] };
}

function statusOf(error: unknown): unknown {
  return (error as { statusCode?: unknown } | null | undefined)?.statusCode;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}
