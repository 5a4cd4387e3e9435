import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { Fault } from '../domain/errors.ts';
import type { FileRef, FileStore } from '../files/file-store.ts';
import type { ColumnStatistics, DataFile } from '../postgres/stores/lake.ts';
import { layouts } from './iceberg.ts';

/*
 * The data files of the lake are Parquet files as exports have them, each in order of time. Whoever reads one holds a row group at a
 * time (2 500 events or 512 KiB before they were packed) and the footer (some 2 KiB for each of them).
 */

export interface LakeEvent {
  readonly event_id: string;
  readonly event_type: string;
  readonly event_name: string;
  readonly user_id: string;
  readonly company_id: string | null;
  readonly source: string;
  /** Microseconds since 1970. */
  readonly micros: number;
  /** JSON, as PostgreSQL wrote it. */
  readonly metadata: string;
}

interface ParquetEvent extends Omit<LakeEvent, 'micros' | 'company_id'> {
  readonly company_id?: string | null;
  readonly inserted_at: bigint;
}

const parsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  // TextDecoder would leave out a mark at the beginning of a text.
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
};

/** Reads all events of a file, a row group at a time. @throws Fault if they are not as many as they should be. */
export async function* readEvents(
  files: FileStore,
  file: { readonly ref: FileRef; readonly bytes: number; readonly rows: number },
): AsyncGenerator<LakeEvent[]> {
  const stored = storedBuffer(files, file);
  const metadata = await parquetMetadataAsync(stored);
  let rows = 0;
  for (const group of metadata.row_groups) {
    const count = Number(group.num_rows);
    const events = (await parquetReadObjects({
      file: await holdGroup(stored, group),
      metadata,
      rowStart: rows,
      rowEnd: rows + count,
      columns: layouts.events.columns.map(({ name }) => name),
      parsers,
    })) as unknown as ParquetEvent[];
    rows += count;
    yield events.map(toEvent);
  }
  if (rows !== file.rows) throw new Fault(`a file of the lake holds ${rows} events, not ${file.rows}`);
}

/** The longest text that is a bound as it is; of a longer one only the beginning is given, as the lower bound. */
const maxBoundBytes = 64;

/** Reads the statistics of each column from the footer. */
export async function readStatistics(
  files: FileStore,
  file: { readonly ref: FileRef; readonly bytes: number },
): Promise<Record<string, ColumnStatistics>> {
  const { row_groups: groups } = await parquetMetadataAsync(storedBuffer(files, file), { parsers });
  const found: Record<string, { bytes: number; nulls: number; bounds: Buffer[] }> = {};
  for (const { meta_data: column } of groups.flatMap(({ columns }) => columns)) {
    if (column === undefined) continue;
    const name = column.path_in_schema[0] as string;
    const of = found[name] ?? { bytes: 0, nulls: 0, bounds: [] };
    found[name] = of;
    of.bytes += Number(column.total_compressed_size);
    const { null_count = 0n, min_value, max_value } = column.statistics ?? {};
    of.nulls += Number(null_count);
    const both = [min_value, max_value].map(boundOf).filter((bound) => bound !== null);
    // Numbers are compared as numbers, texts byte by byte.
    if (both.length > 0) of.bounds = leastAndGreatest([...of.bounds, ...both], typeof min_value === 'bigint');
  }
  return Object.fromEntries(
    Object.entries(found).map(
      ([
        name,
        {
          bytes,
          nulls,
          bounds: [least, greatest],
        },
      ]) => [
        name,
        {
          ...{ bytes, nulls },
          ...(least !== undefined && { lower: least.subarray(0, wholeChars(least)).toString('base64') }),
          ...(greatest !== undefined &&
            greatest.length <= maxBoundBytes && { upper: greatest.toString('base64') }),
        },
      ],
    ),
  );
}

function boundOf(value: unknown): Buffer | null {
  if (typeof value === 'string') return Buffer.from(value);
  if (typeof value !== 'bigint') return null;
  const bound = Buffer.alloc(8);
  bound.writeBigInt64LE(value);
  return bound;
}

/** Returns how many bytes a bound takes without cutting a character. */
function wholeChars(bytes: Buffer): number {
  let end = Math.min(bytes.length, maxBoundBytes);
  while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return end;
}

function leastAndGreatest(bounds: readonly Buffer[], areNumbers: boolean): Buffer[] {
  const sorted = [...bounds].sort((a, b) =>
    areNumbers ? Number(a.readBigInt64LE() - b.readBigInt64LE()) : Buffer.compare(a, b),
  );
  return [sorted[0], sorted.at(-1)].filter((bound) => bound !== undefined);
}

function toEvent({ inserted_at, company_id, ...event }: ParquetEvent): LakeEvent {
  return { ...event, company_id: company_id ?? null, micros: Number(inserted_at) };
}

function storedBuffer(
  files: FileStore,
  { ref, bytes }: { readonly ref: FileRef; readonly bytes: number },
): AsyncBuffer {
  return {
    byteLength: bytes,
    slice: async (start, end = bytes) => arrayBufferOf(await files.readRange(ref, start, end)),
  };
}

/** Reads a row group at once: its columns lie one after another, and on S3 each read is a request. */
async function holdGroup(
  stored: AsyncBuffer,
  group: FileMetaData['row_groups'][number],
): Promise<AsyncBuffer> {
  let [start, end] = [Number.POSITIVE_INFINITY, 0];
  for (const { meta_data: column } of group.columns) {
    if (column === undefined) throw new Fault('a file of the lake does not say where its columns are');
    const first = Number(column.dictionary_page_offset ?? column.data_page_offset);
    start = Math.min(start, first);
    end = Math.max(end, first + Number(column.total_compressed_size));
  }
  const held = await stored.slice(start, end);
  return {
    byteLength: stored.byteLength,
    slice: async (from, to = stored.byteLength) =>
      from >= start && to <= end ? held.slice(from - start, to - start) : stored.slice(from, to),
  };
}

function arrayBufferOf({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}

/** A file that is being read, and its next event. */
interface Cursor {
  readonly events: AsyncGenerator<LakeEvent>;
  head: LakeEvent;
}

async function* eventsOf(files: FileStore, file: DataFile): AsyncGenerator<LakeEvent> {
  for await (const group of readEvents(files, file)) yield* group;
}

/**
 * Merges the events of several files in the order of exports: by time, then by id, then by user. Of an event that is in two of them (it came
 * again after the first had left) the first. A file is opened when its first event is due: those of different
 * months are read one after another, whatever their number. `data` is in the order of their first events.
 */
export async function* mergeFiles(files: FileStore, data: readonly DataFile[]): AsyncGenerator<LakeEvent> {
  const waiting = [...data];
  let open: Cursor[] = [];
  let last: LakeEvent | null = null;
  try {
    for (;;) {
      let first = leastOf(open);
      while (
        waiting[0] !== undefined &&
        (first === undefined || waiting[0].firstMicros <= first.head.micros)
      ) {
        const events = eventsOf(files, waiting[0]);
        waiting.shift();
        const { value, done } = await events.next();
        if (done !== true) open.push({ events, head: value });
        first = leastOf(open);
      }
      if (first === undefined) return;
      const { events, head } = first;
      if (last === null || compareEvents(last, head) !== 0) yield head;
      last = head;
      const { value, done } = await events.next();
      if (done === true) open = open.filter((each) => each.events !== events);
      else first.head = value;
    }
  } finally {
    for (const { events } of open) await events.return(undefined);
  }
}

function leastOf(open: readonly Cursor[]): Cursor | undefined {
  let least = open[0];
  for (const cursor of open) {
    if (least !== undefined && compareEvents(cursor.head, least.head) < 0) least = cursor;
  }
  return least;
}

function compareEvents(a: LakeEvent, b: LakeEvent): number {
  return a.micros - b.micros || compareIds(a.event_id, b.event_id) || compareIds(a.user_id, b.user_id);
}

/** Compares ids as PostgreSQL does: byte by byte. */
function compareIds(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
