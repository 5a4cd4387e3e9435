import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import type { Environment } from '../access/environments.ts';
import type { InboxFolder, InboxOptions } from '../domain/inbox.ts';
import { codeOf } from '../files/disk.ts';
import { dropInboxFile, insertInboxFiles, type NewInboxFile } from '../postgres/stores/inbox-files.ts';
import { claimPaths, moveIn, removeClaimFolder } from './claimed-file.ts';
import type { Inbox, InboxContext } from './context.ts';
import type { Notices } from './notices.ts';
import type { Patience } from './patience.ts';
import { syncFolder } from './real-folder.ts';
import type { SeenFile } from './settling.ts';

/** Rows of one statement. */
const filesAtATime = 500;

export interface ClaimTools {
  readonly notices: Notices;
  /** By path, for files that cannot be moved. */
  readonly patience: Patience<string>;
}

/**
 * Makes files ours, in the given order: first the ledger, then the file system. Dying in between does no harm: whoever takes
 * the file in moves it if that was not done yet.
 */
export async function claimFiles(
  context: InboxContext,
  inbox: Inbox,
  environment: Environment,
  ready: readonly SeenFile[],
  optionsOf: ReadonlyMap<InboxFolder, InboxOptions>,
  tools: ClaimTools,
): Promise<void> {
  for (let at = 0; at < ready.length; at += filesAtATime) {
    const rows = ready
      .slice(at, at + filesAtATime)
      .filter(({ folder, name }) => tools.patience.isOver(pathOf(inbox, environment, folder, name)))
      .flatMap((file) => toRow(file, environment, optionsOf.get(file.folder)));
    const written = await insertInboxFiles(context.db, inbox.id, rows);
    const files = rows.filter(({ fileId }) => written.has(fileId));
    for (const file of files) await moveOrDrop(context, inbox, environment, file, tools);
    for (const folder of new Set(files.map(({ folder }) => folder))) {
      await syncFolder(join(inbox.path, environment.name, folder));
    }
    if (files.length > 0)
      context.log.info({ environment: environment.name, files: files.length }, 'inbox: files taken');
  }
}

function toRow(
  file: SeenFile,
  { environmentId }: Environment,
  options: InboxOptions | undefined,
): NewInboxFile[] {
  if (options === undefined) return [];
  const { folder, name, inode, size, modifiedNs, marked } = file;
  return [
    { fileId: uuidv7(), environmentId, folder, name, hasMarker: marked, options, inode, size, modifiedNs },
  ];
}

/** A file that this process may not move stays where it is, and others go on without it. */
async function moveOrDrop(
  context: InboxContext,
  inbox: Inbox,
  environment: Environment,
  file: NewInboxFile,
  { notices, patience }: ClaimTools,
): Promise<void> {
  const claim = { ...file, environment: environment.name };
  const path = pathOf(inbox, environment, file.folder, file.name);
  try {
    await moveIn(inbox, claim);
    patience.succeeded(path);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    notices.warn(
      path,
      `cannot be moved (${codeOf(error)}): its folder must be writable for the user that sluice runs as`,
    );
    patience.failed(path);
    await removeClaimFolder(claimPaths(inbox, claim)).catch(() => undefined);
    await dropInboxFile(context.db, file.fileId, 0);
  }
}

function isRefusal(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EXDEV', 'EROFS', 'ENAMETOOLONG'].includes(codeOf(error) ?? '');
}

function pathOf(inbox: Inbox, environment: Environment, folder: InboxFolder, name: string): string {
  return join(inbox.path, environment.name, folder, name);
}
