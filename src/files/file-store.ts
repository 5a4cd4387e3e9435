import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Fault } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';

/**
 * Received files and exports, in a folder (`file-system.ts`) or on S3 (`s3-store.ts`), as
 * STORAGE_URL says. A file appears whole and durable or not at all. Nothing user-supplied is part
 * of a path.
 */
export interface FileStore {
  /** The address that other programs know it by: file:///folder or s3://bucket/prefix, without a slash at the end. */
  readonly location: string;
  /** Starts a new file that nobody can see until `commit`; in a folder, if one is given. */
  create(folder?: FileFolder): Promise<FileWriter>;
  /** Like `create`, under a name that a file has in another store, or in a backup. */
  createAs(ref: FileRef): Promise<FileWriter>;
  /** Its length in bytes; null if it is not there. */
  size(ref: FileRef): Promise<number | null>;
  /** Exactly the bytes [start, end); throws `Fault` if the file is shorter, `MissingFileError` if it is gone. */
  readRange(ref: FileRef, start: number, end: number): Promise<Buffer>;
  /** The file as a stream: the whole, or exactly the bytes [start, end), after which it fails if the file is shorter. */
  open(ref: FileRef, range?: { readonly start: number; readonly end: number }): Readable;
  /** Yields the complete files whose names begin with `kind/`, with their lengths. */
  list(kind: string): AsyncGenerator<{ readonly ref: FileRef; readonly bytes: number }>;
  /** Removing what is not there is no error. */
  remove(ref: FileRef): Promise<void>;
  /** Removes all that is in a folder, what was never committed too. One that is not there is no error. */
  removeFolder(folder: FileFolder): Promise<void>;
  /** Removes what was begun and not written to for `olderThanMs`, as a killed process leaves it; how much that was. */
  sweepTemporary(olderThanMs: number): Promise<number>;
  /** Throws if files could not be stored now. */
  check(): Promise<void>;
  /** An address that the store itself answers for a while. Missing where files are to be had through us only. */
  readonly presign?: (ref: FileRef, link: PresignedLink) => Promise<string>;
}

export interface PresignedLink {
  /** The name for saving the file; of our making. */
  readonly filename: string;
  readonly contentType: string;
  /** At most MAX_PRESIGNED_SECONDS ahead. */
  readonly expireAt: Date;
}

export interface FileWriter {
  /** The name of the file once it is committed. */
  readonly ref: FileRef;
  /** Resolves when more may be written. The buffer is not kept. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file durable and visible; returns the name to ask for it by. */
  commit(): Promise<FileRef>;
  /** Leaves nothing behind; does nothing after `commit`. */
  discard(): Promise<void>;
}

/** Writes a file whole; if that fails, nothing is left of it. */
export async function writeWhole(
  writer: FileWriter,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<FileRef> {
  try {
    for await (const piece of pieces) await writer.write(piece);
    return await writer.commit();
  } catch (error) {
    await writer.discard().catch(() => undefined);
    throw error;
  }
}

/** Returns the SHA-256 of a file as it is stored, in hex. */
export async function hashFile(files: Pick<FileStore, 'open'>, ref: FileRef): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of files.open(ref)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/** A generated name, never a user's. */
export type FileRef = string & { readonly __brand: 'FileRef' };

/** Files that go together: `<kind>/<uuid>`, or a part, `…/<number>`. Named before it has any, so that what a dead worker left is found. */
export type FileFolder = string & { readonly __brand: 'FileFolder' };

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
}

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const folderPattern = new RegExp(`^[a-z]{1,20}/${uuid}(?:/\\d{1,10})?$`);
/** Other programs may know a file by the end of its name. */
const named = `[a-z]{1,20}/${uuid}/[a-z]{1,20}/(?:\\d{5,16}-)?${uuid}(?:\\.[a-z]{1,10}){1,2}`;
const refPattern = new RegExp(
  `^(?:(?:\\d{4}-\\d{2}-\\d{2}|[a-z]{1,20}/${uuid}(?:/\\d{1,10})?)/${uuid}|${named})$`,
);

/** A name that no file has: `<day>/<uuid v7>`, or one in the folder. */
export function createRef(folder?: FileFolder): FileRef {
  const parent = folder === undefined ? new Date().toISOString().slice(0, 10) : checkFolder(folder);
  return checkRef(`${parent}/${uuidv7()}`);
}

export function isRef(text: string): text is FileRef {
  return refPattern.test(text);
}

/** Refs are generated here; anything else is a bug of ours or somebody's trick, and names no file. */
export function checkRef(ref: string): FileRef {
  if (!isRef(ref)) throw new Fault('not the name of a stored file');
  return ref;
}

export function checkFolder(folder: string): FileFolder {
  if (!folderPattern.test(folder)) throw new Fault('not the name of a folder of stored files');
  return folder as FileFolder;
}

/** A stream of the pieces, without reading ahead more than READ_BYTES. */
export function streamOf(pieces: AsyncIterable<Buffer>): Readable {
  return Readable.from(pieces, { objectMode: false, highWaterMark: READ_BYTES });
}
