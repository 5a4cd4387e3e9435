const firstBytes = 64 * 1024;

/** Collects the bytes of one part. Begins small and doubles, since most files are. */
export class PartBuffer {
  #buffer = Buffer.allocUnsafeSlow(0);
  #length = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  get isFull(): boolean {
    return this.#length === this.#limit;
  }

  /** What is in it; good until the next `clear`. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Copies as much as there is room for; returns the rest. */
  add(bytes: Uint8Array): Uint8Array {
    const taken = Math.min(bytes.length, this.#limit - this.#length);
    this.#makeRoom(this.#length + taken);
    this.#buffer.set(bytes.subarray(0, taken), this.#length);
    this.#length += taken;
    return bytes.subarray(taken);
  }

  clear(): void {
    this.#length = 0;
  }

  #makeRoom(needed: number): void {
    if (needed <= this.#buffer.length) return;
    const size = Math.min(this.#limit, Math.max(firstBytes, this.#buffer.length * 2, needed));
    const larger = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(larger);
    this.#buffer = larger;
  }
}
