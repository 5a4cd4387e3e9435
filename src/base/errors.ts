import { type Naming, type Part, type Sentence, write } from './sentence.ts';

/**
 * HTTP status of each error code. Callers rely on the codes. A bad record is a `Reject`, not an
 * error.
 */
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
  /**
   * The parts of the message, so that `messageIn` can rename options. Missing if there are no
   * options.
   */
  readonly parts?: readonly Part[];
}

export interface StatedProblem extends Omit<Problem, 'message'> {
  readonly message: Sentence;
}

/** Thrown with all problems of a request. */
export class InputError extends Error {
  readonly problems: readonly [Problem, ...Problem[]];

  constructor(first: StatedProblem, ...more: readonly StatedProblem[]) {
    const problem = keepable(first);
    super(explainProblem(problem));
    this.name = 'InputError';
    this.problems = [problem, ...more.map(keepable)];
  }

  get status(): number {
    return errorCodes[this.problems[0].code];
  }
}

/**
 * Makes the texts storable: messages quote input, and PostgreSQL rejects U+0000 and lone
 * surrogates.
 */
function keepable({ code, message, details, parts }: StatedProblem): Problem {
  const sentence = parts ?? message;
  const problem = { code, message: keepableText(write(sentence)), details: keepableText(details) };
  return typeof sentence === 'string' ? problem : { ...problem, parts: sentence };
}

export function messageIn({ message, parts }: Problem, naming: Naming): string {
  return parts === undefined ? message : keepableText(write(parts, naming));
}

export function explainProblem(problem: Problem, naming?: Naming): string {
  const message = naming === undefined ? problem.message : messageIn(problem, naming);
  return problem.details === '' ? message : `${message} (${problem.details})`;
}

export function keepableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd');
}

export function inputError(code: ErrorCode, message: Sentence, details = ''): InputError {
  return new InputError({ code, message, details });
}

export function idempotencyConflict(): InputError {
  const message = 'Idempotency-Key was used for another request in the last 24 hours';
  return inputError('idempotency_conflict', message, 'Idempotency-Key');
}

/**
 * Thrown if PostgreSQL, the queue, storage or a disk is unavailable. The call may succeed later.
 */
export class TransientError extends Error {
  override readonly name = 'TransientError';
}

export class TookTooLong extends TransientError {}

/** Thrown if another attempt has done the work, or if the work is no longer wanted. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError';
}

/** Thrown if the process is stopping. The work is released, and the attempt does not count. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Thrown if no retry can succeed and no part of sluice is at fault. */
export class FinalFailure extends Error {
  override readonly name = 'FinalFailure';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Thrown if an invariant is broken: always a bug in sluice. A task that throws it is not retried.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/**
 * Thrown if a file violates its format or uses an unsupported part of it. Callers put `The workbook
 * is damaged:` or the like before the message.
 */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile';
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Returns the message of an error. For an AggregateError, every address refused the connection, and
 * the first message is returned.
 */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
