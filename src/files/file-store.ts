import type { Readable } from 'node:stream';

/** Where received files live. Two implementations: a directory, and (to come) S3. */
export interface FileStore {
  /** Starts a new file that nobody can see until `commit`. */
  create(): Promise<FileWriter>;
  /** Exactly the bytes [start, end); throws `Fault` if the file is shorter, `MissingFileError` if it is gone. */
  readRange(ref: FileRef, start: number, end: number): Promise<Buffer>;
  /** The whole file as a stream. */
  open(ref: FileRef): Readable;
  /** Removing what is not there is no error. */
  remove(ref: FileRef): Promise<void>;
}

export interface FileWriter {
  /** Resolves when more may be written. The buffer is not kept. */
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the file durable and visible; returns the name to ask for it by. */
  commit(): Promise<FileRef>;
  /** Leaves nothing behind; does nothing after `commit`. */
  discard(): Promise<void>;
}

/** A generated name, never a user's. */
export type FileRef = string & { readonly __brand: 'FileRef' };

export class MissingFileError extends Error {
  override readonly name = 'MissingFileError';
}
