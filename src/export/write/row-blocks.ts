import { createHash } from 'node:crypto';

const LF = 0x0a;

/**
 * Two times end each row of a profile, which a load does not bring back. They have one length, so that they can be cut off
 * unread.
 */
const sampleTime = '2026-01-01T00:00:00.000000Z';

/** Rows as text: where one ends, and what of it is not content. */
export interface RowText {
  /** Returns a function that finds the ends of rows in one piece after another. */
  findEnds(): (piece: Buffer) => number[];
  /** A row of a profile ends with as many bytes of times. */
  readonly profileTail: number;
  /** The header of profiles ends with as many bytes that name these times. */
  readonly profileHeaderTail: number;
}

export const ndjsonText: RowText = {
  findEnds: () => lineEnds,
  profileTail: `,"first_seen_at":"${sampleTime}","last_seen_at":"${sampleTime}"}\n`.length,
  profileHeaderTail: 0,
};

export const csvText: RowText = {
  findEnds: csvEnds,
  profileTail: `,${sampleTime},${sampleTime}\n`.length,
  profileHeaderTail: ',first_seen_at,last_seen_at\n'.length,
};

/**
 * The hash of what the files of a dataset say: all rows as text, those of profiles without their last two values, which
 * say when they were seen. The same content, loaded into an empty environment and exported again, has the same hash.
 * Rows of Parquet and Avro are hashed as NDJSON has them: the three formats have one hash.
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
    this.#hash.update(header.subarray(0, Math.max(0, header.length - this.#headerTail)));
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

/** The rows of a stream are ordered by when profiles changed, which a load does not bring back. */
export function hasContentHash(dataset: string): boolean {
  return dataset !== 'stream';
}

const QUOTE = 0x22;

/** Some whole rows, line ends and all. */
export interface RowBlock {
  readonly bytes: Buffer;
  /** The end of each row; the last is the end of `bytes`. */
  readonly ends: readonly number[];
}

/** Finds the rows in what comes from COPY, or from a file it was written to. */
export async function* rowBlocks<T>(
  source: AsyncIterable<Buffer, T>,
  { findEnds: endsFinder }: RowText,
): AsyncGenerator<RowBlock, T> {
  const findEnds = endsFinder();
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
