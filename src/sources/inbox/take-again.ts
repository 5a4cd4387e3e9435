import { link, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { inputError } from '../../domain/errors.ts';
import type { InboxFile } from '../../domain/inbox.ts';
import { codeOf, syncFolder } from '../../files/disk.ts';
import type { Database } from '../../postgres/database.ts';
import { findFailedInboxFile } from '../../postgres/stores/inbox.ts';
import { statOf } from './claimed-file.ts';
import { findInbox } from './inbox.ts';

/**
 * Puts a file that failed back to where it was dropped, under its name, so that whoever watches the inbox takes it in anew. Its
 * receipt stays. Throws `InputError` `not_found`: there is no such file, or somebody has taken it away, or another one of that
 * name lies there now.
 */
export async function takeInAgain(
  { db }: { readonly db: Database },
  directory: string | null,
  environmentId: number,
  fileId: string,
): Promise<InboxFile> {
  const inbox = directory === null ? null : await findInbox(directory);
  const file = inbox === null ? null : await findFailedInboxFile(db, inbox.id, environmentId, fileId);
  if (inbox === null || file === null || file.placedAs === null) {
    throw inputError('not_found', 'there is no such failed file', `file_id: ${fileId}`);
  }
  const own = join(inbox.path, file.environment);
  const folder = join(own, file.folder);
  await moveWithoutOverwriting(join(own, 'failed', file.placedAs), join(folder, file.name));
  await syncFolder(folder);
  return file;
}

/**
 * A link fails where something of the name is there; where a file system has none, renaming is the best there is. Who is killed
 * between the two steps leaves a file with both names, which nobody takes; doing it again mends that.
 */
async function moveWithoutOverwriting(from: string, to: string): Promise<void> {
  try {
    await link(from, to).catch(async (error: unknown) => {
      if (codeOf(error) !== 'EEXIST' || !(await areOneFile(from, to))) throw error;
    });
    await rm(from);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') throw inputError('not_found', 'another file of that name lies in the inbox', to);
    if (code === 'ENOENT') throw inputError('not_found', 'the file is not in its place any more', from);
    if (code !== 'EPERM' && code !== 'ENOTSUP') throw error;
    await rename(from, to);
  }
}

async function areOneFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([statOf(one), statOf(other)]);
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}
