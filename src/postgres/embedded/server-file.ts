import { readFile, rm } from 'node:fs/promises';
import { replacePrivateFile } from './durable-file.ts';
import { hasCode } from './errors.ts';
import type { Layout } from './layout.ts';

/** `server.json`: how other processes of this machine find the running server. */
export interface ServerFile {
  readonly pid: number;
  /** The Node process that started the server and takes it along when it dies. */
  readonly ownerPid: number;
  readonly port: number;
  readonly majorVersion: string;
  readonly passwordFile: string;
}

export async function writeServerFile(layout: Layout, server: ServerFile): Promise<void> {
  await replacePrivateFile(layout.serverFile, `${JSON.stringify(server, null, 2)}\n`);
}

/** What the file says, which may be stale; undefined when there is none or it cannot be understood. */
export async function readServerFile(layout: Layout): Promise<ServerFile | undefined> {
  try {
    return JSON.parse(await readFile(layout.serverFile, 'utf8')) as ServerFile;
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR') || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Removes the file if it still speaks of this server, not of one started since. */
export async function removeServerFile(layout: Layout, pid: number): Promise<void> {
  if ((await readServerFile(layout))?.pid === pid) await rm(layout.serverFile, { force: true });
}
