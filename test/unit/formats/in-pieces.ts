import { InputError } from '../../../src/base/errors.ts';
import type { WholeFile } from '../../../src/formats/whole-file.ts';

/** Streams a copy of `bytes`, split at the positions in `ends`. */
export async function* inPieces(bytes: Buffer, ends: readonly number[]): AsyncGenerator<Buffer> {
  let start = 0;
  for (const end of [...ends, bytes.length]) {
    if (end > start) yield Buffer.from(bytes.subarray(start, end));
    start = Math.max(start, end);
  }
}

export async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}

export function wholeFile(bytes: Buffer): WholeFile {
  return { bytes: bytes.length, read: async (start, end) => bytes.subarray(start, end) };
}

/**
 * Returns the message with which a file is refused, or `taken` if the file is not refused. Throws
 * any other error.
 */
export async function refusalOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
    return 'taken';
  } catch (error) {
    if (error instanceof InputError) return error.message;
    throw error;
  }
}

export function bytewise(bytes: Buffer): number[] {
  return Array.from(bytes, (_, index) => index + 1);
}
