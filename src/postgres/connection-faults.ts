/** Names what keeps a connection to PostgreSQL from coming about, and what to do about it: for `doctor` and for every command. */

export interface ConnectionFault {
  /** The problem and its remedy, in one or two sentences. */
  readonly advice: string;
  /** False: waiting does not mend it. */
  readonly passes: boolean;
}

/** Codes of Node for an untrusted certificate, each with the reason. */
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

const tlsRequired =
  'The database wants TLS. Add sslmode=verify-full to DATABASE_URL (docs/hosted-postgres.md has the authorities of providers).';
const passwordRefused =
  'The database refuses the password. Check the user and the password in DATABASE_URL; special characters in it are percent-encoded.';
const databaseUnknown = 'The database named in DATABASE_URL does not exist. Create it, or name another.';
const tooMany =
  'The database takes no more connections. Lower POOL_SIZE and WORKER_POOL_SIZE, or raise its max_connections.';
const unreachable =
  'No way leads to the host of DATABASE_URL. Check host and port, and the network and firewalls between.';
const late =
  'The database does not answer in time. Check host and port of DATABASE_URL, whether the server is running, and firewalls between.';

const byCode: Readonly<Record<string, ConnectionFault>> = {
  '28P01': lasting(passwordRefused),
  '28000': lasting(
    "The database refuses the user. Check the user in DATABASE_URL and the server's pg_hba.conf.",
  ),
  '3D000': lasting(databaseUnknown),
  '53300': passing(tooMany),
  '57P03': passing('The database is starting or stopping. Wait, and try again.'),
  ECONNREFUSED: passing(
    'The database does not answer. Nothing listens there: is the server running, and are host and port of DATABASE_URL right?',
  ),
  ENOTFOUND: passing('The host of DATABASE_URL or REDIS_URL is not known. Is the name spelt right?'),
  EAI_AGAIN: passing(
    'The host of DATABASE_URL cannot be looked up: the name server of this machine does not answer.',
  ),
  EHOSTUNREACH: passing(unreachable),
  ENETUNREACH: passing(unreachable),
  ETIMEDOUT: passing(late),
};

/** Texts of the driver, which gives no code, and of poolers, which give 08P01 for everything. First match wins. */
const byText: readonly (readonly [text: RegExp, fault: ConnectionFault])[] = [
  [
    /does not support SSL/,
    lasting(
      'The database does not support TLS, and sslmode in DATABASE_URL wants it. Turn TLS on there, or take sslmode out on a network that you trust.',
    ),
  ],
  [
    /client password must be a (?:non-empty )?string/,
    lasting('The database wants a password, and DATABASE_URL has none.'),
  ],
  [
    /no encryption|SSL off|(?:SSL|TLS(?: connection)?) required|connection is insecure/i,
    lasting(tlsRequired),
  ],
  [
    /SASL authentication failed|password authentication failed|auth(?:entication)? failed|no such user/,
    lasting(passwordRefused),
  ],
  [/database ".*" does not exist|no such database/, lasting(databaseUnknown)],
  [
    /no more connections allowed/,
    passing(
      'PgBouncer takes no more connections. Raise its max_client_conn, or lower POOL_SIZE and WORKER_POOL_SIZE.',
    ),
  ],
  [
    /query_wait_timeout/,
    passing(
      'PgBouncer has no free session. Raise its default_pool_size, or lower POOL_SIZE and WORKER_POOL_SIZE (docs/hosted-postgres.md).',
    ),
  ],
  [
    /server login|server_login_retry|cannot connect to server|server conn crashed/,
    passing(
      "PgBouncer answers, and does not reach PostgreSQL behind it. Check that server, and host and password in PgBouncer's [databases]; its log says why.",
    ),
  ],
  [
    /unsupported startup parameter/,
    lasting(
      "PgBouncer refuses a parameter of DATABASE_URL. Take it out, or name it in PgBouncer's ignore_startup_parameters.",
    ),
  ],
  [/timeout expired|timeout exceeded when trying to connect|Query read timeout/, passing(late)],
];

/** Returns the fault that `error` tells of, or null if it is none of a connection. */
export function explainConnection(error: unknown): ConnectionFault | null {
  if (error instanceof AggregateError && error.errors.length > 0) return explainConnection(error.errors[0]);
  if (!(error instanceof Error)) return null;
  const code = 'code' in error ? String(error.code) : '';
  const reason = certificateFaults[code];
  if (reason !== undefined) {
    return lasting(
      `The certificate of the database is not to be trusted: ${reason}. Check host, sslmode and sslrootcert in DATABASE_URL.`,
    );
  }
  // A server that takes nobody without TLS has the code of one that takes not this user.
  if (code === '' || code === '08P01' || code === '28000') {
    const fault = byText.find(([text]) => text.test(error.message))?.[1];
    if (fault !== undefined) return fault;
  }
  return byCode[code] ?? null;
}

function lasting(advice: string): ConnectionFault {
  return { advice, passes: false };
}

function passing(advice: string): ConnectionFault {
  return { advice, passes: true };
}
