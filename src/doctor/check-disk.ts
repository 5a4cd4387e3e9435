import type { Config } from '../config.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../files/disk.ts';
import { sentenceOf } from './check.ts';
import { type Finding, failed, ok, warning } from './finding.ts';

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
