import { messageOf, TransientError } from '../base/errors.ts';
import { isFileSystemFull } from '../files/disk.ts';

/**
 * After these errors, a retry may succeed (PostgreSQL, appendix A). Class 25 is listed for 25P03: a
 * transaction was idle for too long, such as after a pause of this process.
 */
const transientClasses = new Set(['08', '53', '57', '58', '25']);
const transientCodes = new Set(['40001', '40P01', '55P03']);
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

/** True if the database is unavailable, restarting, full or busy. */
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

/** Errors of pg without a code. "not queryable" follows a lost connection. */
const lostConnection = /Connection terminated|timeout exceeded when trying to connect|is not queryable/i;

/**
 * True for the errors of `statement_timeout` and `transaction_timeout`. After these errors, work is
 * retried a limited number of times. `lock_timeout` has another code. A cancellation by a person
 * differs only in its message. If the message is not in English, the cancellation counts as a
 * timeout.
 */
export function isTimeout(error: unknown): boolean {
  const code = codeOf(error);
  if (code === '25P04') return true;
  return code === '57014' && error instanceof Error && !/user request|recovery/.test(error.message);
}

export function describeFailure(
  error: unknown,
  code: string,
): { readonly code: string; readonly message: string } {
  const message = messageOf(error);
  if (!isTimeout(error)) return { code, message };
  const advice =
    'raise statement_timeout (PostgreSQL 17: and transaction_timeout) of the database role, or set it to 0, and retry the job';
  return { code: 'database_timeout', message: `${message}; ${advice}` };
}

export function isCancelledStatement(error: unknown): boolean {
  return codeOf(error) === '57014';
}

export function isDiskFull(error: unknown): boolean {
  const isServerFull = (each: unknown): boolean => codeOf(each) === '53100';
  return (
    isFileSystemFull(error) || isServerFull(error) || (error instanceof Error && isServerFull(error.cause))
  );
}

/** True if the database refuses the data. A record in the batch is then invalid. */
export function isDataError(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && code.length === 5 && dataClasses.has(code.slice(0, 2));
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505';
}

export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

export function isDeadlock(error: unknown): boolean {
  return codeOf(error) === '40P01';
}

/** True if the statement was composed before an environment began to use a capability. */
export function isUnknownUse(error: unknown): boolean {
  return codeOf(error) === '40001' && constraintOf(error) === 'environment_uses_pkey';
}

export function constraintOf(error: unknown): unknown {
  return error instanceof Error && 'constraint' in error ? error.constraint : undefined;
}

/**
 * True if there is no partition for a row. A failed check constraint has the same SQLSTATE, so the
 * message is checked, too.
 */
export function isMissingPartition(error: unknown): boolean {
  return (
    codeOf(error) === '23514' &&
    error instanceof Error &&
    error.message.startsWith('no partition of relation')
  );
}

/** Explains to all commands why connecting to PostgreSQL failed and what to do. */

interface ConnectionFault {
  readonly advice: string;
  readonly passes: boolean;
}

export const certificateFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet; is the clock of this machine right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'it bears another name than the host',
  ...Object.fromEntries(
    [
      'CERT_SIGNATURE_FAILURE',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ].map((code) => [code, 'no authority that this machine trusts signed it']),
  ),
};

type Advice = readonly [passes: boolean, advice: string];

const late: Advice = [
  true,
  'The database does not answer in time. Check host and port of DATABASE_URL, the server, and firewalls.',
];
const unreachable: Advice = [
  true,
  'No way leads to the host of DATABASE_URL. Check host and port, network and firewalls.',
];
const tlsRequired: Advice = [
  false,
  'The database wants TLS. Add sslmode=verify-full to DATABASE_URL (docs/hosted-postgres.md has the authorities of providers).',
];
const passwordRefused: Advice = [
  false,
  'The database refuses the password. Check user and password in DATABASE_URL; special characters are percent-encoded.',
];
const databaseUnknown: Advice = [
  false,
  'The database named in DATABASE_URL does not exist. Create it, or name another.',
];

const byCode: Readonly<Record<string, Advice>> = {
  '28P01': passwordRefused,
  '28000': [
    false,
    "The database refuses the user. Check the user in DATABASE_URL and the server's pg_hba.conf.",
  ],
  '3D000': databaseUnknown,
  '53300': [
    true,
    'The database takes no more connections. Lower WORKERS and POOL_SIZE, or raise its max_connections.',
  ],
  '57P03': [true, 'The database is starting or stopping. Wait, and try again.'],
  ECONNREFUSED: [
    true,
    'The database does not answer. Nothing listens there: is the server running, and are host and port right?',
  ],
  ENOTFOUND: [true, 'The host of DATABASE_URL or REDIS_URL is not known. Is the name spelt right?'],
  EAI_AGAIN: [
    true,
    'The host of DATABASE_URL cannot be looked up: the name server of this machine does not answer.',
  ],
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ETIMEDOUT: late,
};

/**
 * Advice by the text of the message, because messages of the driver have no code, and all messages
 * of poolers have the code 08P01. The first match is used.
 */
const byText: readonly (readonly [text: RegExp, fault: Advice])[] = [
  [
    /does not support SSL/,
    [
      false,
      'The database does not support TLS, and sslmode in DATABASE_URL wants it. Turn TLS on there, or take sslmode out on a network that you trust.',
    ],
  ],
  [
    /client password must be a (?:non-empty )?string/,
    [false, 'The database wants a password, and DATABASE_URL has none.'],
  ],
  [/no encryption|SSL off|(?:SSL|TLS(?: connection)?) required|connection is insecure/i, tlsRequired],
  [/(?:SASL|password) authentication failed|auth(?:entication)? failed|no such user/, passwordRefused],
  [/database ".*" does not exist|no such database/, databaseUnknown],
  [/no more connections allowed/, [true, 'PgBouncer takes no more connections. Raise its max_client_conn.']],
  [
    /query_wait_timeout/,
    [true, 'PgBouncer has no free session. Raise its default_pool_size (docs/hosted-postgres.md).'],
  ],
  [
    /server login|server_login_retry|cannot connect to server|server conn crashed/,
    [true, 'PgBouncer answers, and does not reach PostgreSQL behind it. Its log says why.'],
  ],
  [
    /unsupported startup parameter/,
    [
      false,
      'PgBouncer refuses a parameter of DATABASE_URL. Take it out, or see its ignore_startup_parameters.',
    ],
  ],
  [/timeout expired|timeout exceeded when trying to connect|Query read timeout/, late],
];

export function explainConnection(error: unknown): ConnectionFault | null {
  if (error instanceof AggregateError && error.errors.length > 0) return explainConnection(error.errors[0]);
  if (!(error instanceof Error)) return null;
  const code = 'code' in error ? String(error.code) : '';
  const reason = certificateFaults[code];
  if (reason !== undefined) {
    const what = `The certificate of the database is not to be trusted: ${reason}`;
    return { passes: false, advice: `${what}. Check host, sslmode and sslrootcert in DATABASE_URL.` };
  }
  // 28000: the server requires TLS, or refuses the user.
  const isVague = code === '' || code === '08P01' || code === '28000';
  const faultOfText = isVague ? byText.find(([text]) => text.test(error.message))?.[1] : undefined;
  const fault = faultOfText ?? byCode[code];
  return fault === undefined ? null : { passes: fault[0], advice: fault[1] };
}
