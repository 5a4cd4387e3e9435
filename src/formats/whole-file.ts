export type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** A complete file, for formats with a directory at their end. */
export interface WholeFile {
  readonly bytes: number;
  readonly read: ReadRange;
}

/** Bytes per read: most of our row groups, a page, or an archive's directory. */
export const WINDOW_BYTES = 1024 * 1024;

/** Reads small neighbouring ranges at once. On S3 each read is a request. */
export function windowed(bytes: number, read: ReadRange, windowBytes = WINDOW_BYTES): ReadRange {
  let held = { start: 0, bytes: Buffer.alloc(0) as Buffer };
  return async (start, end) => {
    if (start < held.start || end > held.start + held.bytes.length) {
      held = { start, bytes: await read(start, Math.min(bytes, Math.max(end, start + windowBytes))) };
    }
    return held.bytes.subarray(start - held.start, end - held.start);
  };
}

/** Separates read failures from faults of the file, whatever a library makes of them. */
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
