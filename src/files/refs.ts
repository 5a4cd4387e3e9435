import { uuidv7 } from 'uuidv7';
import { Fault } from '../domain/errors.ts';
import type { FileFolder, FileRef } from './file-store.ts';

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const folderPattern = new RegExp(`^[a-z]{1,20}/${uuid}(?:/\\d{1,10})?$`);
const refPattern = new RegExp(`^(?:\\d{4}-\\d{2}-\\d{2}|[a-z]{1,20}/${uuid}(?:/\\d{1,10})?)/${uuid}$`);

/** A name that no file has: `<day>/<uuid v7>`, or one in the folder. */
export function createRef(folder?: FileFolder): FileRef {
  const parent = folder === undefined ? new Date().toISOString().slice(0, 10) : checkFolder(folder);
  return checkRef(`${parent}/${uuidv7()}`);
}

/** Refs are generated here; anything else is a bug of ours or somebody's trick, and names no file. */
export function checkRef(ref: string): FileRef {
  if (!refPattern.test(ref)) throw new Fault('not the name of a stored file');
  return ref as FileRef;
}

export function checkFolder(folder: string): FileFolder {
  if (!folderPattern.test(folder)) throw new Fault('not the name of a folder of stored files');
  return folder as FileFolder;
}
