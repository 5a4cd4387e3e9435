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

/** All ends: one byte at a time. */
export function bytewise(bytes: Buffer): number[] {
  return Array.from(bytes, (_, index) => index + 1);
}
