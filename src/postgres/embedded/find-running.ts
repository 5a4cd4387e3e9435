import { askVersion, serverUrl } from './connection.ts';
import { layoutOf } from './layout.ts';
import { readPassword } from './password.ts';
import { readServerFile } from './server-file.ts';

/**
 * url of the live server on dataDir, or undefined.
 * Verifies by really connecting, so a stale file never counts.
 */
export async function findRunningPostgres(dataDir: string): Promise<string | undefined> {
  const layout = layoutOf(dataDir);
  const server = await readServerFile(layout);
  if (server === undefined) return undefined;
  const password = await readPassword(layout.password);
  if (password === undefined) return undefined;
  const url = serverUrl(server.port, password);
  try {
    await askVersion(url);
    return url;
  } catch {
    return undefined;
  }
}
