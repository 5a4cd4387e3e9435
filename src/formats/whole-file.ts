export type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** A complete file, for formats with a directory at their end. */
export interface WholeFile {
  readonly bytes: number;
  readonly read: ReadRange;
}

/** Bytes per read, enough for most of our row groups, a page, or the directory of an archive. */
export const WINDOW_BYTES = 1024 * 1024;

/** Reads small neighbouring ranges together. On S3 each read is a request. */
export function windowed(bytes: number, read: ReadRange, windowBytes = WINDOW_BYTES): ReadRange {
  let window = { start: 0, bytes: Buffer.alloc(0) as Buffer };
  return async (start, end) => {
    if (start < window.start || end > window.start + window.bytes.length) {
      window = { start, bytes: await read(start, Math.min(bytes, Math.max(end, start + windowBytes))) };
    }
    return window.bytes.subarray(start - window.start, end - window.start);
  };
}

/** Separates failures to read from faults of the file, even if a library hides the difference. */
export function watched(file: WholeFile): { readonly read: ReadRange; rethrowFailure(): void } {
  let failure: { readonly error: unknown } | null = null;
  return {
    read: (start, end) =>
      file.read(start, end).catch((error: unknown) => {
        failure = { error };
        throw error;
      }),
    rethrowFailure() {
      if (failure !== null) throw failure.error;
    },
  };
}
