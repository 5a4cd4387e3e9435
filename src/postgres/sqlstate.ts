import { TransientError } from '../domain/errors.ts';
import { isFileSystemFull } from '../files/disk.ts';

/** Translates PostgreSQL's error codes (PostgreSQL documentation, appendix A). */
const transientClasses = new Set(['08', '53', '57', '58', '25']);
const transientCodes = new Set(['40001', '40P01', '55P03']);
/** 25 is here for 25P03: our session idled in a transaction, as a paused process does. */
const dataClasses = new Set(['22', '23', '54']);
const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'EAI_AGAIN',
]);

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Tells whether the database is away, restarting, full or busy: the same work may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof TransientError) return true;
  const code = codeOf(error);
  if (code !== undefined) {
    return (
      networkCodes.has(code) ||
      transientCodes.has(code) ||
      (code.length === 5 && transientClasses.has(code.slice(0, 2)))
    );
  }
  return error instanceof Error && lostConnection.test(error.message);
}

/** pg says it without a code. Not queryable: what it says of a statement sent after the connection was lost. */
const lostConnection = /Connection terminated|timeout exceeded when trying to connect|is not queryable/i;

/**
 * Tells whether `statement_timeout` or `transaction_timeout` ended the work. The same work meets the same limit, so it is tried again
 * only so often; a wait for a lock (`lock_timeout`) is not meant. A cancel by a person has the code of `statement_timeout` and another
 * text; where the server speaks another language it counts as a timeout.
 */
export function isTimeout(error: unknown): boolean {
  const code = codeOf(error);
  if (code === '25P04') return true;
  return code === '57014' && error instanceof Error && !/user request|recovery/.test(error.message);
}

/** Describes, for the job record, why work is given up after its last try. */
export function describeFailure(
  error: unknown,
  code: string,
): { readonly code: string; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error);
  if (!isTimeout(error)) return { code, message };
  const advice =
    'raise statement_timeout (PostgreSQL 17: and transaction_timeout) of the database role, or set it to 0, and retry the job';
  return { code: 'database_timeout', message: `${message}; ${advice}` };
}

/** Tells whether a statement ran into `statement_timeout`, or was cancelled. */
export function isCancelledStatement(error: unknown): boolean {
  return codeOf(error) === '57014';
}

/** Tells whether a disk has no room left: the server's, or that of this process. */
export function isDiskFull(error: unknown): boolean {
  const ofServer = (each: unknown): boolean => codeOf(each) === '53100';
  return isFileSystemFull(error) || ofServer(error) || (error instanceof Error && ofServer(error.cause));
}

/** Tells whether the database refuses the data itself: some record of the batch is at fault. */
export function isDataError(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && code.length === 5 && dataClasses.has(code.slice(0, 2));
}

/** Tells whether the server does not know a name, such as that of a time zone. */
export function isUnknownName(error: unknown): boolean {
  return codeOf(error) === '22023';
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

/** Tells whether `lock_timeout` ended the wait for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

export function isDeadlock(error: unknown): boolean {
  return codeOf(error) === '40P01';
}

/** Tells whether a row has no partition. A broken check constraint has the same code. */
export function isMissingPartition(error: unknown): boolean {
  return (
    codeOf(error) === '23514' &&
    error instanceof Error &&
    error.message.startsWith('no partition of relation')
  );
}

/** Tells whether a table, column or schema is missing: the database was migrated by another version, or never. */
export function isMissingTable(error: unknown): boolean {
  return ['42P01', '42703', '3F000'].includes(codeOf(error) ?? '');
}
