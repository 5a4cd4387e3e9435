/** What the shell is told. Scripts rely on these. */
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
