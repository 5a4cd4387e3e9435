/** The embedded server cannot run here; the message says why and what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name: string = 'EmbeddedPostgresError';
}

/** Another live server owns the data directory: two servers on one directory would destroy it. */
export class DataDirInUseError extends EmbeddedPostgresError {
  override readonly name = 'DataDirInUseError';
  readonly pid: number;
  readonly port: number | undefined;

  constructor(dataDir: string, server: { readonly pid: number; readonly port: number | undefined }) {
    const where = server.port === undefined ? `pid ${server.pid}` : `pid ${server.pid}, port ${server.port}`;
    super(
      `A Postgres server already runs on ${dataDir} (${where}). ` +
        'Stop the process that started it, or give this one a DATA_DIR of its own.',
    );
    this.pid = server.pid;
    this.port = server.port;
  }
}

/** True for a system error with this code ('ENOENT', 'EEXIST' …). */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
