import { constants, type FileHandle, open, rename, stat } from 'node:fs/promises';
import type { Account } from './account.ts';
import { hasCode } from './errors.ts';
import type { Layout } from './layout.ts';

const maxBytes = 10 * 1024 * 1024;
const checkIntervalMs = 10 * 60 * 1000;
const tailBytes = 8_192;

/** The server's log, open for appending, and where this start's part of it begins. */
export interface ServerLog {
  readonly file: FileHandle;
  readonly startsAt: number;
}

/** Opens the log; one that has grown large makes room by becoming `postgres.log.1`. */
export async function openServerLog(layout: Layout, account: Account | undefined): Promise<ServerLog> {
  if ((await sizeOf(layout.serverLog)) > maxBytes) await rename(layout.serverLog, `${layout.serverLog}.1`);
  const file = await openForAppending(layout);
  // The owner of the data may start without root the next time, and must then be able to append.
  if (account !== undefined) await file.chown(account.uid, account.gid);
  return { file, startsAt: (await file.stat()).size };
}

/** What the server has written since `startsAt`, at most the last few kilobytes. */
export async function readServerLog(layout: Layout, startsAt: number): Promise<string> {
  const file = await open(layout.serverLog, 'r');
  try {
    const { size } = await file.stat();
    const from = Math.max(startsAt > size ? 0 : startsAt, size - tailBytes);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString('utf8', 0, bytesRead).trim();
  } finally {
    await file.close();
  }
}

/**
 * Keeps the log bounded while the server runs, for as long as months. The server appends, so emptying the
 * file under it is safe. Returns how to end the watch.
 */
export function boundServerLog(layout: Layout): () => void {
  const check = async () => {
    if ((await sizeOf(layout.serverLog)) <= maxBytes) return;
    const file = await openForAppending(layout);
    await file.truncate().finally(() => file.close());
  };
  const timer = setInterval(() => void check().catch(() => undefined), checkIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Follows no symbolic link: in somebody's folder it could lead root to a file that is not a log. */
function openForAppending(layout: Layout): Promise<FileHandle> {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  return open(layout.serverLog, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0;
    throw error;
  }
}
