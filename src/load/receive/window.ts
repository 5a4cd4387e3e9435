/**
 * The stretch of the file that is being scanned: what is left of a record that is not complete, and the bytes after
 * it, side by side. One piece of memory, reused; it grows to the longest record plus a read buffer.
 */
export class Window {
  /** Byte of the file at which `bytes` starts. */
  position = 0;
  /** Valid until the next `append`. */
  bytes = Buffer.alloc(0);
  #memory = Buffer.alloc(0);

  append(added: Buffer): void {
    const kept = this.bytes;
    const length = kept.length + added.length;
    if (length > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(roomFor(length));
    // Between two pieces of memory or within one: `set` copes with overlap.
    this.#memory.set(kept, 0);
    this.#memory.set(added, kept.length);
    this.bytes = this.#memory.subarray(0, length);
  }

  /** Drops the first `count` bytes. */
  consume(count: number): void {
    this.position += count;
    this.bytes = this.bytes.subarray(count);
  }
}

function roomFor(length: number): number {
  return 2 ** Math.ceil(Math.log2(length));
}
