/** Errors by who must act; a bad record is a value (`Reject`). The codes are a closed list that callers rely on: docs/errors.md. */
export const errorCodes = {
  invalid_json: 400,
  missing_field: 400,
  invalid_field: 400,
  invalid_metadata_value: 400,
  invalid_date: 400,
  invalid_range: 400,
  empty_file: 400,
  unrecognised_columns: 400,
  unsupported_format: 400,
  invalid_cursor: 400,
  unknown_segment: 400,
  unknown_event_type: 400,
  unsupported_kind: 400,
  breaks_rule: 400,
  suppressed: 400,
  invalid_api_key: 401,
  insufficient_scope: 403,
  not_found: 404,
  route_not_found: 404,
  method_not_allowed: 405,
  upload_too_slow: 408,
  job_not_cancellable: 409,
  job_not_retryable: 409,
  job_not_held: 409,
  job_not_appliable: 409,
  plan_already_applied: 409,
  job_not_undoable: 409,
  definition_locked: 409,
  segment_exists: 409,
  idempotency_conflict: 409,
  duplicate_file: 409,
  cursor_expired: 410,
  link_expired: 410,
  job_expired: 410,
  payload_too_large: 413,
  too_many_records: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  rate_limited: 429,
  headers_too_large: 431,
  internal_error: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorCodes;

export interface Problem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: string;
}

/** The caller must change the request. Carries every problem found, not only the first. */
export class InputError extends Error {
  readonly problems: readonly [Problem, ...Problem[]];

  constructor(first: Problem, ...more: readonly Problem[]) {
    const kept = keepable(first);
    super(kept.details === '' ? kept.message : `${kept.message} (${kept.details})`);
    this.name = 'InputError';
    this.problems = [kept, ...more.map(keepable)];
  }

  get status(): number {
    return errorCodes[this.problems[0].code];
  }
}

/** Messages quote what was sent, and the ledger keeps them: Postgres takes neither U+0000 nor half a surrogate pair. */
function keepable({ code, message, details }: Problem): Problem {
  return { code, message: keepableText(message), details: keepableText(details) };
}

export function keepableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

export function inputError(code: ErrorCode, message: string, details = ''): InputError {
  return new InputError({ code, message, details });
}

export function idempotencyConflict(): InputError {
  const message = 'this Idempotency-Key was used for another request in the last 24 hours';
  return inputError('idempotency_conflict', message, 'Idempotency-Key');
}

/** Something outside is away (Postgres, queue, storage, disk); the same call may work later. */
export class TransientError extends Error {
  override readonly name = 'TransientError';
}

/** The caller waits no longer for what it asked. */
export class TookTooLong extends TransientError {}

/** Somebody else did it, or it is no longer wanted: nothing to do, nothing lost. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** Asked to stop: the work is given back and no attempt is spent. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Work fails for good: trying again would not help. Nothing broke. */
export class FinalFailure extends Error {
  override readonly name = 'FinalFailure';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Our own invariant broke. Loud, and never retried into silence. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** The bytes of a file contradict its format, or use a part of it that cannot be read; the message becomes part of a sentence. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile';
}

/** The configuration is wrong; the message names the setting and its rule. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Returns an error's message; for an AggregateError (every address refused), that of its first. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
