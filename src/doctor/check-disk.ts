import { statfs } from 'node:fs/promises';
import type { Config } from '../config.ts';
import { sentenceOf } from './check.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import { nearestFolder } from './nearest-folder.ts';

const GiB = 2 ** 30;
const leastBytes = GiB;
const leastShare = 0.1;

/** Space on the disk of every folder that we write to; of those on one disk the first speaks for all. */
export async function checkDisk(
  config: Pick<Config, 'dataDir' | 'filesDir' | 'storage'>,
): Promise<Finding[]> {
  const folders = [config.dataDir, ...(config.storage.kind === 'folder' ? [config.filesDir] : [])];
  const findings = new Map<number | string, Finding>();
  for (const folder of folders) {
    const check = `disk of ${folder}`;
    try {
      const there = await nearestFolder(folder);
      if (findings.has(there.device)) continue;
      const { bavail, blocks, bsize } = await statfs(there.folder);
      findings.set(there.device, judgeSpace(check, bavail * bsize, blocks * bsize));
    } catch (error) {
      const advice = 'Is the disk mounted, and may this user look at it?';
      findings.set(folder, failed(check, sentenceOf(error), advice));
    }
  }
  return [...findings.values()];
}

/** Bytes that this user may still write, of all that there are. */
export function judgeSpace(check: string, free: number, all: number): Finding {
  const share = all === 0 ? 0 : free / all;
  const found = `${(free / GiB).toFixed(1)} GiB free, ${Math.floor(share * 100)} % of ${(all / GiB).toFixed(1)} GiB`;
  if (free >= leastBytes && share >= leastShare) return ok(check, found);
  const advice =
    'Make room: shorten FILE_RETENTION_DAYS or EXPORT_RETENTION_DAYS and run `sluice prune`, or get a larger disk.';
  return warning(check, found, advice);
}
