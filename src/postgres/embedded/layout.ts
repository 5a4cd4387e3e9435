import { access, constants, mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EmbeddedPostgresError, hasCode } from './errors.ts';

/** Every path the launcher owns, all below the one directory it is given. */
export interface Layout {
  readonly root: string;
  /** PGDATA. Appears by one rename, so it is either absent or complete. */
  readonly data: string;
  readonly serverFile: string;
  readonly password: string;
  readonly superuserPassword: string;
  readonly serverLog: string;
}

export function layoutOf(dataDir: string): Layout {
  return {
    root: dataDir,
    data: join(dataDir, 'data'),
    serverFile: join(dataDir, 'server.json'),
    password: join(dataDir, 'password'),
    superuserPassword: join(dataDir, 'superuser-password'),
    serverLog: join(dataDir, 'postgres.log'),
  };
}

/** Makes the directory if it is missing, closed to other users; refuses one that belongs to somebody else. */
export async function ensureRoot(layout: Layout): Promise<void> {
  await makeFolder(layout.root).catch((cause: unknown) => {
    throw new EmbeddedPostgresError(`${layout.root} cannot be made: ${whyNot(cause)}`, { cause });
  });
  try {
    await access(layout.root, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    if (hasCode(cause, 'EROFS')) throw new EmbeddedPostgresError(readOnly(layout.root), { cause });
    const { uid } = await stat(layout.root);
    throw new EmbeddedPostgresError(
      `${layout.root} belongs to another user (uid ${uid}). Start as that user or as root, or choose another DATA_DIR.`,
      { cause },
    );
  }
}

/** One step at a time: where nothing can be made, as in /proc, Node's own `recursive` goes round for ever. */
async function makeFolder(path: string): Promise<void> {
  const above = dirname(path);
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (hasCode(error, 'EEXIST') && (await stat(path)).isDirectory()) return;
    if (!hasCode(error, 'ENOENT') || above === path || (await isFolder(above))) throw error;
    await makeFolder(above);
    await makeFolder(path);
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

function whyNot(error: unknown): string {
  const another = 'choose another DATA_DIR (--data-dir)';
  if (hasCode(error, 'EACCES', 'EPERM'))
    return `this user may not write there. Make the folder above it writable, or ${another}.`;
  if (hasCode(error, 'ENOENT')) return `this file system, such as /proc, takes no folders; ${another}.`;
  if (hasCode(error, 'ENOTDIR', 'EEXIST')) return `a file stands where a folder is wanted; ${another}.`;
  if (hasCode(error, 'EROFS')) return `its file system is read-only. Mount it writable, or ${another}.`;
  if (hasCode(error, 'ENOSPC', 'EDQUOT')) return `the disk is full. Make room, or ${another}.`;
  return `${error instanceof Error ? error.message : String(error)}; ${another}.`;
}

function readOnly(folder: string): string {
  return `${folder} is on a file system that is read-only. Mount it writable, or choose another DATA_DIR.`;
}
