import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../files/disk.ts';
import { openInboxFiles } from '../postgres/stores/inbox-files.ts';
import { claimPaths, putBack, statOf } from './claimed-file.ts';
import type { Inbox, InboxContext } from './context.ts';
import { claimedFolder } from './names.ts';

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Gives claimed files that the ledger knows nothing of their place back, to be taken anew: the database is another one, or
 * was restored from before they were claimed, and then their loads are gone with their rows.
 */
export async function putBackOrphans(
  context: InboxContext,
  inbox: Inbox,
  environment: string,
  folder: '' | 'users' | 'companies',
): Promise<void> {
  const claims = join(inbox.path, environment, folder, claimedFolder);
  const ids = (await listNames(claims)).filter((name) => uuid.test(name));
  const known = await openInboxFiles(context.db, ids);
  for (const fileId of ids.filter((id) => !known.has(id))) {
    for (const name of await listNames(join(claims, fileId))) {
      const claim = {
        fileId,
        environment,
        folder,
        name,
        hasMarker: false,
        inode: 0n,
        size: 0n,
        modifiedNs: 0n,
      };
      const { claimed, dropped } = claimPaths(inbox, claim);
      if (name.startsWith('.') || (await statOf(claimed))?.isFile() !== true) continue;
      const done = await putBack(inbox, claim);
      const what = done
        ? 'was put back'
        : 'stays where it is, since its place is taken: move it into the inbox by hand';
      context.log.warn(
        { path: done ? dropped : claimed },
        `inbox: a claimed file that the database does not know ${what}`,
      );
    }
  }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}
