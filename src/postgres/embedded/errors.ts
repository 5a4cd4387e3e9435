/** The embedded server cannot run here; the message says why and what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name: string = 'EmbeddedPostgresError';
}

/** Another live server owns the data directory: two servers on one directory would destroy it. */
export class DataDirInUseError extends EmbeddedPostgresError {
  override readonly name = 'DataDirInUseError';

  /** `ownerPid` is the process that started the server, undefined if that is not known; `pid` the server itself. */
  constructor(
    dataDir: string,
    { pid, ownerPid }: { readonly pid: number; readonly ownerPid: number | undefined },
  ) {
    const owner =
      ownerPid === undefined
        ? `A PostgreSQL server (process ${pid}) runs on ${dataDir} already. Stop it`
        : `sluice runs on ${dataDir} already: process ${ownerPid}. Stop that one (kill ${ownerPid})`;
    super(`${owner}, or give this one a folder of its own: --data-dir <folder> (DATA_DIR).`);
  }
}

/** True for a system error with this code ('ENOENT', 'EEXIST' …). */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** What PostgreSQL's programs write when there is no room. */
export function isDiskFull(output: string): boolean {
  return /No space left on device|Disk quota exceeded/.test(output);
}

export function diskFull(folder: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `The disk of ${folder} is full. Make room (a new database takes some 100 MB), or choose another DATA_DIR (--data-dir).`,
  );
}
