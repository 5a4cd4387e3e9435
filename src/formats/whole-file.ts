export type ReadRange = (start: number, end: number) => Promise<Buffer>;

/** A file that is there from its first byte to its last, for formats that say at their end what they hold. */
export interface WholeFile {
  readonly bytes: number;
  readonly read: ReadRange;
}

/** Bytes per read: most of our row groups, a page, or the directory of an archive. */
export const WINDOW_BYTES = 1024 * 1024;

/** Reads what is small and lies side by side at once: one read instead of one for each, which on S3 is a request. */
export function windowed(bytes: number, read: ReadRange, windowBytes = WINDOW_BYTES): ReadRange {
  let held = { start: 0, bytes: Buffer.alloc(0) as Buffer };
  return async (start, end) => {
    if (start < held.start || end > held.start + held.bytes.length) {
      held = { start, bytes: await read(start, Math.min(bytes, Math.max(end, start + windowBytes))) };
    }
    return held.bytes.subarray(start - held.start, end - held.start);
  };
}

/** Reads a whole file, and tells failures of reading from faults of the file, whatever a library makes of them. */
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
