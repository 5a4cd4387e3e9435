import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { Fault } from '../domain/errors.ts';
import type { FileRef, FileStore } from '../files/file-store.ts';
import type { Archive } from '../postgres/stores/retention.ts';

/*
 * Events that left the database are Parquet files as exports have them, each in order of time. Whoever reads one holds a
 * row group at a time (2 500 events or 512 KiB before they were packed) and the footer (some 2 KiB for each of them).
 */

export interface ArchivedEvent {
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

interface ParquetEvent extends Omit<ArchivedEvent, 'micros' | 'company_id'> {
  readonly company_id?: string | null;
  readonly inserted_at: bigint;
}

const parsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  // TextDecoder would leave out a mark at the beginning of a text.
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'),
};

/** All events of a file, a row group at a time. @throws Fault if they are not as many as they should be. */
export async function* readArchive(
  files: FileStore,
  file: { readonly ref: FileRef; readonly bytes: number; readonly rows: number },
): AsyncGenerator<ArchivedEvent[]> {
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
      parsers,
    })) as unknown as ParquetEvent[];
    rows += count;
    yield events.map(toEvent);
  }
  if (rows !== file.rows) throw new Fault(`an archive holds ${rows} events, not ${file.rows}`);
}

function toEvent({ inserted_at, company_id, ...event }: ParquetEvent): ArchivedEvent {
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

/** Its columns lie one after another: one read instead of one for each, which on S3 is a request. */
async function holdGroup(
  stored: AsyncBuffer,
  group: FileMetaData['row_groups'][number],
): Promise<AsyncBuffer> {
  let [start, end] = [Number.POSITIVE_INFINITY, 0];
  for (const { meta_data: column } of group.columns) {
    if (column === undefined) throw new Fault('an archive does not say where its columns are');
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
  readonly events: AsyncGenerator<ArchivedEvent>;
  head: ArchivedEvent;
}

async function* eventsOf(files: FileStore, archive: Archive): AsyncGenerator<ArchivedEvent> {
  for await (const group of readArchive(files, archive)) yield* group;
}

/**
 * The events of several files in the order of exports: by time, then by id, then by user. Of an event that is in two of them (it came
 * again after the first had been archived) the first. A file is opened when its first event is due: those of different
 * months are read one after another, whatever their number. `archives` are in the order of their first events.
 */
export async function* mergeArchives(
  files: FileStore,
  archives: readonly Archive[],
): AsyncGenerator<ArchivedEvent> {
  const waiting = [...archives];
  let open: Cursor[] = [];
  let last: ArchivedEvent | null = null;
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

function compareEvents(a: ArchivedEvent, b: ArchivedEvent): number {
  return a.micros - b.micros || compareIds(a.event_id, b.event_id) || compareIds(a.user_id, b.user_id);
}

/** Compares ids as PostgreSQL does: byte by byte. */
function compareIds(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
