import type { LoadContext } from '../load/context.ts';
import { expiredInboxFiles, forgetInboxFile } from '../postgres/stores/inbox-files.ts';
import { storeFolder } from './take-in.ts';

const filesPerRound = 500;

/**
 * Forgets files that were concluded more than `jobDays` ago and whose stored copy has expired. What lies in done and failed
 * is the operator's: it is never touched.
 */
export async function pruneInbox(
  { db, files }: Pick<LoadContext, 'db' | 'files'>,
  jobDays: number,
): Promise<{ inboxFiles: number }> {
  let inboxFiles = 0;
  for (;;) {
    const expired = await expiredInboxFiles(db, jobDays, filesPerRound);
    for (const fileId of expired) {
      // By now it is empty.
      await files.removeFolder(storeFolder({ fileId }));
      await forgetInboxFile(db, fileId);
    }
    inboxFiles += expired.length;
    if (expired.length < filesPerRound) return { inboxFiles };
  }
}
