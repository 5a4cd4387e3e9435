import { createHash } from 'node:crypto';
import type { Dataset, ExportFormat } from '../../domain/export.ts';

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

const QUOTE = 0x22;

/** Some whole rows, line ends and all. */
export interface RowBlock {
  readonly bytes: Buffer;
  /** Where each row ends, the last at the end of `bytes`. */
  readonly ends: readonly number[];
}

/** Finds the rows in what comes from COPY, or from a file it was written to. */
export async function* rowBlocks<T>(
  source: AsyncIterable<Buffer, T>,
  format: TextFormat,
): AsyncGenerator<RowBlock, T> {
  const findEnds = format === 'csv' ? csvEnds() : lineEnds;
  const iterator = source[Symbol.asyncIterator]();
  let rest: Buffer[] = [];
  try {
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) {
        // A last row without its line end is none that we wrote; it is passed on all the same, for the count to be off.
        if (rest.length > 0) {
          const bytes = Buffer.concat(rest);
          yield { bytes, ends: [bytes.length] };
        }
        return next.value;
      }
      const piece = next.value;
      const ends = findEnds(piece);
      const last = ends.at(-1);
      if (last === undefined) {
        if (piece.length > 0) rest.push(piece);
        continue;
      }
      const before = rest.reduce((sum, { length }) => sum + length, 0);
      const bytes =
        before === 0 ? piece.subarray(0, last) : Buffer.concat([...rest, piece.subarray(0, last)]);
      rest = last === piece.length ? [] : [piece.subarray(last)];
      yield { bytes, ends: before === 0 ? ends : ends.map((end) => end + before) };
    }
  } finally {
    await iterator.return?.(undefined as T);
  }
}

/** JSON text holds no line break. */
function lineEnds(piece: Buffer): number[] {
  const ends: number[] = [];
  for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, at + 1)) ends.push(at + 1);
  return ends;
}

/** CSV may, within quotes; a doubled quote closes and opens. */
function csvEnds(): (piece: Buffer) => number[] {
  let quoted = false;
  return (piece) => {
    if (!quoted && !piece.includes(QUOTE)) return lineEnds(piece);
    const ends: number[] = [];
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === LF && !quoted) ends.push(at + 1);
    }
    return ends;
  };
}
