import { createHash } from 'node:crypto';
import type { Dataset, ExportFormat } from '../../domain/export.ts';
import type { RowBlock } from './split-files.ts';

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

export type TextFormat = Exclude<ExportFormat, 'parquet'>;

/**
 * What each row of a profile ends in: the two times that a load does not bring back. They have one length, so that they
 * can be cut off unread.
 */
const sampleTime = '2026-01-01T00:00:00.000000Z';
const tails: Readonly<Record<TextFormat, string>> = {
  ndjson: `,"first_seen_at":"${sampleTime}","last_seen_at":"${sampleTime}"}\n`,
  csv: `,${sampleTime},${sampleTime}\n`,
};

function tailLength(format: TextFormat): number {
  return tails[format].length;
}

/** What the header of a CSV of profiles ends in. */
const csvHeaderTail = ',first_seen_at,last_seen_at\n';

/** Events are told apart by their time: nothing of them is cut off, and they have no content hash of their own. */
export function hasContentHash(dataset: Dataset): boolean {
  return dataset !== 'events';
}
