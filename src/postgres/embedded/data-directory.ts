// Reads files of a data directory, and writes them atomically, durably and for the owner only.
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

/** An error whose message states the reason and the cure. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  /** True if another live server owns the data directory. */
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

/** True if anything has this path, even a dangling link. */
export function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Retries, because a killed process may have started a program that is still creating a file. */
export function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

export function saysDiskFull(output: string): boolean {
  return /No space left on device|Disk quota exceeded/.test(output);
}

export function diskFull(folder: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `The disk of ${folder} is full. Make room (a new database takes some 100 MB), or choose another DATA_DIR (--data-dir).`,
  );
}

export interface Layout {
  readonly root: string;
  /** PGDATA. */
  readonly data: string;
  /** File with the password. It is inside PGDATA, so that a copy of the data can be opened. */
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

/** Creates sluice's data directory if it is missing. Refuses a directory of another user. */
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

/**
 * Creates the folder and its parents one at a time, because Node's `recursive` never returns in
 * places such as /proc.
 */
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
    (stats) => stats.isDirectory(),
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

/** Throws if the data belongs to another major version or is not PostgreSQL's. */
export async function hasUsableData(layout: Layout, major: string): Promise<boolean> {
  const dataMajor = await readMajor(layout);
  if (dataMajor === major) return true;
  if (dataMajor === undefined) return false;
  throw new EmbeddedPostgresError(
    `The data in ${layout.data} was made by PostgreSQL ${dataMajor}; this version of sluice brings PostgreSQL ${major}, ` +
      `which cannot read it. Nothing was changed. Start the version of sluice that made it, copy its database with pg_dump, ` +
      `move ${layout.root} away, start this version and restore: docs/moving.md#to-another-major-version`,
  );
}

export async function readMajor({ data }: Pick<Layout, 'data'>): Promise<string | undefined> {
  const version = await readVersionFile(data);
  if (version !== undefined) return version;
  const names = await readdir(data).catch(() => []);
  if (names.length === 0) return undefined;
  const laterVersion = await readVersionFile(data);
  if (laterVersion !== undefined) return laterVersion;
  throw new EmbeddedPostgresError(
    `${data} is no Postgres data directory, but not empty either. Move it away or choose another DATA_DIR.`,
  );
}

async function readVersionFile(data: string): Promise<string | undefined> {
  return (await readIfThere(join(data, 'PG_VERSION')))?.trim();
}

export async function readPassword(layout: Layout): Promise<string | undefined> {
  return (await readIfThere(layout.password))?.trim();
}

export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await giveToFolderOwner(file, dirname(path));
    await file.writeFile(text);
    await file.sync();
    await rename(draft, path);
  } catch (error) {
    // Without this removal, each attempt on a full disk would leave a temporary file behind.
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Makes the owner of the folder the owner of the file, because this user may start sluice without
 * root next time.
 */
async function giveToFolderOwner(file: FileHandle, folder: string): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = await stat(folder);
  await file.chown(uid, gid);
}
