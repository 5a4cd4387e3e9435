// The files of a data directory, and the errors that speak of it. What is written here is whole or absent, survives a
// power cut, and is readable for its owner only.
import { randomBytes } from 'node:crypto';
import {
  access,
  constants,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';

/** The embedded server cannot run here; the message says why and what to do about it. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  /** True if another live server owns the data directory: two servers on one directory would destroy it. */
  readonly isInUse: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isInUse?: boolean } = {}) {
    super(message, options);
    this.isInUse = options.isInUse ?? false;
  }
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** Tells whether there is something of that name, be it a link that leads nowhere. */
export function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Waits, because a program of a killed process may be writing its last file. */
export function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

/** Tells whether the output of one of PostgreSQL's programs says that there is no room. */
export function saysDiskFull(output: string): boolean {
  return /No space left on device|Disk quota exceeded/.test(output);
}

export function diskFull(folder: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `The disk of ${folder} is full. Make room (a new database takes some 100 MB), or choose another DATA_DIR (--data-dir).`,
  );
}

/** Every path the launcher owns, all below the one directory it is given. */
export interface Layout {
  readonly root: string;
  /** PGDATA. Appears by one rename, so it is either absent or complete. */
  readonly data: string;
  /** Lies in PGDATA, so that a copy of the data can be opened. */
  readonly password: string;
  readonly serverLog: string;
}

export const passwordName = 'sluice-password';

export function layoutOf(dataDir: string): Layout {
  return {
    root: dataDir,
    data: join(dataDir, 'data'),
    password: join(dataDir, 'data', passwordName),
    serverLog: join(dataDir, 'postgres.log'),
  };
}

/** Makes the directory if it is missing, closed to other users; refuses one that belongs to somebody else. */
export async function ensureRoot(layout: Pick<Layout, 'root'>): Promise<void> {
  await makeFolder(layout.root).catch((cause: unknown) => {
    throw new EmbeddedPostgresError(`${layout.root} cannot be made: ${whyNot(cause)}`, { cause });
  });
  try {
    await access(layout.root, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    if (hasCode(cause, 'EROFS'))
      throw new EmbeddedPostgresError(`${layout.root}: ${whyNot(cause)}`, { cause });
    const { uid } = await stat(layout.root);
    throw new EmbeddedPostgresError(
      `${layout.root} belongs to another user (uid ${uid}). Start as that user or as root, or choose another DATA_DIR.`,
      { cause },
    );
  }
}

/** Makes a folder step by step: where nothing can be made, as in /proc, Node's own `recursive` loops for ever. */
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
  return `${messageOf(error)}; ${another}.`;
}

/** Tells whether a data directory exists. Throws when it was made by another major version, or is not Postgres'. */
export async function hasUsableData(layout: Layout, major: string): Promise<boolean> {
  const found = await readMajor(layout);
  if (found === major) return true;
  if (found === undefined) return false;
  throw new EmbeddedPostgresError(
    `The data in ${layout.data} was made by PostgreSQL ${found}; this version of sluice brings PostgreSQL ${major}, ` +
      `which cannot read it. Nothing was changed. Start the version of sluice that made it, copy its database with pg_dump, ` +
      `move ${layout.root} away, start this version and restore: docs/moving.md#to-another-major-version`,
  );
}

/** The major version that made the data; undefined where there is none. */
export async function readMajor({ data }: Pick<Layout, 'data'>): Promise<string | undefined> {
  const known = await readVersionFile(data);
  if (known !== undefined) return known;
  const names = await readdir(data).catch(() => []);
  if (names.length === 0) return undefined;
  const since = await readVersionFile(data);
  if (since !== undefined) return since;
  throw new EmbeddedPostgresError(
    `${data} is no Postgres data directory, but not empty either. Move it away or choose another DATA_DIR.`,
  );
}

async function readVersionFile(data: string): Promise<string | undefined> {
  return (await readIfThere(join(data, 'PG_VERSION')))?.trim();
}

/** The password of the role, or undefined where there is no cluster yet. */
export async function readPassword(layout: Layout): Promise<string | undefined> {
  return (await readIfThere(layout.password))?.trim();
}

/** Writes a file that only its owner can read, whole or not at all. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await giveToFolderOwner(file, dirname(path));
    await file.writeFile(text);
    await file.sync();
    await rename(draft, path);
  } catch (error) {
    // A disk that is full would have one more at every try.
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

/** Gives what root writes into somebody's folder to that user, who may start without root the next time. */
async function giveToFolderOwner(file: FileHandle, folder: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(folder);
  await file.chown(uid, gid);
}
