import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Fault } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';

/**
 * Stores received files and exports in a folder (`file-system.ts`) or on S3 (`s3-store.ts`), as
 * STORAGE_URL specifies. A file becomes visible only when it is complete and durable. Paths never
 * contain text from a user.
 */
export interface FileStore {
  /** Address for other programs, without a final slash: file:///folder or s3://bucket/prefix. */
  readonly location: string;
  /** The file is invisible until `commit`. */
  create(folder?: FileFolder): Promise<FileWriter>;
  /**
   * Like `create`, but with a given name, such as the file's name in another store or in a backup.
   */
  createAs(ref: FileRef): Promise<FileWriter>;
  /** Returns the length in bytes, or `null` for a missing file. */
  size(ref: FileRef): Promise<number | null>;
  /**
   * Returns exactly the bytes [start, end).
   * @throws Fault if the file ends before `end`, MissingFileError if it does not exist
   */
  readRange(ref: FileRef, start: number, end: number): Promise<Buffer>;
  /**
   * Streams the file, or exactly the bytes [start, end). If the file ends before `end`, the stream
   * fails there.
   */
  open(ref: FileRef, range?: { readonly start: number; readonly end: number }): Readable;
  /** Yields the name and length of each complete file whose name begins with `kind/`. */
  list(kind: string): AsyncGenerator<{ readonly ref: FileRef; readonly bytes: number }>;
  /** A missing file is not an error. */
  remove(ref: FileRef): Promise<void>;
  /**
   * Removes all files of a folder, including uncommitted ones. A missing folder is not an error.
   */
  removeFolder(folder: FileFolder): Promise<void>;
  /**
   * Removes unfinished files whose last write was more than `olderThanMs` ago, such as those of a
   * killed process. Returns their number.
   */
  sweepTemporary(olderThanMs: number): Promise<number>;
  /** Throws if files cannot be stored at present. */
  check(): Promise<void>;
  /**
   * Returns a temporary URL from which callers can download the file directly from the store.
   * Stores without such URLs do not have this method, so sluice serves their files itself.
   */
  readonly presign?: (ref: FileRef, link: PresignedLink) => Promise<string>;
}

export interface PresignedLink {
  /**
   * File name that a browser suggests for the download. It is generated and does not come from a
   * user.
   */
  readonly filename: string;
  readonly contentType: string;
  /** Time at which the URL expires, at most MAX_PRESIGNED_SECONDS from now. */
  readonly expireAt: Date;
}

export interface FileWriter {
  /** Name of the file after `commit`. */
  readonly ref: FileRef;
  /** Resolves when the caller may write more bytes and reuse the buffer. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file durable and visible. Returns its name. */
  commit(): Promise<FileRef>;
  /** Removes the unfinished file. Does nothing after `commit`. */
  discard(): Promise<void>;
}

/** Writes and commits a file. If that fails, discards it. */
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

export async function hashFile(files: Pick<FileStore, 'open'>, ref: FileRef): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of files.open(ref)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/** Generated name, never chosen by a user. */
export type FileRef = string & { readonly __brand: 'FileRef' };

/**
 * Folder for several files of one job: `<kind>/<uuid>`, or a subfolder `<kind>/<uuid>/<number>`.
 * Callers derive its name from the id of the job, so that the files of a dead worker can be found
 * and removed.
 */
export type FileFolder = string & { readonly __brand: 'FileFolder' };

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
}

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const folderPattern = new RegExp(`^[a-z]{1,20}/${uuid}(?:/\\d{1,10})?$`);
/** Name of a file in a format that prescribes file names. */
const namedRef = `[a-z]{1,20}/${uuid}/[a-z]{1,20}/(?:\\d{5,16}-)?${uuid}(?:\\.[a-z]{1,10}){1,2}`;
const refPattern = new RegExp(
  `^(?:(?:\\d{4}-\\d{2}-\\d{2}|[a-z]{1,20}/${uuid}(?:/\\d{1,10})?)/${uuid}|${namedRef})$`,
);

/** Returns a new name: `<date>/<uuid v7>`, or `<folder>/<uuid v7>`. */
export function createRef(folder?: FileFolder): FileRef {
  const parent = folder === undefined ? new Date().toISOString().slice(0, 10) : checkFolder(folder);
  return checkRef(`${parent}/${uuidv7()}`);
}

export function isRef(text: string): text is FileRef {
  return refPattern.test(text);
}

/** Returns the name. Throws `Fault` for any other text, which indicates a bug or an attack. */
export function checkRef(ref: string): FileRef {
  if (!isRef(ref)) throw new Fault('not the name of a stored file');
  return ref;
}

export function checkFolder(folder: string): FileFolder {
  if (!folderPattern.test(folder)) throw new Fault('not the name of a folder of stored files');
  return folder as FileFolder;
}

/** The stream reads at most READ_BYTES ahead. */
export function streamOf(pieces: AsyncIterable<Buffer>): Readable {
  return Readable.from(pieces, { objectMode: false, highWaterMark: READ_BYTES });
}
