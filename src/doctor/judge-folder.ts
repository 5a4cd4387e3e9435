import { access, constants, stat } from 'node:fs/promises';
import { nearestFolder } from '../files/disk.ts';
import { type Finding, failed, ok } from './finding.ts';

/** Whether this user may write into a folder, or make it where it is not there yet. Makes nothing. */
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
