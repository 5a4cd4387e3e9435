import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { type Compressors, snappyUncompress } from 'hyparquet';
import { DamagedFile } from '../base/errors.ts';
import { MiB } from '../base/limits.ts';

const MAX_PARQUET_PAGE_BYTES = 32 * MiB;

/** Unpacks a page. `bytes` is the unpacked size, beyond which decoders never write. */
type UnpackPage = (packed: Uint8Array, bytes: number) => Uint8Array;

const codecs: Readonly<Record<string, () => UnpackPage | Promise<UnpackPage>>> = {
  SNAPPY: () => unpackSnappy,
  GZIP: () => (packed, bytes) => gunzipSync(packed, { maxOutputLength: bytes }),
  BROTLI: () => (packed, bytes) => brotliDecompressSync(packed, { maxOutputLength: bytes }),
  ZSTD: openZstd,
  LZ4_RAW: () => unpackLz4,
  LZ4: () => (packed, bytes) => unpackHadoopLz4(packed, bytes) ?? unpackLz4(packed, bytes),
};

/**
 * Loads the decoders for the named codecs.
 * @throws DamagedFile for an unsupported codec
 */
export async function openCodecs(names: readonly string[]): Promise<Compressors> {
  const compressors: Record<string, UnpackPage> = {};
  for (const name of new Set(names)) {
    if (name === 'UNCOMPRESSED') continue;
    const unpack = await codecs[name]?.();
    if (unpack === undefined) {
      throw new DamagedFile(
        `it is packed with ${name}; write it with ZSTD, Snappy, LZ4_RAW, gzip, Brotli or none`,
      );
    }
    compressors[name] = (packed, bytes) => {
      if (!(bytes >= 0 && bytes <= MAX_PARQUET_PAGE_BYTES)) {
        throw new DamagedFile(`a page of ${bytes} bytes; at most ${MAX_PARQUET_PAGE_BYTES} are taken`);
      }
      return bytes === 0 ? new Uint8Array(0) : unpack(packed, bytes);
    };
  }
  return compressors;
}

let zstd: Promise<UnpackPage> | null = null;

/** Zstandard's reference decoder (WebAssembly). Its memory stays as large as the largest page. */
function openZstd(): Promise<UnpackPage> {
  zstd ??= import('zstddec').then(async ({ ZSTDDecoder }) => {
    const decoder = new ZSTDDecoder();
    await decoder.init();
    // For an empty page, the decoder would read out of bounds. If decoding fails, its result is
    // empty, and the caller refuses it.
    return (packed, bytes) => (packed.length === 0 ? packed : decoder.decode(packed, bytes));
  });
  return zstd;
}

function unpackSnappy(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  snappyUncompress(packed, plain);
  return plain;
}

/**
 * Unpacks Hadoop's LZ4, where two lengths precede each block. Returns `null` if they are missing.
 */
function unpackHadoopLz4(packed: Uint8Array, bytes: number): Uint8Array | null {
  const plain = new Uint8Array(bytes);
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  let to = 0;
  let from = 0;
  while (from < packed.length) {
    if (from + 8 > packed.length) return null;
    const long = view.getUint32(from);
    const short = view.getUint32(from + 4);
    from += 8;
    if (from + short > packed.length || to + long > bytes) return null;
    plain.set(unpackLz4(packed.subarray(from, from + short), long), to);
    from += short;
    to += long;
  }
  return plain.subarray(0, to);
}

/**
 * Unpacks a block of LZ4. This is our own decoder, because decoders from npm return zeros as values
 * if a block ends early.
 */
function unpackLz4(packed: Uint8Array, bytes: number): Uint8Array {
  const plain = new Uint8Array(bytes);
  let from = 0;
  let to = 0;
  const length = (nibble: number): number => {
    let sum = nibble;
    let next = nibble === 15 ? 255 : 0;
    while (next === 255) {
      next = packed[from++] ?? 0;
      sum += next;
    }
    return sum;
  };
  while (from < packed.length) {
    const token = packed[from++] ?? 0;
    const literals = length(token >>> 4);
    if (from + literals > packed.length || to + literals > bytes) break;
    plain.set(packed.subarray(from, from + literals), to);
    from += literals;
    to += literals;
    // The last sequence of a block has no match.
    if (from === packed.length) return plain.subarray(0, to);
    const distance = (packed[from] ?? 0) | ((packed[from + 1] ?? 0) << 8);
    from += 2;
    const end = to + length(token & 15) + 4;
    if (distance === 0 || distance > to || end > bytes) break;
    if (distance >= end - to) plain.copyWithin(to, to - distance, end - distance);
    else for (let at = to; at < end; at++) plain[at] = plain[at - distance] ?? 0;
    to = end;
  }
  throw new DamagedFile('a page is not LZ4');
}
