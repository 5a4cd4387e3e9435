export type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** A file that can be read at any position, for formats that have a directory at the end. */
export interface WholeFile {
  readonly bytes: number;
  readonly read: ReadRange;
}

/**
 * Minimum number of bytes per read. It is enough for a page, an archive's directory or most row
 * groups that we write.
 */
export const WINDOW_BYTES = 1024 * 1024;

/** Reads small neighbouring ranges together, because each read from S3 is a request. */
export function windowed(bytes: number, read: ReadRange): ReadRange {
  let window = { start: 0, bytes: Buffer.alloc(0) as Buffer };
  return async (start, end) => {
    if (start < window.start || end > window.start + window.bytes.length) {
      window = { start, bytes: await read(start, Math.min(bytes, Math.max(end, start + WINDOW_BYTES))) };
    }
    return window.bytes.subarray(start - window.start, end - window.start);
  };
}

/**
 * Call `rethrowFailure` after an error of a library. The library's error may hide a failed read,
 * and the file would then seem damaged.
 */
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
