import { lstat, readFile, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { hasCode } from './errors.ts';

interface Link {
  readonly source: string;
  readonly target: string;
}

/**
 * npm tarballs cannot hold symbolic links, so the package lists its library links in a file and makes them in a
 * postinstall script, which `--ignore-scripts` skips. This makes those that are missing.
 * Several processes may do so at once: whoever comes second finds the link there.
 * Returns false when one is missing and the folder cannot be written.
 */
export async function ensureLibraryLinks(native: string): Promise<boolean> {
  for (const { source, target } of await readLinks(native)) {
    // The paths in the list begin with "native/".
    const link = join(dirname(native), target);
    if (await exists(link)) continue;
    try {
      await symlink(relative(dirname(target), source), link);
    } catch (error) {
      if (hasCode(error, 'EEXIST')) continue;
      if (hasCode(error, 'EACCES', 'EPERM', 'EROFS')) return false;
      throw error;
    }
  }
  return true;
}

async function readLinks(native: string): Promise<readonly Link[]> {
  try {
    return JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as Link[];
  } catch (error) {
    // The Windows package has no links and no list.
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
