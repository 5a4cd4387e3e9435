import { READ_BYTES } from '../../base/limits.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import { type CopySelect, compileForCopy } from '../../postgres/copy-out.ts';
import type { Filter } from '../filter.ts';
import { pageOf, profilesByTime, selectValuesFrom } from './page.ts';
import { Gathered, ndjsonText, type RowBlock, rowBlocks, separator } from './rows.ts';

// Profiles and events in one file, in chronological order. A profile has the time of its last
// change. Only one COPY can run per connection, so the sorted profiles are stored first and then
// merged with the events, which are read in index order.

/**
 * Returns the query for the profiles of a stream, or `null` if the request does not include
 * profiles.
 */
export function selectStreamProfiles(filter: Filter): CopySelect | null {
  const page = profilesByTime(filter);
  return page === null ? null : compileForCopy(selectValuesFrom(page, 'stream', 'stream', filter));
}

export function selectStreamEvents(filter: Filter): CopySelect {
  return compileForCopy(selectValuesFrom(pageOf('events', filter), 'events', 'stream', filter));
}

type Copied = AsyncIterable<Buffer, number>;

/** Yields the rows of a stream. At the end, returns the number of rows that PostgreSQL reports. */
export async function* streamBlocks(
  files: FileStore,
  profiles: Copied | null,
  events: AsyncGenerator<RowBlock, number> | null,
): AsyncGenerator<RowBlock, number> {
  if (profiles === null) return events === null ? 0 : yield* events;
  if (events === null) return yield* rowBlocks(profiles, ndjsonText);
  const profileFile = await storeRows(files, profiles);
  try {
    const profileRows = rowBlocks(readStoredRows(files, profileFile), ndjsonText);
    return yield* mergeByTime(profileRows, events);
  } finally {
    await files.remove(profileFile.ref);
  }
}

interface StoredRows {
  readonly ref: FileRef;
  readonly rows: number;
}

async function storeRows(files: FileStore, copied: Copied): Promise<StoredRows> {
  const writer = await files.create();
  const pieces = copied[Symbol.asyncIterator]();
  let isComplete = false;
  try {
    for (;;) {
      const next = await pieces.next();
      if (next.done === true) {
        isComplete = true;
        return { ref: await writer.commit(), rows: next.value };
      }
      await writer.write(next.value);
    }
  } catch (error) {
    if (!isComplete) await pieces.return?.(0);
    await writer.discard();
    throw error;
  }
}

async function* readStoredRows(files: FileStore, { ref, rows }: StoredRows): AsyncGenerator<Buffer, number> {
  yield* files.open(ref) as AsyncIterable<Buffer>;
  return rows;
}

const SEPARATOR = separator.charCodeAt(0);
const separatorsBefore = 3;

/**
 * Position in the rows of a source. `time` is the time of the next row, or Infinity after the last
 * row.
 */
class Cursor {
  time = Number.NEGATIVE_INFINITY;
  readonly #source: AsyncIterator<RowBlock, number>;
  #block: RowBlock = { bytes: Buffer.alloc(0), ends: [] };
  #row = 0;
  #start = 0;
  #rows = 0;

  constructor(source: AsyncIterator<RowBlock, number>) {
    this.#source = source;
  }

  get rows(): number {
    return this.#rows;
  }

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

  /**
   * Moves the rows before `until` to `to`. If `withEqual` is true, also moves the rows at `until`.
   */
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

/**
 * Merges the rows of two sources in chronological order. At equal times, rows of `a` come first.
 * Returns the number of rows.
 */
async function* mergeByTime(
  a: AsyncIterator<RowBlock, number>,
  b: AsyncIterator<RowBlock, number>,
): AsyncGenerator<RowBlock, number> {
  const first = new Cursor(a);
  const second = new Cursor(b);
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

/** Returns the time of a row in microseconds since 1970. */
function timeOf(bytes: Buffer, start: number): number {
  let at = start;
  for (let passed = 0; passed < separatorsBefore; passed++) at = bytes.indexOf(SEPARATOR, at) + 1;
  return Number(bytes.toString('latin1', at, bytes.indexOf(SEPARATOR, at)));
}
