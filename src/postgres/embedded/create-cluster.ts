import { chown, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Account } from './account.ts';
import type { ClusterContext } from './cluster-context.ts';
import { syncFolder } from './durable-file.ts';
import { diskFull, EmbeddedPostgresError, hasCode, isDiskFull } from './errors.ts';
import type { Layout } from './layout.ts';
import { ensurePassword } from './password.ts';
import { isAlive } from './postmaster-file.ts';
import { createRoleAndDatabase } from './role-and-database.ts';
import { dataArgument, runProgram } from './run-program.ts';

const attemptPrefix = 'init-';
/** A live pid in an attempt's name may be a stranger's by now; no initdb takes that long. */
const attemptMaxAgeMs = 10 * 60 * 1000;

/**
 * Creates the data directory with role and database. All of it happens in a folder of its own that becomes
 * the data directory by one rename: killed at any moment, the next start finds nothing or everything.
 */
export async function createCluster(context: ClusterContext): Promise<void> {
  const { layout, account } = context;
  await removeAbandonedAttempts(layout);
  const attempt = await mkdtemp(join(layout.root, `${attemptPrefix}${process.pid}-`));
  const data = join(attempt, 'data');
  try {
    await mkdir(data, { mode: 0o700 });
    await writeFile(join(attempt, 'password'), await ensurePassword(layout.superuserPassword), {
      mode: 0o600,
    });
    if (account !== undefined) await lend(account, attempt, data, join(attempt, 'password'));
    await initialise(context, data);
    await createRoleAndDatabase(context, data);
    await rename(data, layout.data);
    await syncFolder(layout.root);
  } catch (error) {
    // Another process created it at the same time, with the same passwords: theirs is as good.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  } finally {
    await removeTree(attempt);
  }
}

async function lend(account: Account, ...paths: readonly string[]): Promise<void> {
  for (const path of paths) await chown(path, account.uid, account.gid);
}

/**
 * The builtin C.UTF-8 orders text by code point: as fast as bytes, and the same whatever the system's library
 * says, so no upgrade of it corrupts an index. It still knows upper and lower case beyond ASCII. Checksums are on by default; syncing to disk stays on.
 */
async function initialise({ layout, binaries, account }: ClusterContext, data: string): Promise<void> {
  const args = [
    ['-D', dataArgument(account, data)],
    ['--username=postgres', '--auth=scram-sha-256', '--pwfile=../password'],
    ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
  ].flat();
  const { code, output } = await runProgram(binaries.initdb, args, { account, cwd: data });
  if (isDiskFull(output)) throw diskFull(layout.root);
  if (code !== 0) throw new EmbeddedPostgresError(`initdb failed: ${output.trim()}`);
}

async function removeAbandonedAttempts(layout: Layout): Promise<void> {
  for (const name of await readdir(layout.root)) {
    if (!name.startsWith(attemptPrefix)) continue;
    const path = join(layout.root, name);
    const makerPid = Number(basename(name).slice(attemptPrefix.length).split('-')[0]);
    const age = Date.now() - (await stat(path)).mtimeMs;
    if (!isAlive(makerPid) || age > attemptMaxAgeMs) await removeTree(path);
  }
}

/** Patient, because the initdb of a killed process may be writing its last file. */
function removeTree(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 25 });
}
