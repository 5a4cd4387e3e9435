import { READ_BYTES } from '../../base/limits.ts';
import type { ExportRequest } from '../../domain/export.ts';
import { columnsOf } from '../../domain/export-columns.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import { exportHeader } from '../../formats/csv-text.ts';
import { type CopySelect, compileForCopy } from '../../postgres/copy-out.ts';
import type { Filter } from '../filter.ts';
import { pageOf, profilesByTime, selectValuesFrom } from './page.ts';
import { Gathered, ndjsonText, type RowBlock, rowBlocks, separator } from './rows.ts';

/*
 * The stream: rows of all kinds in order of time. A profile stands at the moment at which it last changed, which is what
 * the range of an export is about. PostgreSQL sorts the profiles, within its work_mem and then on disk; events come in
 * order from their index. COPY holds the connection, so that the two cannot be read at once: the profiles are kept aside
 * in the file store, as they came, and merged with the events as those come.
 */

const columns = columnsOf('stream', { includeRemoved: false });

/** Returns null if the request is not about profiles. */
export function selectStreamProfiles(filter: Filter): CopySelect | null {
  const page = profilesByTime(filter);
  return page === null ? null : compileForCopy(selectValuesFrom(page, 'stream', 'stream', filter));
}

export function selectStreamEvents(filter: Filter): CopySelect {
  return compileForCopy(selectValuesFrom(pageOf('events', filter), 'events', 'stream', filter));
}

type Copied = AsyncIterable<Buffer, number>;

/** The rows of both in order of time, and in the end how many PostgreSQL says there were. */
export async function* streamBlocks(
  files: FileStore,
  profiles: Copied | null,
  events: AsyncGenerator<RowBlock, number> | null,
): AsyncGenerator<RowBlock, number> {
  if (profiles === null) return events === null ? 0 : yield* events;
  if (events === null) return yield* rowBlocks(profiles, ndjsonText);
  const aside = await keepAside(files, profiles);
  try {
    const kept = rowBlocks(readAside(files, aside), ndjsonText);
    return yield* mergeByTime(kept, events);
  } finally {
    await files.remove(aside.ref);
  }
}

interface Aside {
  readonly ref: FileRef;
  readonly rows: number;
}

async function keepAside(files: FileStore, copied: Copied): Promise<Aside> {
  const writer = await files.create();
  const pieces = copied[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      const next = await pieces.next();
      if (next.done === true) {
        isOver = true;
        return { ref: await writer.commit(), rows: next.value };
      }
      await writer.write(next.value);
    }
  } catch (error) {
    if (!isOver) await pieces.return?.(0);
    await writer.discard();
    throw error;
  }
}

async function* readAside(files: FileStore, { ref, rows }: Aside): AsyncGenerator<Buffer, number> {
  yield* files.open(ref) as AsyncIterable<Buffer>;
  return rows;
}

const SEPARATOR = separator.charCodeAt(0);
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

/** The rows of two sources, each in order of time, in one order; of the same time those of `a` first. In the end, how many. */
async function* mergeByTime(
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

export function streamCsvHeader({ escapeFormulas }: ExportRequest): Buffer {
  const names = columns.map(({ name }) => name);
  return Buffer.from(`${exportHeader(names, escapeFormulas)}\n`);
}
