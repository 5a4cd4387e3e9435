import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Writes a file that appears whole, with its bytes on disk; replaces what was there under that name. `draftFolder` is
 * where it is written first: on the same file system.
 */
export async function writeWhole(
  folder: string,
  name: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  draftFolder = folder,
): Promise<void> {
  const draft = join(draftFolder, `.${randomUUID()}.draft`);
  try {
    const file = await open(draft, 'wx', 0o644);
    try {
      for await (const bytes of content) await file.appendFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(folder, name));
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
