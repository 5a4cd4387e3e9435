import { ColumnarDamage } from './typed-rows.ts';

/** Unpacks what Zstandard packed into at most so many bytes. @throws ColumnarDamage for what is damaged, or unpacks to more. */
export type Unzstd = (packed: Uint8Array, maxBytes: number) => Uint8Array;

let opened: Promise<Unzstd> | null = null;

/**
 * Returns the decoder of Zstandard itself, compiled to WebAssembly. It is loaded when it is first needed, and keeps the memory
 * that its largest pages took: no more than twice what its callers allow for one.
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
    // The bound is the size of the buffer that it writes to. For 0 it would take the size that the bytes themselves name.
    const plain = decoder.decode(packed, Math.max(1, maxBytes));
    // Its failures come back as no bytes, which is also what nothing unpacks to.
    if (plain.length === 0 && maxBytes > 0)
      throw new ColumnarDamage('it is damaged, or unpacks to more than is taken');
    return plain;
  };
}
