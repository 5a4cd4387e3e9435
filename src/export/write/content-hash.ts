import { createHash } from 'node:crypto';
import type { RowBlock, RowText } from './rows.ts';

const LF = 0x0a;

/**
 * Hashes the rows of a dataset as text, without the two times of each profile row. It is the same
 * after loading into an empty environment, and for NDJSON and Parquet.
 */
export class ContentHash {
  readonly #hash = createHash('sha256');
  readonly #tail: number;
  readonly #headerTail: number;
  #scratch = Buffer.alloc(0);

  constructor(dataset: string, text: RowText) {
    const isOfProfiles = dataset === 'users' || dataset === 'companies';
    this.#tail = isOfProfiles ? text.profileTail : '\n'.length;
    this.#headerTail = isOfProfiles ? text.profileHeaderTail : '\n'.length;
  }

  /** Every file repeats the header, but the hash covers it once. */
  addHeader(header: Buffer): void {
    this.#hash.update(header.subarray(0, Math.max(0, header.length - this.#headerTail))).update('\n');
  }

  add(block: RowBlock): void {
    this.#hash.update(this.#tail === '\n'.length ? block.bytes : this.#withoutTail(block));
  }

  /** May be called only once. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /** Hashing each row separately would cost more than copying. */
  #withoutTail({ bytes, ends }: RowBlock): Buffer {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafeSlow(bytes.length);
    let filled = 0;
    let start = 0;
    for (const end of ends) {
      filled += bytes.copy(this.#scratch, filled, start, Math.max(start, end - this.#tail));
      this.#scratch[filled++] = LF;
      start = end;
    }
    return this.#scratch.subarray(0, filled);
  }
}
