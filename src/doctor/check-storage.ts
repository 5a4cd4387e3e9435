import type { FileRef, FileStore } from '../files/file-store.ts';
import { type Finding, failed, ok } from './finding.ts';

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
