import { inboxFolders } from '../domain/inbox.ts';

/** Files that are claimed lie here, each in a folder of its own, until they are concluded. */
export const claimedFolder = '.claimed';
export const doneFolder = 'done';
export const failedFolder = 'failed';
export const mappingName = 'mapping.yaml';
export const mappingErrorName = `${mappingName}.error`;
/** `users.csv.done` says that `users.csv` is complete. */
export const markerSuffix = '.done';
export const receiptSuffix = '.receipt.json';
export const rejectsSuffix = '.rejects.csv';

const loadable = /\.(?:csv|ndjson|jsonl|json)(?:\.gz)?$/i;
/** Names that programs give to files they have not finished. */
const unfinished = /(?:\.(?:part|partial|tmp|temp|filepart|crdownload|download|inprogress|swp|lock)|~)$/i;
const own: ReadonlySet<string> = new Set([
  mappingName,
  mappingErrorName,
  doneFolder,
  failedFolder,
  ...inboxFolders,
]);

/** `loadable`: taken, if it is a file. `left`: none of our business. `unknown`: somebody should be told. */
export function judgeName(name: string): 'loadable' | 'left' | 'unknown' {
  if (name.startsWith('.') || unfinished.test(name) || own.has(name)) return 'left';
  if (loadable.test(name)) return 'loadable';
  return name.endsWith(markerSuffix) ? 'left' : 'unknown';
}

/** Bytes; room for what is put behind, in the 255 that file systems give a name. */
const longestPlaced = 190;
const numbered = 9;

/**
 * The names that a file may go by in done or failed: its own, then `users-2.csv` up to `users-9.csv`, then one with
 * part of `fileId`, which no other has.
 */
export function* placedNames(name: string, fileId: string): Generator<string, void> {
  const extension = loadable.exec(name)?.[0] ?? '';
  const stem = cut(name.slice(0, name.length - extension.length), longestPlaced);
  yield `${stem}${extension}`;
  for (let number = 2; number <= numbered; number++) yield `${stem}-${number}${extension}`;
  yield `${stem}-${fileId.slice(-12)}${extension}`;
  yield `${stem}-${fileId}${extension}`;
}

function cut(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  // A character that was cut in two is left out.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes)).replace(/\uFFFD+$/, '');
}
