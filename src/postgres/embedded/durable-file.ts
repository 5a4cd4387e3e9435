import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from './errors.ts';

/** Replaces `path` by a whole new file that only its owner can read: a reader sees the old text or the new. */
export async function replacePrivateFile(path: string, text: string): Promise<void> {
  const draft = await writeDraft(path, text);
  await rename(draft, path);
}

/** Creates `path` with `text` unless it exists already; it appears whole and survives a power cut. */
export async function createPrivateFile(path: string, text: string): Promise<void> {
  const draft = await writeDraft(path, text);
  try {
    await link(draft, path);
    await syncFolder(dirname(path));
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Makes a rename or link within the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  // Windows cannot open a folder, and its file system journals renames.
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function writeDraft(path: string, text: string): Promise<string> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await giveToFolderOwner(file, dirname(path));
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    // A disk that is full would have one more at every try.
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
  return draft;
}

/** What root writes into somebody's folder is that somebody's: they may start without root the next time. */
async function giveToFolderOwner(file: FileHandle, folder: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(folder);
  await file.chown(uid, gid);
}
