import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Fault } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';

/**
 * Received files and exports, in a folder (`file-system.ts`) or on S3 (`s3-store.ts`), as
 * STORAGE_URL specifies. A file appears whole and durable or not at all. Paths contain nothing that
 * a user supplies.
 */
export interface FileStore {
  /**
   * Address for other programs: file:///folder or s3://bucket/prefix, without a slash at the end.
   */
  readonly location: string;
  /** Creates a file, in the folder if there is one. Nobody can see the file until `commit`. */
  create(folder?: FileFolder): Promise<FileWriter>;
  /** Like `create`, with the name that a file has in another store or in a backup. */
  createAs(ref: FileRef): Promise<FileWriter>;
  /** Returns the length in bytes, or `null` for a missing file. */
  size(ref: FileRef): Promise<number | null>;
  /**
   * Returns exactly the bytes [start, end). Throws `Fault` if the file is shorter, and
   * `MissingFileError` if it is gone.
   */
  readRange(ref: FileRef, start: number, end: number): Promise<Buffer>;
  /**
   * Streams the file, or exactly the bytes [start, end). The stream of a shorter file fails at its
   * end.
   */
  open(ref: FileRef, range?: { readonly start: number; readonly end: number }): Readable;
  /** Yields the complete files whose names begin with `kind/`, with their lengths. */
  list(kind: string): AsyncGenerator<{ readonly ref: FileRef; readonly bytes: number }>;
  /** Removes a file. A missing one is not an error. */
  remove(ref: FileRef): Promise<void>;
  /**
   * Removes all files of a folder, including uncommitted ones. A missing folder is not an error.
   */
  removeFolder(folder: FileFolder): Promise<void>;
  /**
   * Removes unfinished files that were not written to for `olderThanMs`, as a killed process leaves
   * them. Returns their number.
   */
  sweepTemporary(olderThanMs: number): Promise<number>;
  /** Throws if files cannot be stored now. */
  check(): Promise<void>;
  /**
   * Returns an address that the store itself serves for a while. Missing if only sluice serves
   * files.
   */
  readonly presign?: (ref: FileRef, link: PresignedLink) => Promise<string>;
}

export interface PresignedLink {
  /** Generated name under which the file is saved. */
  readonly filename: string;
  readonly contentType: string;
  /** At most MAX_PRESIGNED_SECONDS ahead. */
  readonly expireAt: Date;
}

export interface FileWriter {
  /** Name of the file after `commit`. */
  readonly ref: FileRef;
  /** Resolves when more may be written. Does not keep the buffer. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file durable and visible. Returns its name. */
  commit(): Promise<FileRef>;
  /** Removes the unfinished file. Does nothing after `commit`. */
  discard(): Promise<void>;
}

/** Writes a whole file, and removes it if that fails. */
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

/** Returns the SHA-256 of the stored bytes, in hex. */
export async function hashFile(files: Pick<FileStore, 'open'>, ref: FileRef): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of files.open(ref)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/** Generated name, never a user's. */
export type FileRef = string & { readonly __brand: 'FileRef' };

/**
 * Folder of files that belong together: `<kind>/<uuid>`, or a part of it, `…/<number>`. It has a
 * name before its first file, so that the files of a dead worker are found.
 */
export type FileFolder = string & { readonly __brand: 'FileFolder' };

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
}

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const folderPattern = new RegExp(`^[a-z]{1,20}/${uuid}(?:/\\d{1,10})?$`);
/** Name whose end other programs may use to identify the file. */
const namedRef = `[a-z]{1,20}/${uuid}/[a-z]{1,20}/(?:\\d{5,16}-)?${uuid}(?:\\.[a-z]{1,10}){1,2}`;
const refPattern = new RegExp(
  `^(?:(?:\\d{4}-\\d{2}-\\d{2}|[a-z]{1,20}/${uuid}(?:/\\d{1,10})?)/${uuid}|${namedRef})$`,
);

/** Returns a new name: `<day>/<uuid v7>`, or one in the folder. */
export function createRef(folder?: FileFolder): FileRef {
  const parent = folder === undefined ? new Date().toISOString().slice(0, 10) : checkFolder(folder);
  return checkRef(`${parent}/${uuidv7()}`);
}

export function isRef(text: string): text is FileRef {
  return refPattern.test(text);
}

/** Returns the name. Throws `Fault` for any other text, which is a bug of ours or an attack. */
export function checkRef(ref: string): FileRef {
  if (!isRef(ref)) throw new Fault('not the name of a stored file');
  return ref;
}

export function checkFolder(folder: string): FileFolder {
  if (!folderPattern.test(folder)) throw new Fault('not the name of a folder of stored files');
  return folder as FileFolder;
}

/** Returns a stream of the pieces that reads ahead at most READ_BYTES. */
export function streamOf(pieces: AsyncIterable<Buffer>): Readable {
  return Readable.from(pieces, { objectMode: false, highWaterMark: READ_BYTES });
}
