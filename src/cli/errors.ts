import { ConfigError, InputError, Interrupted, TransientError } from '../domain/errors.ts';
import { withFlags } from '../domain/source-options.ts';
import { embeddedPostgres } from '../embedded-postgres/embedded-postgres.ts';
import { isTransient } from '../postgres/sqlstate.ts';

/** Scripts rely on these. */
export const exitCodes = {
  ok: 0,
  /** It was tried and did not succeed. */
  failed: 1,
  /** The command line or the file is at fault: the same call will fail again. */
  usage: 2,
  /** Stopped by Ctrl-C, as shells report it. */
  interrupted: 130,
} as const;

/** The command line is at fault; the message says what to write instead. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** It was tried and did not succeed, and the message is all there is to say. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
}

/** Codes of Node for an untrusted certificate: unknown issuer, expired, or for another name. */
export const certificateErrors = [
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
] as const;

export interface Explanation {
  /** What happened and what to do about it. */
  readonly message: string;
  readonly exitCode: number;
  /** An unexpected error: LOG_LEVEL=debug shows its stack. */
  readonly unforeseen: boolean;
}

/** Input errors that the same call would meet again. */
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

/** By the code that the system or PostgreSQL gave. */
const knownCodes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The database does not answer. Is the server running, and is DATABASE_URL right?',
  ENOTFOUND: 'The host of DATABASE_URL or REDIS_URL is not known. Is the name spelt right?',
  ETIMEDOUT: 'The database does not answer in time. Is the server running, and is DATABASE_URL right?',
  '28P01': 'The database refuses the password. Check the user and the password in DATABASE_URL.',
  '28000': "The database refuses the user. Check the user in DATABASE_URL and the server's pg_hba.conf.",
  '3D000': 'The database named in DATABASE_URL does not exist. Create it, or name another.',
  '42501':
    'The user of DATABASE_URL may not do that. sluice needs to create and use the schemas `sluice` and `bullmq`.',
  '25006':
    'The database takes no writes now: it is a replica or read-only, or `sluice move` is copying it. Try again later.',
  '53300':
    'The database takes no more connections. Lower POOL_SIZE and WORKER_POOL_SIZE, or raise its max_connections.',
  ...Object.fromEntries(
    certificateErrors.map((code) => [
      code,
      'The certificate of the database is not to be trusted. Check sslmode and sslrootcert in DATABASE_URL, and that the certificate bears the name of the host.',
    ]),
  ),
  ENOSPC: 'The disk is full. Make room and try again.',
  '53100': 'The disk of the database is full. Make room there and try again.',
};

/** One clear sentence or two for whatever went wrong, and the exit code it means. */
export function explainError(error: unknown): Explanation {
  if (error instanceof ConfigError) return usage(`The configuration is wrong.\n${error.message}`);
  if (error instanceof UsageError) return usage(error.message);
  if (error instanceof CommandFailed) return failed(error.message);
  if (error instanceof InputError) return explainInput(error);
  if (error instanceof Interrupted)
    return { message: error.message, exitCode: exitCodes.ok, unforeseen: false };
  if (embeddedPostgres.isRefusal(error) || error instanceof TransientError) return failed(error.message);
  const code = codeOf(error);
  if (code === 'EADDRINUSE') return failed(portTaken(error));
  if (code === 'EACCES' || code === 'EPERM') return failed(notAllowed(error));
  const known = knownCodes[code];
  if (known !== undefined) return failed(known);
  if (isTransient(error)) {
    // A server or pooler that still answers gives the reason why it takes no connection.
    const said = code === '' ? '' : ` (${messageOf(error)})`;
    return failed(`The database went away${said}. Is its server still running? Then try again.`);
  }
  return { message: messageOf(error), exitCode: exitCodes.failed, unforeseen: true };
}

function explainInput(error: InputError): Explanation {
  const message = error.problems
    .map((problem) => (problem.details === '' ? problem.message : `${problem.message} (${problem.details})`))
    // The message names the HTTP parameter; here it is a flag.
    .map(withFlags)
    .join('\n');
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

/** Of an AggregateError (every address of a host refused), the first. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}

function usage(message: string): Explanation {
  return { message, exitCode: exitCodes.usage, unforeseen: false };
}

function failed(message: string): Explanation {
  return { message, exitCode: exitCodes.failed, unforeseen: false };
}
