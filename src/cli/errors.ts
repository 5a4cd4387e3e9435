import {
  ConfigError,
  explainProblem,
  InputError,
  Interrupted,
  messageOf,
  TransientError,
} from '../base/errors.ts';
import type { OptionTable } from '../domain/option-table.ts';
import { MissingFileError } from '../files/file-store.ts';
import { embeddedPostgres } from '../postgres/embedded/embedded-postgres.ts';
import { explainConnection, isTransient } from '../postgres/sqlstate.ts';

/** Scripts rely on these codes. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  /** The same call would fail again. */
  usage: 2,
  /** Ended by Ctrl-C. Shells use the same code. */
  interrupted: 130,
} as const;

/** Returns the exit code for a job, which may still be running. */
export function exitCodeOf(job: { readonly status: string; readonly endedAt: Date | null }): number {
  if (job.status === 'completed') return exitCodes.ok;
  return job.endedAt === null && job.status !== 'held' ? exitCodes.interrupted : exitCodes.failed;
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An error whose message explains the failure completely, so that no stack is needed. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

export interface Explanation {
  readonly message: string;
  readonly exitCode: number;
  /** LOG_LEVEL=debug shows the stack, which may help. */
  readonly unforeseen: boolean;
}

/** Codes of errors that the same call would cause again. */
const usageCodes = new Set([
  'empty_file',
  'unrecognised_columns',
  'unsupported_format',
  'invalid_json',
  'invalid_field',
  'missing_field',
  'invalid_date',
  'invalid_range',
  'unknown_segment',
  'unknown_event_type',
  'payload_too_large',
  'too_many_records',
]);

const adviceByCode: Readonly<Record<string, string>> = {
  '42501':
    'The user of DATABASE_URL may not do that. sluice needs to create and use the schemas `sluice` and `bullmq`.',
  '25006': 'The database takes no writes now: it is a replica or read-only. Try again later.',
  ENOSPC: 'The disk is full. Make room and try again.',
  '53100': 'The disk of the database is full. Make room there and try again.',
};

export function explainError(error: unknown, table: OptionTable): Explanation {
  if (error instanceof ConfigError) return usage(`The configuration is wrong.\n${error.message}`);
  if (error instanceof UsageError) return usage(error.message);
  if (error instanceof CommandFailed) return failed(error.message);
  if (error instanceof InputError) return explainInput(error, table);
  if (error instanceof Interrupted)
    return { message: error.message, exitCode: exitCodes.ok, unforeseen: false };
  if (
    embeddedPostgres.isRefusal(error) ||
    error instanceof TransientError ||
    error instanceof MissingFileError
  )
    return failed(error.message);
  const code = codeOf(error);
  if (code === 'EADDRINUSE') return failed(portTaken(error));
  if (code === 'EACCES' || code === 'EPERM') return failed(notAllowed(error));
  const advice = adviceByCode[code] ?? explainConnection(error)?.advice;
  if (advice !== undefined) return failed(advice);
  if (isTransient(error)) {
    // If a server or pooler has responded, its message states the reason.
    const reason = code === '' ? '' : ` (${messageOf(error)})`;
    return failed(`The database went away${reason}. Is its server still running? Then try again.`);
  }
  return { message: messageOf(error), exitCode: exitCodes.failed, unforeseen: true };
}

function explainInput(error: InputError, table: OptionTable): Explanation {
  const message = error.problems.map((problem) => explainProblem(problem, table.flags)).join('\n');
  return usageCodes.has(error.problems[0].code) ? usage(message) : failed(message);
}

function portTaken(error: unknown): string {
  const where = error instanceof Error && 'port' in error ? `Port ${String(error.port)}` : 'The port';
  return `${where} is taken by another program. Choose another with PORT, or PORT=0 for any free one.`;
}

function notAllowed(error: unknown): string {
  const where = error instanceof Error && 'path' in error ? ` ${String(error.path)}` : '';
  return `This user may not read or write${where}. Change its owner, or name another place (DATA_DIR for the data).`;
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function usage(message: string): Explanation {
  return { message, exitCode: exitCodes.usage, unforeseen: false };
}

function failed(message: string): Explanation {
  return { message, exitCode: exitCodes.failed, unforeseen: false };
}
