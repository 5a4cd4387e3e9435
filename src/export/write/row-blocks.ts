import type { TextFormat } from './text-format.ts';

const LF = 0x0a;
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
