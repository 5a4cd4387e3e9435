import { createHash } from 'node:crypto';
import type { RowBlock } from './row-blocks.ts';
import { csvHeaderTail, type TextFormat, tailLength } from './text-format.ts';

const LF = 0x0a;

/**
 * The hash of what an export of profiles says apart from when it was seen: the rows of all its files, each without its
 * last two values. The same content, loaded into an empty environment and exported again, has the same hash.
 */
export class ContentHash {
  readonly #hash = createHash('sha256');
  readonly #tail: number;
  #scratch = Buffer.alloc(0);

  constructor(format: TextFormat) {
    this.#tail = tailLength(format);
  }

  /** Once, however many files repeat it. */
  addCsvHeader(header: Buffer): void {
    this.#hash.update(header.subarray(0, Math.max(0, header.length - csvHeaderTail.length)));
    this.#hash.update('\n');
  }

  /** Gathered first: a call for each row would cost more than the hash. */
  add({ bytes, ends }: RowBlock): void {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafeSlow(bytes.length);
    const scratch = this.#scratch;
    let filled = 0;
    let start = 0;
    for (const end of ends) {
      filled += bytes.copy(scratch, filled, start, Math.max(start, end - this.#tail));
      scratch[filled++] = LF;
      start = end;
    }
    this.#hash.update(scratch.subarray(0, filled));
  }

  /** Hex; call once, at the end. */
  digest(): string {
    return this.#hash.digest('hex');
  }
}
