import { READ_BYTES } from '../../domain/limits.ts';
import type { RowBlock } from './row-blocks.ts';

const SEPARATOR = 0x02;

const separatorsBefore = 3;

/** Rows of one source, each of which has its time; the next one is `time`, or Infinity after the last. */
class Cursor {
  time = Number.NEGATIVE_INFINITY;
  readonly #source: AsyncIterator<RowBlock, number>;
  #block: RowBlock = { bytes: Buffer.alloc(0), ends: [] };
  #row = 0;
  #start = 0;
  /** The source's own count at its end. */
  #rows = 0;

  constructor(source: AsyncIterator<RowBlock, number>) {
    this.#source = source;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Makes sure that there is a next row, if there is one at all. */
  async fill(): Promise<void> {
    while (this.#row === this.#block.ends.length && this.time !== Number.POSITIVE_INFINITY) {
      const next = await this.#source.next();
      if (next.done === true) {
        this.#rows = next.value;
        this.time = Number.POSITIVE_INFINITY;
        return;
      }
      this.#block = next.value;
      this.#row = 0;
      this.#start = 0;
      if (this.#block.ends.length > 0) this.time = timeOf(this.#block.bytes, 0);
    }
  }

  /** Moves the rows of the block that come before `until` (or with it, if `withEqual`) to `to`. */
  take(until: number, withEqual: boolean, to: Gathered): void {
    const { bytes, ends } = this.#block;
    const first = this.#start;
    const before = to.length;
    while (this.#row < ends.length && (this.time < until || (withEqual && this.time === until))) {
      const end = ends[this.#row++] ?? bytes.length;
      to.ends.push(before + end - first);
      this.#start = end;
      if (this.#row < ends.length) this.time = timeOf(bytes, end);
    }
    to.add(bytes.subarray(first, this.#start));
  }

  async close(): Promise<void> {
    await this.#source.return?.(0);
  }
}

/** Rows that go on together: where the two sources alternate, each brings a row at a time. */
class Gathered {
  readonly ends: number[] = [];
  length = 0;
  readonly #pieces: Buffer[] = [];

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.length += piece.length;
  }

  block(): RowBlock {
    return { bytes: Buffer.concat(this.#pieces, this.length), ends: this.ends };
  }
}

/** The rows of two sources, each in order of time, in one order; of the same time those of `a` first. In the end, how many. */
export async function* mergeByTime(
  a: AsyncIterator<RowBlock, number>,
  b: AsyncIterator<RowBlock, number>,
): AsyncGenerator<RowBlock, number> {
  const [first, second] = [new Cursor(a), new Cursor(b)];
  let gathered = new Gathered();
  try {
    for (;;) {
      await first.fill();
      await second.fill();
      if (first.time === Number.POSITIVE_INFINITY && second.time === Number.POSITIVE_INFINITY) break;
      if (first.time <= second.time) first.take(second.time, true, gathered);
      else second.take(first.time, false, gathered);
      if (gathered.length < READ_BYTES) continue;
      yield gathered.block();
      gathered = new Gathered();
    }
    if (gathered.length > 0) yield gathered.block();
    return first.rows + second.rows;
  } finally {
    await first.close();
    await second.close();
  }
}

/** Microseconds since 1970, of the row that starts there. */
function timeOf(bytes: Buffer, start: number): number {
  let at = start;
  for (let passed = 0; passed < separatorsBefore; passed++) at = bytes.indexOf(SEPARATOR, at) + 1;
  return Number(bytes.toString('latin1', at, bytes.indexOf(SEPARATOR, at)));
}
