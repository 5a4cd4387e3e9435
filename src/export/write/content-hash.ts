import { createHash, type Hash, hash } from 'node:crypto';
import { sumBytes } from '../../lake/group-sums.ts';
import type { LakeGroup } from '../../lake/row-group.ts';
import { hashOf, type RowBlock, type RowText } from './rows.ts';

const [QUOTE, COMMA, LF] = [0x22, 0x2c, 0x0a];
/** Rows of a block, on average: few enough for row groups to end with one, enough for their hashes to cost little. */
const blockRows = 64;

/** Tells whether a row is the last of a block: by its id, which begins there, in JSON as in CSV. */
export function endsBlock(bytes: Uint8Array, idStart: number): boolean {
  let end = idStart;
  while (end < bytes.length && bytes[end] !== QUOTE && bytes[end] !== COMMA) end++;
  return (hashOf(bytes, idStart, end) & (blockRows - 1)) === 0;
}

/**
 * The hash of what the files of a dataset say: all rows as text, those of profiles without their last two values, which
 * say when they were seen. The same content, loaded into an empty environment and exported again, has the same hash.
 * Rows of Parquet are hashed as NDJSON has them: both formats have one hash.
 *
 * It is made of the sum of the hashes of blocks of rows. The rows themselves say where a block ends, so that the sum of a row group of
 * the lake, kept with its file, stands for its rows.
 */
export class ContentHash {
  readonly #sum = new Uint32Array(sumBytes / Uint32Array.BYTES_PER_ELEMENT);
  readonly #idStart: number;
  readonly #tail: number;
  readonly #headerTail: number;
  /** The hash of the rows since the last block ended. */
  #open: Hash | null = null;
  #scratch = Buffer.alloc(0);

  constructor(dataset: string, text: RowText) {
    const isOfProfiles = dataset === 'users' || dataset === 'companies';
    this.#idStart = text.idStart[dataset] ?? 0;
    this.#tail = isOfProfiles ? text.profileTail : '\n'.length;
    this.#headerTail = isOfProfiles ? text.profileHeaderTail : '\n'.length;
  }

  /** Adds the header; call once, however many files repeat it. */
  addHeader(header: Buffer): void {
    const names = header.subarray(0, Math.max(0, header.length - this.#headerTail));
    this.#endBlock(Buffer.concat([names, Buffer.from('\n')]));
  }

  add(block: RowBlock): void {
    const { bytes, ends } = this.#tail === '\n'.length ? block : this.#withoutTail(block);
    let [first, start] = [0, 0];
    for (const end of ends) {
      if (endsBlock(bytes, start + this.#idStart)) {
        this.#endBlock(bytes.subarray(first, end));
        first = end;
      }
      start = end;
    }
    if (first === start) return;
    this.#open ??= createHash('sha256');
    this.#open.update(bytes.subarray(first, start));
  }

  /** Adds the rows of a group: unread, if its sum is known and a block begins with it. */
  addGroup({ sum }: Pick<LakeGroup, 'sum'>, texts: () => Iterable<RowBlock>): void {
    if (sum !== null && this.#open === null) this.#addUp(sum);
    else for (const text of texts()) this.add(text);
  }

  /** Returns the sum of the blocks; null: the last has not ended. */
  sum(): Buffer | null {
    if (this.#open !== null) return null;
    const sum = Buffer.alloc(sumBytes);
    for (const [at, part] of this.#sum.entries()) sum.writeUInt32LE(part, at * Uint32Array.BYTES_PER_ELEMENT);
    return sum;
  }

  /** Hex; call once, at the end. */
  digest(): string {
    if (this.#open !== null) this.#endBlock(Buffer.alloc(0));
    return hash('sha256', this.sum() ?? '', 'hex');
  }

  #endBlock(rows: Buffer): void {
    this.#addUp(this.#open?.update(rows).digest() ?? hash('sha256', rows, 'buffer'));
    this.#open = null;
  }

  /** Part by part: each passes over the greatest number to 0. */
  #addUp(digest: Buffer): void {
    for (let at = 0; at < this.#sum.length; at++)
      this.#sum[at] = (this.#sum[at] as number) + digest.readUInt32LE(at * Uint32Array.BYTES_PER_ELEMENT);
  }

  /** Copies first: a call for each row would cost more than the hash. */
  #withoutTail({ bytes, ends: all }: RowBlock): RowBlock {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafeSlow(bytes.length);
    const ends: number[] = [];
    let [filled, start] = [0, 0];
    for (const end of all) {
      filled += bytes.copy(this.#scratch, filled, start, Math.max(start, end - this.#tail));
      this.#scratch[filled++] = LF;
      ends.push(filled);
      start = end;
    }
    return { bytes: this.#scratch, ends };
  }
}
