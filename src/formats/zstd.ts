import { ColumnarDamage } from './typed-rows.ts';

/** Unpacks Zstandard into at most that many bytes. @throws ColumnarDamage if it is damaged, or unpacks to more. */
export type Unzstd = (packed: Uint8Array, maxBytes: number) => Uint8Array;

let opened: Promise<Unzstd> | null = null;

/**
 * Returns the reference decoder of Zstandard, compiled to WebAssembly. It is loaded on first use, and keeps the memory that its
 * largest page took: at most twice what its callers allow for one.
 */
export function openZstd(): Promise<Unzstd> {
  opened ??= open();
  return opened;
}

async function open(): Promise<Unzstd> {
  const { ZSTDDecoder } = await import('zstddec');
  const decoder = new ZSTDDecoder();
  await decoder.init();
  return (packed, maxBytes) => {
    if (packed.length === 0) throw new ColumnarDamage('nothing was packed');
    // The bound is the size of the output buffer; for 0 the decoder would use the size that the data itself declares.
    const plain = decoder.decode(packed, Math.max(1, maxBytes));
    // It reports a failure as an empty result, which an empty page also gives.
    if (plain.length === 0 && maxBytes > 0)
      throw new ColumnarDamage('it is damaged, or unpacks to more than is taken');
    return plain;
  };
}
