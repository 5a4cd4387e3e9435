import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Account } from './account.ts';
import { EmbeddedPostgresError } from './errors.ts';
import type { Layout } from './layout.ts';
import { ensureLibraryLinks } from './library-links.ts';
import { locatePackage } from './locate-package.ts';
import { copyNative } from './native-copy.ts';
import { runProgram } from './run-program.ts';

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  /** Major version, as written into PG_VERSION. */
  readonly major: string;
}

/**
 * Programs that the server's account can really run: those in node_modules, or else a copy of them.
 * "Can run" is decided by running, not by reading modes: it covers links, libraries, ACLs and noexec mounts.
 */
export async function provideBinaries(
  account: Account | undefined,
  layout: Layout,
  log: Logger,
): Promise<Binaries> {
  const installed = await locatePackage();
  const failures: string[] = [];
  if (await ensureLibraryLinks(installed.native)) {
    const found = await tryBinaries(installed.native, account, failures);
    if (found !== undefined) return found;
  }
  for (const home of copyHomes(account, layout)) {
    try {
      const copy = await copyNative(installed, home);
      const found = await tryBinaries(join(copy, 'native'), account, failures);
      if (found === undefined) continue;
      log.debug({ copy }, 'embedded Postgres runs from a copy of its package');
      return found;
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new EmbeddedPostgresError(
    `The embedded Postgres cannot be run here. ${account === undefined ? 'Set' : 'Start as an ordinary user, or set'} DATABASE_URL. Tried:\n${failures.join('\n')}`,
  );
}

/** Root's copy must be reachable for the borrowed account; anybody else's stays with the data. */
function copyHomes(account: Account | undefined, layout: Layout): readonly string[] {
  if (account === undefined) return [join(layout.root, 'native')];
  return ['/var/lib/sluice', '/var/tmp/sluice-root', join(tmpdir(), 'sluice-root')];
}

async function tryBinaries(
  native: string,
  account: Account | undefined,
  failures: string[],
): Promise<Binaries | undefined> {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const program = (name: string) => join(native, 'bin', name + suffix);
  const { code, output } = await runProgram(program('postgres'), ['--version'], { account, cwd: '/' });
  const major = /PostgreSQL\D*(\d+)/.exec(output)?.[1];
  if (code === 0 && major !== undefined) {
    return { postgres: program('postgres'), initdb: program('initdb'), pgCtl: program('pg_ctl'), major };
  }
  failures.push(`${program('postgres')}: ${output.trim()}`);
  return undefined;
}
