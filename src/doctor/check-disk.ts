import { access, constants, stat } from 'node:fs/promises';
import type { Config } from '../config.ts';
import { type Disk, foldersWritten, isFull, nearestFolder, readDisk } from '../files/disk.ts';
import type { FileRef, FileStore } from '../files/file-store.ts';
import { type Finding, failed, ok, sentenceOf, warning } from './check.ts';

const GiB = 2 ** 30;
const MiB = 2 ** 20;
const leastBytes = GiB;
const leastShare = 0.1;

/** Space on the disk of every folder that we write to; of those on one disk the first speaks for all. */
export async function checkDisk(
  config: Pick<Config, 'dataDir' | 'filesDir' | 'storage'>,
): Promise<Finding[]> {
  const findings = new Map<number | string, Finding>();
  for (const folder of foldersWritten(config)) {
    const check = `disk of ${folder}`;
    try {
      const disk = await readDisk(folder);
      if (!findings.has(disk.device)) findings.set(disk.device, judgeSpace(check, disk));
    } catch (error) {
      const advice = 'Is the disk mounted, and may this user look at it?';
      findings.set(folder, failed(check, sentenceOf(error), advice));
    }
  }
  return [...findings.values()];
}

export function judgeSpace(check: string, disk: Pick<Disk, 'freeBytes' | 'allBytes'>): Finding {
  const { freeBytes, allBytes } = disk;
  const share = allBytes === 0 ? 0 : freeBytes / allBytes;
  const left = freeBytes < GiB ? `${Math.floor(freeBytes / MiB)} MiB` : `${(freeBytes / GiB).toFixed(1)} GiB`;
  const found = `${left} free, ${Math.floor(share * 100)} % of ${(allBytes / GiB).toFixed(1)} GiB`;
  const advice =
    'Make room: shorten FILE_RETENTION_DAYS or EXPORT_RETENTION_DAYS and run `sluice prune`, or get a larger disk.';
  if (isFull(disk)) return failed(check, `the disk is full: ${found}`, advice);
  if (freeBytes >= leastBytes && share >= leastShare) return ok(check, found);
  return warning(check, found, advice);
}

/** Tells whether this user may write into a folder, or create it where it is missing. Creates nothing. */
export async function judgeFolder(check: string, wanted: string, setting: string): Promise<Finding> {
  const { folder } = await nearestFolder(wanted);
  if (!(await stat(folder)).isDirectory()) {
    return failed(check, `${folder} is no folder`, `Move it away, or choose another ${setting}.`);
  }
  try {
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    const advice = `Make ${folder} writable for the user that runs sluice, or choose another ${setting}.`;
    return failed(check, `this user may not write into ${folder}`, advice);
  }
  return ok(
    check,
    folder === wanted ? `${wanted} is writable` : `${wanted} is not there yet, and can be made`,
  );
}

const sample = Buffer.from('sluice doctor: written, read in part and in whole, and removed\n'.repeat(64));
const [start, end] = [1_000, 1_100];

/** Does with one small file all that a load or an export does with large ones. Leaves nothing behind. */
export async function checkStorage(files: FileStore): Promise<Finding[]> {
  const check = 'storage';
  const startedAt = performance.now();
  await files.check();
  const ref = await write(files);
  try {
    const part = await files.readRange(ref, start, end);
    const whole = Buffer.concat(await files.open(ref).toArray());
    if (!part.equals(sample.subarray(start, end)) || !whole.equals(sample)) {
      const advice = 'What is stored must come back unchanged: look for a proxy or a gateway in between.';
      return [failed(check, 'a file came back other than it was written', advice)];
    }
  } finally {
    await files.remove(ref);
  }
  const ms = Math.round(performance.now() - startedAt);
  return [ok(check, `a file was written, read in part and in whole, and removed, in ${ms} ms`)];
}

async function write(files: FileStore): Promise<FileRef> {
  const writer = await files.create();
  try {
    await writer.write(sample);
    return await writer.commit();
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
}
