import { join } from 'node:path';
import { inboxFolders } from '../../domain/inbox.ts';
import type { Database } from '../../postgres/database.ts';
import { listEnvironments } from '../../postgres/stores/environments.ts';
import { forgetExpiredInboxFiles } from '../../postgres/stores/inbox-files.ts';
import {
  countOpenInboxFiles,
  type RecentInboxFile,
  recentInboxFiles,
} from '../../postgres/stores/inbox-history.ts';
import { statOf } from './claimed-file.ts';
import { findFolder, lookInto } from './folders.ts';
import { findInbox, mappingErrorName } from './inbox.ts';

const MOST_IGNORED = 100;

interface EnvironmentStatus {
  readonly environment: string;
  /** Files that lie in its folders, complete or not. */
  readonly waiting: number;
  /** Taken, not received yet. */
  readonly claimed: number;
  /** Their loads are accepted, or there will be none; not moved to their place yet. */
  readonly loading: number;
  /** Files that are left where they are, and why; the first MOST_IGNORED of them. */
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
  /** Folders whose mapping.yaml is wrong: what lies there waits until it is mended. */
  readonly held: readonly string[];
}

export interface InboxStatus {
  readonly environments: readonly EnvironmentStatus[];
  /** What was concluded last, the newest first. */
  readonly recent: readonly RecentInboxFile[];
}

/** How things stand in the inbox, for whoever can see the directory; null if nobody has watched it yet. */
export async function inspectInbox(
  { db }: { readonly db: Database },
  directory: string,
  options: { readonly environment: string | null; readonly limit: number },
): Promise<InboxStatus | null> {
  const inbox = await findInbox(directory);
  if (inbox === null) return null;
  const all = await listEnvironments(db);
  const wanted = all.filter(({ name }) => options.environment === null || name === options.environment);
  const open = await countOpenInboxFiles(db, inbox.id);
  const environments: EnvironmentStatus[] = [];
  for (const { environmentId, name } of wanted) {
    const { claimed, loading } = open.get(environmentId) ?? { claimed: 0, loading: 0 };
    environments.push({ environment: name, claimed, loading, ...(await lookAt(join(inbox.path, name))) });
  }
  const ids = wanted.map(({ environmentId }) => environmentId);
  return { environments, recent: await recentInboxFiles(db, inbox.id, ids, options.limit) };
}

async function lookAt(path: string): Promise<Pick<EnvironmentStatus, 'waiting' | 'ignored' | 'held'>> {
  let waiting = 0;
  const ignored: { name: string; why: string }[] = [];
  const held: string[] = [];
  for (const folder of inboxFolders) {
    const found = await findFolder(join(path, folder));
    if (found === null) continue;
    const view = await lookInto(found);
    waiting += view.files.length;
    for (const { name, why } of view.ignored) ignored.push({ name: join(folder, name), why });
    if ((await statOf(join(found.path, mappingErrorName))) !== null) held.push(folder === '' ? '.' : folder);
  }
  return { waiting, ignored: ignored.slice(0, MOST_IGNORED), held };
}

const filesPerStatement = 500;

/**
 * Forgets files that were concluded more than `jobDays` ago and whose stored copy has expired. What lies in done and failed
 * is the operator's: it is never touched.
 */
export async function pruneInbox(db: Database, jobDays: number): Promise<{ inboxFiles: number }> {
  for (let inboxFiles = 0; ; ) {
    const forgotten = await forgetExpiredInboxFiles(db, jobDays, filesPerStatement);
    inboxFiles += forgotten;
    if (forgotten < filesPerStatement) return { inboxFiles };
  }
}
