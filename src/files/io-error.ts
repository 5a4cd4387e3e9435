import { TransientError } from '../domain/errors.ts';
import { MissingFileError } from './file-store.ts';

const diskFull: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/**
 * What a failed call of the file system means to whoever asked for it. Everything but a missing file is taken to be
 * something that an operator mends (space, permissions, a mount), after which the same call works.
 */
export function ioError(doing: string, cause: unknown): Error {
  const code = codeOf(cause);
  if (code === 'ENOENT') return new MissingFileError(`${doing}: the file is gone`, { cause });
  if (diskFull.has(code)) return new TransientError(`disk full while ${doing} (${code})`, { cause });
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new TransientError(`file system error while ${doing}: ${reason}`, { cause });
}

/** The `code` of a system error, such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null | undefined)?.code;
}
