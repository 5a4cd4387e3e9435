import { createHash } from 'node:crypto';
import type { RowBlock, RowText } from './rows.ts';

const LF = 0x0a;

/**
 * The hash of the content of a dataset's files: all rows as text, those of profiles without their last two values, the times at which
 * they were seen. The same content, loaded into an empty environment and exported again, has the same hash. Rows of Parquet are hashed
 * as NDJSON, so both formats have one hash.
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

  /** Adds the header; call once, however many files repeat it. */
  addHeader(header: Buffer): void {
    this.#hash.update(header.subarray(0, Math.max(0, header.length - this.#headerTail))).update('\n');
  }

  add(block: RowBlock): void {
    this.#hash.update(this.#tail === '\n'.length ? block.bytes : this.#withoutTail(block));
  }

  /** Hex; call once, at the end. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  /** Copies first: a call for each row would cost more than the hash. */
  #withoutTail({ bytes, ends }: RowBlock): Buffer {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafeSlow(bytes.length);
    let [filled, start] = [0, 0];
    for (const end of ends) {
      filled += bytes.copy(this.#scratch, filled, start, Math.max(start, end - this.#tail));
      this.#scratch[filled++] = LF;
      start = end;
    }
    return this.#scratch.subarray(0, filled);
  }
}
