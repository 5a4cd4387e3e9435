/**
 * The stretch of the file that is being scanned: what is left of a record that is not complete, and the bytes after
 * it, side by side. One piece of memory, reused; it grows to twice the longest record plus a read buffer.
 */
export class Window {
  /** Byte of the file at which `bytes` starts. */
  position = 0;
  /** Valid until the next `append`. */
  bytes = Buffer.alloc(0);
  #memory = Buffer.alloc(0);
  /** Where in the memory `bytes` starts. */
  #start = 0;

  append(added: Buffer): void {
    const kept = this.bytes;
    const length = kept.length + added.length;
    // Moved where that costs no more than what is added, and stays in the processor's cache; or when there is no room.
    if (kept.length <= added.length || this.#start + length > this.#memory.length) {
      // Twice what is kept, so that it is moved again only when as much has come: small buffers cost no more than large ones.
      const room = roomFor(2 * kept.length + added.length);
      if (room > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(room);
      // Between two pieces of memory or within one: `set` copes with overlap.
      this.#memory.set(kept, 0);
      this.#start = 0;
    }
    this.#memory.set(added, this.#start + kept.length);
    this.bytes = this.#memory.subarray(this.#start, this.#start + length);
  }

  /** Drops the first `count` bytes. */
  consume(count: number): void {
    this.position += count;
    this.#start += count;
    this.bytes = this.bytes.subarray(count);
  }
}

function roomFor(length: number): number {
  return 2 ** Math.ceil(Math.log2(length));
}
