import { InputError } from '../../../src/base/errors.ts';
import type { WholeFile } from '../../../src/formats/whole-file.ts';

/** `bytes` as a stream of buffers that end at `ends`; each a copy, as buffers from outside are. */
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

/** `bytes` as a file that is read at any place. */
export function wholeFile(bytes: Buffer): WholeFile {
  return { bytes: bytes.length, read: async (start, end) => bytes.subarray(start, end) };
}

/** The message with which a file is refused, or `taken`. Any other error is thrown. */
export async function refusalOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
    return 'taken';
  } catch (error) {
    if (error instanceof InputError) return error.message;
    throw error;
  }
}

/** All ends: one byte at a time. */
export function bytewise(bytes: Buffer): number[] {
  return Array.from(bytes, (_, index) => index + 1);
}
