import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { snappyUncompress } from 'hyparquet';
import { DamagedFile } from '../domain/errors.ts';
import { MAX_PARQUET_PAGE_BYTES } from '../domain/limits.ts';
import { openZstd } from './decompress.ts';

/** Unpacks a page into a new buffer of exactly that many bytes. Throws if it unpacks to any other number. */
export type UnpackPage = (packed: Uint8Array, bytes: number) => Uint8Array;

/** The decoders. None of them writes more than `bytes`, whatever the page contains. */
const codecs: ReadonlyMap<string, UnpackPage> = new Map<string, UnpackPage>([
  ['UNCOMPRESSED', (packed) => packed],
  ['SNAPPY', unpackSnappy],
  ['GZIP', (packed, bytes) => new Uint8Array(gunzipSync(packed, { maxOutputLength: Math.max(1, bytes) }))],
  [
    'BROTLI',
    (packed, bytes) => new Uint8Array(brotliDecompressSync(packed, { maxOutputLength: Math.max(1, bytes) })),
  ],
  ['LZ4_RAW', unpackLz4],
  ['LZ4', (packed, bytes) => unpackHadoopLz4(packed, bytes) ?? unpackLz4(packed, bytes)],
]);

export async function openCodec(name: string): Promise<UnpackPage> {
  const unpack = name === 'ZSTD' ? await openZstd() : codecs.get(name);
  if (unpack === undefined) {
    throw new DamagedFile(
      `it is packed with ${name}; write it with ZSTD, Snappy, LZ4_RAW, gzip, Brotli or none`,
    );
  }
  return (packed, bytes) => {
    checkPageBytes(bytes);
    if (bytes === 0) return new Uint8Array(0);
    const plain = unpack(packed, bytes);
    if (plain.length !== bytes) throw new DamagedFile('a page has another length than it says');
    return plain;
  };
}

export function checkPageBytes(bytes: number): void {
  if (bytes >= 0 && bytes <= MAX_PARQUET_PAGE_BYTES) return;
  throw new DamagedFile(`a page of ${bytes} bytes; at most ${MAX_PARQUET_PAGE_BYTES} are taken`);
}

function unpackSnappy(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  snappyUncompress(packed, plain);
  return plain;
}

/** Unpacks Hadoop's LZ4: blocks, each preceded by two lengths. Returns `null` if the page is a block without them. */
function unpackHadoopLz4(packed: Uint8Array, bytes: number): Uint8Array | null {
  const plain = new Uint8Array(bytes);
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  let [from, to] = [0, 0];
  while (from < packed.length) {
    if (from + 8 > packed.length) return null;
    const [long, short] = [view.getUint32(from), view.getUint32(from + 4)];
    from += 8;
    if (from + short > packed.length || to + long > bytes) return null;
    plain.set(unpackLz4(packed.subarray(from, from + short), long), to);
    from += short;
    to += long;
  }
  return plain.subarray(0, to);
}

/** Unpacks a block of LZ4. The decoders on npm leave zeros for values if a block ends early. */
function unpackLz4(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  let [from, to] = [0, 0];
  const length = (nibble: number): number => {
    let sum = nibble;
    for (let more = nibble === 15 ? 255 : 0; more === 255; sum += more) {
      if (from >= packed.length) throw wrongLz4();
      more = packed[from++] ?? 0;
    }
    return sum;
  };
  while (from < packed.length) {
    const token = packed[from++] ?? 0;
    const literals = length(token >>> 4);
    if (from + literals > packed.length || to + literals > bytes) throw wrongLz4();
    plain.set(packed.subarray(from, from + literals), to);
    from += literals;
    to += literals;
    // The last sequence has no match.
    if (from === packed.length) return plain.subarray(0, to);
    const distance = (packed[from] ?? 0) | ((packed[from + 1] ?? 0) << 8);
    from += 2;
    const end = to + length(token & 15) + 4;
    if (distance === 0 || distance > to || end > bytes) throw wrongLz4();
    if (distance >= end - to) plain.copyWithin(to, to - distance, end - distance);
    else for (let at = to; at < end; at++) plain[at] = plain[at - distance] ?? 0;
    to = end;
  }
  throw wrongLz4();
}

function wrongLz4(): DamagedFile {
  return new DamagedFile('a page is not LZ4');
}
