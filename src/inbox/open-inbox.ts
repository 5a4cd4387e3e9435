import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, mkdir, open, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TransientError } from '../domain/errors.ts';
import { codeOf } from '../files/disk.ts';
import type { Inbox } from './context.ts';

const idName = '.sluice-inbox';
const idPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * A function that finds the inbox and its id. It makes the directory once, and never again: one that goes missing later
 * was taken away, or is a mount that was lost. Throws what the file system says then.
 */
export function createInboxOpener(directory: string): () => Promise<Inbox> {
  let made = false;
  return async () => {
    if (!made) await mkdir(directory, { recursive: true });
    made = true;
    const path = await realpath(directory);
    return { path, id: await readId(join(path, idName)) };
  };
}

/** The inbox as it is; null if nobody has watched it yet. */
export async function findInbox(directory: string): Promise<Inbox | null> {
  try {
    const path = await realpath(directory);
    return { path, id: checked(await readFile(join(path, idName), 'utf8')) };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

async function readId(path: string): Promise<string> {
  try {
    return checked(await readFile(path, 'utf8'));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
  await createId(path);
  return checked(await readFile(path, 'utf8'));
}

function checked(text: string): string {
  const id = text.trim();
  if (idPattern.test(id)) return id;
  throw new TransientError(`${idName} of the inbox holds no id; remove it, and one is made`);
}

/** Appears whole; whoever comes second takes the first one's. */
async function createId(path: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, 'wx', 0o644);
  try {
    await file.writeFile(`${randomUUID()}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    // Not every file system has links.
    await link(draft, path).catch((error: unknown) => {
      if (codeOf(error) === 'EEXIST') throw error;
      return copyFile(draft, path, constants.COPYFILE_EXCL);
    });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
