import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { uuidv7 } from 'uuidv7';
import { TransientError } from '../domain/errors.ts';

const sample = Buffer.from('can this be written?\n');

/**
 * A function that throws `TransientError` unless a file can be written into `folder`. It makes the folder once, as a
 * first upload would, and never again: one that goes missing later was taken away with the files in it, or is a mount
 * that was lost, and somebody should know.
 */
export function createFolderCheck(folder: string): () => Promise<void> {
  let made = false;
  return async () => {
    try {
      if (!made) await mkdir(folder, { recursive: true });
      made = true;
      await writeSample(path.join(folder, uuidv7()));
    } catch (cause) {
      throw new TransientError('files cannot be stored', { cause });
    }
  };
}

async function writeSample(file: string): Promise<void> {
  const handle = await open(file, 'wx', 0o640);
  try {
    await handle.write(sample);
  } finally {
    await handle.close();
    await rm(file, { force: true });
  }
}
