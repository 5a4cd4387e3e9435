/*
 * A data directory that is made beside the one in use, and takes its place by a rename when it is complete: how a restore, and
 * the change to another major version of PostgreSQL, happen wholly or not at all. One process at a time makes one: its claim is a
 * file beside it.
 */
import { randomUUID } from 'node:crypto';
import { chown, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { syncFolder } from '../files/disk.ts';
import {
  createPrivateFile,
  EmbeddedPostgresError,
  ensureRoot,
  hasCode,
  layoutOf,
  readMajor,
  replacePrivateFile,
} from './data-directory.ts';
import { awaitPreviousServer, isRunning, markProcess, type ProcessMark } from './previous-server.ts';

/** Beside the data directory, on the same disk. */
function stagingOf(dataDir: string): string {
  return `${dataDir}.new`;
}

/**
 * An empty one, claimed by this process until it is installed or removed; what an earlier attempt left is removed.
 * @throws EmbeddedPostgresError if another process has claimed it; DataDirInUseError if a server runs on the data that is to be
 * replaced.
 */
export async function makeStaging(dataDir: string, log: Logger): Promise<string> {
  const staging = stagingOf(dataDir);
  await awaitPreviousServer(layoutOf(dataDir), log);
  const parent = dirname(staging);
  await ensureRoot({ root: parent });
  await claimStaging(dataDir);
  try {
    await clearStaging(dataDir, log);
    await mkdir(staging, { mode: 0o700 });
    if (process.geteuid?.() === 0) {
      // Whoever owns the folder runs the server.
      const { uid, gid } = await stat(parent);
      await chown(staging, uid, gid);
    }
  } catch (error) {
    await releaseClaims(dataDir);
    throw error;
  }
  return staging;
}

export async function removeStaging(dataDir: string, log: Logger): Promise<void> {
  await clearStaging(dataDir, log);
  await releaseClaims(dataDir);
}

/**
 * The claim is written first, and others are looked for then: of two at once, one at least sees the other, and neither goes on that
 * does. Each has a name of its own, so nobody can remove a live claim for that of a process that is gone. Containers that share the
 * folder do not see each other's processes, and are not kept apart.
 */
async function claimStaging(dataDir: string): Promise<void> {
  const own = `${stagingOf(dataDir)}.${randomUUID()}${claimSuffix}`;
  await createPrivateFile(own, JSON.stringify(await markProcess(process.pid)));
  for (const { path, owner } of await readClaims(dataDir)) {
    if (path === own || !(await isRunning(owner))) continue;
    await rm(own, { force: true });
    throw new EmbeddedPostgresError(
      `Another restore or upgrade is under way in ${dirname(dataDir)}: process ${owner.pid}. Run this one again when it has ended, or in another folder (--data-dir).`,
    );
  }
}

/** Removes the claims of this process, and of processes that are gone. */
async function releaseClaims(dataDir: string): Promise<void> {
  for (const { path, owner } of await readClaims(dataDir))
    if (owner.pid === process.pid || !(await isRunning(owner))) await rm(path, { force: true });
}

const claimSuffix = '.claim';

async function readClaims(
  dataDir: string,
): Promise<{ readonly path: string; readonly owner: ProcessMark }[]> {
  const [folder, prefix] = [dirname(dataDir), `${basename(stagingOf(dataDir))}.`];
  const claims = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix) || !name.endsWith(claimSuffix)) continue;
    const path = join(folder, name);
    try {
      claims.push({ path, owner: JSON.parse(await readFile(path, 'utf8')) as ProcessMark });
    } catch (error) {
      // Released since.
      if (!hasCode(error, 'ENOENT')) throw error;
    }
  }
  return claims;
}

/** @throws DataDirInUseError if a server runs on it that does not end. */
async function clearStaging(dataDir: string, log: Logger): Promise<void> {
  const staging = stagingOf(dataDir);
  if (!(await exists(staging))) return;
  await awaitPreviousServer(layoutOf(staging), log);
  await rm(staging, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

/**
 * The staging directory, whose server has been stopped, becomes the data directory. Data that is there is set aside under a name of
 * its own, which is returned. Killed between the two renames, it is ended by `finishInstalling`.
 * @throws DataDirInUseError if a server runs on it; then nothing is left of the other.
 */
export async function installStaging(dataDir: string, log: Logger, suffix: string): Promise<string | null> {
  const layout = layoutOf(dataDir);
  try {
    await awaitPreviousServer(layout, log);
  } catch (error) {
    await removeStaging(dataDir, log);
    throw error;
  }
  let aside: string | null = null;
  if ((await readMajor(layout)) !== undefined) {
    aside = `${dataDir}.${suffix}`;
    if (await exists(aside)) throw new EmbeddedPostgresError(`${aside} is there already; move it away.`);
  } else {
    // Passwords and a log of a server that there was never any data of. Once the mark is there, a process that starts may have
    // put data in their stead.
    await rm(dataDir, { recursive: true, force: true });
  }
  await replacePrivateFile(completeMark(dataDir), '');
  if (aside !== null) {
    // Nobody takes the place while there is data; after a power cut, too, one of the two is there.
    await syncFolder(stagingOf(dataDir));
    await rename(dataDir, aside);
  }
  await takePlace(dataDir);
  return aside;
}

const completeName = 'complete';
const completeMark = (dataDir: string): string => join(stagingOf(dataDir), completeName);

/**
 * Ends what a killed process began: data that is complete takes its place, if that is free.
 * @throws EmbeddedPostgresError if there is none, and something that is not complete stands in its stead.
 */
export async function finishInstalling(dataDir: string): Promise<void> {
  await refuseIncomplete(dataDir);
  const isComplete = await exists(completeMark(dataDir));
  if (isComplete && (await readMajor(layoutOf(dataDir))) === undefined) await takePlace(dataDir);
}

/** @throws EmbeddedPostgresError if there is no data, and a restore that is to make some has not ended. */
export async function refuseIncomplete(dataDir: string): Promise<void> {
  const staging = stagingOf(dataDir);
  if (!(await exists(staging)) || (await exists(completeMark(dataDir)))) return;
  if ((await readMajor(layoutOf(dataDir))) !== undefined) return;
  throw new EmbeddedPostgresError(
    `A restore into ${dirname(dataDir)} is not complete. If it does not run any more, run it again: sluice restore FILE\n` +
      `Or, to give it up and begin with an empty database, remove ${staging}`,
  );
}

async function takePlace(dataDir: string): Promise<void> {
  try {
    await rename(stagingOf(dataDir), dataDir);
  } catch (error) {
    // Either the process that made it or one that starts was faster.
    if (!hasCode(error, 'ENOENT') || (await readMajor(layoutOf(dataDir))) === undefined) throw error;
  }
  await syncFolder(dirname(dataDir));
  await rm(join(dataDir, completeName), { force: true });
  await releaseClaims(dataDir);
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    // A folder that cannot be one, or may not be looked into, is refused in a sentence where it is made.
    if (hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return false;
    throw error;
  }
}
