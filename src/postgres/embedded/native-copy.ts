import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
} from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedPostgresError, hasCode } from './errors.ts';
import { ensureLibraryLinks } from './library-links.ts';
import type { NativePackage } from './locate-package.ts';

/**
 * Copies the native folder into `home` (made if missing) and returns the copy's path. Used when the server's
 * account cannot reach node_modules, or when node_modules lacks its links and is read-only. Made once per
 * package version: complete in a private folder first, then shown by one rename.
 * `home` must belong to us and be writable by nobody else, or another user could plant programs there.
 */
export async function copyNative(from: NativePackage, home: string): Promise<string> {
  // Whatever our umask is, the server's account must be able to enter; a folder that was there keeps its mode.
  if ((await mkdir(home, { recursive: true })) !== undefined) await chmod(home, 0o755);
  await assertOurs(home);
  const copy = join(home, `postgres-${from.version}-${process.platform}-${process.arch}`);
  if (await isPresent(copy)) return copy;
  const draft = await mkdtemp(join(home, 'draft-'));
  try {
    // pg-symlinks.json names its links "native/…", so the folder keeps that name.
    await copyTree(from.native, join(draft, 'native'));
    await ensureLibraryLinks(join(draft, 'native'));
    await chmod(draft, 0o755);
    await rename(draft, copy);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process finished the same copy first.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
  return copy;
}

async function isPresent(copy: string): Promise<boolean> {
  try {
    await assertOurs(copy);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/** lstat, so that a symbolic link planted by somebody else does not pass for our folder. */
async function assertOurs(path: string): Promise<void> {
  const status = await lstat(path);
  const closed = (status.mode & 0o022) === 0;
  if (status.isDirectory() && status.uid === process.geteuid?.() && closed) return;
  throw new EmbeddedPostgresError(
    `${path} must be a directory that belongs to the user who starts sluice and that nobody else can write to. Remove it or correct its owner and mode.`,
  );
}

/** Readable by everyone whatever the umask of the installation was, and on disk before the rename shows it. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  const entries = await readdir(from, { withFileTypes: true });
  await Promise.all(
    entries.map(async (entry) => {
      const [source, target] = [join(from, entry.name), join(to, entry.name)];
      if (entry.isDirectory()) return copyTree(source, target);
      if (entry.isSymbolicLink()) return symlink(await readlink(source), target);
      return copyDurably(source, target);
    }),
  );
}

async function copyDurably(source: string, target: string): Promise<void> {
  await copyFile(source, target);
  await chmod(target, (await lstat(source)).mode & 0o100 ? 0o755 : 0o644);
  const file = await open(target, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
