import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createPrivateFile } from './durable-file.ts';
import { hasCode } from './errors.ts';

/**
 * The password kept in `path`, made on first use: 32 random bytes, in letters that need no quoting in a URL or in SQL.
 * When two processes start at once, both read the one that came first.
 */
export async function ensurePassword(path: string): Promise<string> {
  await createPrivateFile(path, randomBytes(32).toString('base64url'));
  return (await readFile(path, 'utf8')).trim();
}

/** The password kept in `path`, or undefined when none was made yet. */
export async function readPassword(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
