import { readFile, stat } from 'node:fs/promises';
import { EmbeddedPostgresError, hasCode } from './errors.ts';
import type { Layout } from './layout.ts';

/** The unprivileged account that runs the server when we are root. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Preferred first: `postgres` exists for this purpose, `nobody` exists everywhere. */
const candidates = ['postgres', 'nobody'] as const;

/**
 * The account the server must run as, or undefined to stay who we are.
 * Postgres refuses to run as root; root therefore lends it an account. Whoever owns the data directory (or the
 * folder made for it, such as a container's volume) runs it, so what an ordinary user made also opens for root.
 */
export async function chooseAccount(layout: Layout): Promise<Account | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  if (process.platform !== 'linux') {
    throw new EmbeddedPostgresError(
      'The embedded Postgres does not run as root on this system. Start as an ordinary user, or set DATABASE_URL.',
    );
  }
  for (const path of [layout.data, layout.root]) {
    const owner = await ownerOf(path);
    if (owner !== undefined && owner.uid !== 0) return owner;
  }
  const accounts = parseAccounts(await readFile('/etc/passwd', 'utf8'));
  for (const name of candidates) {
    const account = accounts.get(name);
    if (account !== undefined && account.uid !== 0) return account;
  }
  throw new EmbeddedPostgresError(
    `Postgres refuses to run as root, and this system has no account ${candidates.join(' or ')} to run it as. ` +
      'Start as an ordinary user, create one of these accounts, or set DATABASE_URL.',
  );
}

async function ownerOf(path: string): Promise<Account | undefined> {
  try {
    const { uid, gid } = await stat(path);
    return { uid, gid };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** passwd(5): name:password:uid:gid:… */
function parseAccounts(passwd: string): Map<string, Account> {
  const accounts = new Map<string, Account>();
  for (const line of passwd.split('\n')) {
    const [name, , uid, gid] = line.split(':');
    if (name && uid && gid) accounts.set(name, { uid: Number(uid), gid: Number(gid) });
  }
  return accounts;
}
