import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Fault } from '../base/errors.ts';
import { READ_BYTES } from '../base/limits.ts';
import { uuidv7 } from '../base/uuid.ts';

/**
 * Stores received files and exports, in a folder (`file-system.ts`) or on S3 (`s3-store.ts`), as
 * STORAGE_URL specifies. A file is visible once it is complete and durable. Paths never contain a
 * user's text.
 */
export interface FileStore {
  /**
   * URL of the store for other programs: file:///folder or s3://bucket/prefix, without a final
   * slash.
   */
  readonly location: string;
  /** Creates a file, which is invisible until `commit`. */
  create(folder?: FileFolder): Promise<FileWriter>;
  /** Creates a file with a given name, such as its name in another store or in a backup. */
  createAs(ref: FileRef): Promise<FileWriter>;
  /** Returns the size in bytes, or `null` for a missing file. */
  size(ref: FileRef): Promise<number | null>;
  /**
   * Returns exactly the bytes [start, end).
   * @throws Fault if the file ends before `end`, MissingFileError if it does not exist
   */
  readRange(ref: FileRef, start: number, end: number): Promise<Buffer>;
  /** Streams all bytes, or exactly [start, end). Fails if the file ends before `end`. */
  open(ref: FileRef, range?: { readonly start: number; readonly end: number }): Readable;
  /** Yields complete files below `kind/`. */
  list(kind: string): AsyncGenerator<{ readonly ref: FileRef; readonly bytes: number }>;
  /** Removes a file. A missing file is not an error. */
  remove(ref: FileRef): Promise<void>;
  /**
   * Removes the folder and its files, including uncommitted files. A missing folder is not an
   * error.
   */
  removeFolder(folder: FileFolder): Promise<void>;
  /**
   * Removes unfinished files not written to for `olderThanMs`, such as those of a killed process.
   * Returns their number.
   */
  sweepTemporary(olderThanMs: number): Promise<number>;
  /** Throws if files cannot be stored at present. */
  check(): Promise<void>;
  /**
   * Temporary URL from which callers download directly. Without this method, sluice serves the
   * files.
   */
  readonly presign?: (ref: FileRef, link: PresignedLink) => Promise<string>;
}

export interface PresignedLink {
  /** Name that browsers suggest for the file. It is generated and does not come from a user. */
  readonly filename: string;
  readonly contentType: string;
  /** The time at which the link expires, at most MAX_PRESIGNED_SECONDS from now. */
  readonly expireAt: Date;
}

export interface FileWriter {
  /** Name after `commit`. */
  readonly ref: FileRef;
  /** Writes bytes. Resolves when more bytes may follow and the buffer may be reused. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file durable and visible. */
  commit(): Promise<FileRef>;
  /** Removes the unfinished file. Does nothing after `commit`. */
  discard(): Promise<void>;
}

/** Writes a whole file and commits it. Discards the file if writing or committing fails. */
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

/** Name of a stored file. It is generated, never chosen by a user. */
export type FileRef = string & { readonly __brand: 'FileRef' };

/**
 * Folder for several files of one job: `<kind>/<uuid>` or `<kind>/<uuid>/<number>`. The name is
 * derived from the job's id, so that a dead worker's files can be found and removed.
 */
export type FileFolder = string & { readonly __brand: 'FileFolder' };

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
}

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}';
const folderPattern = new RegExp(`^[a-z]{1,20}/${uuid}(?:/\\d{1,10})?$`);
/** Form of names for formats that prescribe how files are named. */
const namedRef = `[a-z]{1,20}/${uuid}/[a-z]{1,20}/(?:\\d{5,16}-)?${uuid}(?:\\.[a-z]{1,10}){1,2}`;
const refPattern = new RegExp(
  `^(?:(?:\\d{4}-\\d{2}-\\d{2}|[a-z]{1,20}/${uuid}(?:/\\d{1,10})?)/${uuid}|${namedRef})$`,
);

/** Returns a new name: `<date>/<uuid v7>` or `<folder>/<uuid v7>`. */
export function createRef(folder?: FileFolder): FileRef {
  const parent = folder === undefined ? new Date().toISOString().slice(0, 10) : checkFolder(folder);
  return checkRef(`${parent}/${uuidv7()}`);
}

export function isRef(text: string): text is FileRef {
  return refPattern.test(text);
}

/**
 * Checks the name of a file. Throws `Fault` if the text does not name a file. Such text indicates a
 * bug or an attack.
 */
export function checkRef(ref: string): FileRef {
  if (!isRef(ref)) throw new Fault('not the name of a stored file');
  return ref;
}

export function checkFolder(folder: string): FileFolder {
  if (!folderPattern.test(folder)) throw new Fault('not the name of a folder of stored files');
  return folder as FileFolder;
}

/** Returns a stream that reads at most READ_BYTES ahead. */
export function streamOf(pieces: AsyncIterable<Buffer>): Readable {
  return Readable.from(pieces, { objectMode: false, highWaterMark: READ_BYTES });
}
