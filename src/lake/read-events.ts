import { type AsyncBuffer, parquetMetadataAsync, type Statistics } from 'hyparquet';
import { Fault, TransientError } from '../domain/errors.ts';
import { type FileRef, type FileStore, LostLakeFile } from '../files/file-store.ts';
import type { DataFile } from '../postgres/stores/lake-files.ts';
import { sumIn } from './group-sums.ts';
import { LakeGroup, PageMemory, startOf } from './row-group.ts';
import { boundOf } from './statistics.ts';

/*
 * The data files of the lake are Parquet files as exports have them, each in order of time. Whoever reads one holds a row group at a
 * time (2 500 events or 512 KiB before they were packed) and the footer (some 2 KiB for each of them).
 */

const parsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  // Bounds stay bytes: they are compared as such, and written again.
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes),
};

/** The events that a reader looks for. Files and row groups that cannot hold any are not read. */
export interface Wanted {
  /** Microseconds since 1970, `to` excluded. */
  readonly from: number;
  readonly to: number;
  /** In each of these lists, one of the columns has one of its texts. */
  readonly texts: readonly (readonly { readonly column: string; readonly any: readonly Buffer[] }[])[];
}

export const allEvents: Wanted = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, texts: [] };

type Bounds = { readonly least: Buffer; readonly greatest: Buffer | null } | null;

function mayHold({ texts }: Wanted, boundsOf: (column: string) => Bounds): boolean {
  return texts.every((either) =>
    either.some(({ column, any }) => {
      const bounds = boundsOf(column);
      if (bounds === null) return true;
      const { least, greatest } = bounds;
      return any.some(
        (text) => least.compare(text) <= 0 && (greatest === null || greatest.compare(text) >= 0),
      );
    }),
  );
}

/** Tells whether the statistics of a file allow for what is wanted. */
export function mayHoldAny({ statistics }: Pick<DataFile, 'statistics'>, wanted: Wanted): boolean {
  return mayHold(wanted, (column) => {
    const { lower, upper } = statistics[column] ?? {};
    if (lower === undefined) return null;
    return {
      least: Buffer.from(lower, 'base64'),
      greatest: upper === undefined ? null : Buffer.from(upper, 'base64'),
    };
  });
}

/**
 * Reads the row groups of a file that may hold what is wanted. Each is read at once: its columns lie together, and on S3 each read is a
 * request. @throws LostLakeFile
 */
export async function* readGroups(
  files: FileStore,
  file: Pick<DataFile, 'ref' | 'bytes' | 'rows'> & { readonly sums?: Buffer | null },
  wanted: Wanted = allEvents,
): AsyncGenerator<LakeGroup> {
  const memory = new PageMemory();
  const lose = (cause: unknown): never => {
    throw cause instanceof TransientError ? cause : new LostLakeFile(file.ref, cause);
  };
  const footer = await parquetMetadataAsync(storedBuffer(files, file), { parsers }).catch(lose);
  const { num_rows, row_groups: groups, schema } = footer;
  const fieldIds = schema.slice(1).map(({ field_id }) => field_id);
  if (Number(num_rows) !== file.rows) lose(new Fault(`it holds ${num_rows} rows, not ${file.rows}`));
  for (const [place, group] of groups.entries()) {
    const chunks = group.columns.map(({ meta_data: about }) => about).filter((about) => about !== undefined);
    const of = (column: string) => chunks.find(({ path_in_schema: [name] }) => name === column)?.statistics;
    const { min_value: first, max_value: last } = of('inserted_at') ?? {};
    if (
      Number(last) < wanted.from ||
      Number(first) >= wanted.to ||
      !mayHold(wanted, (column) => boundsIn(of(column)))
    )
      continue;
    const start = Math.min(...chunks.map(startOf));
    const end = Math.max(...chunks.map((about) => startOf(about) + Number(about.total_compressed_size)));
    const bytes = await files.readRange(file.ref, start, end).catch(lose);
    const sum = sumIn(file.sums ?? null, place);
    yield new LakeGroup(group, { ref: file.ref, bytes, start, memory, fieldIds, sum });
  }
}

function boundsIn({ min_value, max_value }: Statistics = {}): Bounds {
  const [least, greatest] = [min_value, max_value].map(boundOf);
  return least ? { least, greatest: greatest ?? null } : null;
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

function arrayBufferOf({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
}
