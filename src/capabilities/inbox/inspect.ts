import { join } from 'node:path';
import type { Environment } from '../../domain/caller.ts';
import type { Database } from '../../postgres/database.ts';
import { findInbox, mappingErrorName } from './context.ts';
import { inboxFolders } from './files.ts';
import { isFolder, lookInto, placeOf, statOf } from './folders.ts';
import { countOpenInboxFiles, forgetExpiredInboxFiles, openInboxFilesOf, recentInboxFiles } from './store.ts';

const MOST_IGNORED = 100;
const MOST_SHOWN = 200;

export interface FolderScan {
  readonly waiting: number;
  readonly files: readonly { readonly name: string; readonly size: number; readonly modifiedAt: Date }[];
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
  /** Folders whose mapping.yaml is invalid. Their files wait. */
  readonly held: readonly string[];
}

export async function inspectInbox(
  db: Database,
  directory: string,
  { environmentId, name }: Environment,
  limit: number,
  scan: (path: string) => Promise<FolderScan>,
) {
  const inbox = await findInbox(directory);
  if (inbox === null) return null;
  const loading = await countOpenInboxFiles(db, inbox.id, environmentId);
  const taken = loading === 0 ? [] : await openInboxFilesOf(db, inbox.id, environmentId, MOST_SHOWN);
  const { waiting, files, ...folder } = await scan(join(inbox.path, name));
  const places = new Set(taken.map(placeOf));
  return {
    // A taken file stays in its folder until its load has ended, but it does not count as waiting.
    waiting: Math.max(0, waiting - loading),
    files: files.filter((file) => !places.has(file.name)),
    taken,
    ...folder,
    recent: await recentInboxFiles(db, inbox.id, environmentId, limit),
  };
}

export async function scanFolder(path: string): Promise<FolderScan> {
  let waiting = 0;
  const files: { name: string; size: number; modifiedAt: Date }[] = [];
  const ignored: { name: string; why: string }[] = [];
  const held: string[] = [];
  for (const folder of inboxFolders) {
    const folderPath = join(path, folder);
    if (!(await isFolder(folderPath))) continue;
    const view = await lookInto(folderPath, folder);
    waiting += view.files.length;
    for (const { name, size, modifiedNs } of view.files) {
      const modifiedAt = new Date(Number(modifiedNs / 1_000_000n));
      files.push({ name: join(folder, name), size: Number(size), modifiedAt });
    }
    for (const { name, why } of view.ignored) ignored.push({ name: join(folder, name), why });
    if ((await statOf(join(folderPath, mappingErrorName))) !== null) held.push(folder === '' ? '.' : folder);
  }
  files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime());
  return { waiting, files: files.slice(0, MOST_SHOWN), ignored: ignored.slice(0, MOST_IGNORED), held };
}

const filesPerStatement = 500;

export async function pruneInbox(db: Database, jobDays: number): Promise<number> {
  let total = 0;
  while (true) {
    const count = await forgetExpiredInboxFiles(db, jobDays, filesPerStatement);
    total += count;
    if (count < filesPerStatement) return total;
  }
}
