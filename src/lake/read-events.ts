import { type AsyncBuffer, parquetMetadataAsync } from 'hyparquet';
import { Fault, TransientError } from '../domain/errors.ts';
import { type FileRef, type FileStore, LostLakeFile } from '../files/file-store.ts';
import type { DataFile } from '../postgres/stores/lake-files.ts';
import { sumIn } from './group-sums.ts';
import { LakeGroup, PageMemory, startOf } from './row-group.ts';

/*
 * The data files of the lake are Parquet files as exports have them, each in order of time. Whoever reads one holds a row group at a
 * time (2 500 events or 512 KiB before they were packed) and the footer (some 2 KiB for each of them).
 */

const parsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  // Bounds stay bytes: they are compared as such, and written again.
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes),
};

/** Microseconds since 1970, `to` excluded. Row groups without events of the time are not read. */
export interface Wanted {
  readonly from: number;
  readonly to: number;
}

const always: Wanted = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/**
 * Reads the row groups of a file that may hold what is wanted. Each is read at once: its columns lie together, and on S3 each read is a
 * request. @throws LostLakeFile
 */
export async function* readGroups(
  files: FileStore,
  file: Pick<DataFile, 'ref' | 'bytes' | 'rows'> & { readonly sums?: Buffer | null },
  wanted: Wanted = always,
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
    const times = chunks.find(({ path_in_schema: [name] }) => name === 'inserted_at')?.statistics;
    if (Number(times?.max_value) < wanted.from || Number(times?.min_value) >= wanted.to) continue;
    const start = Math.min(...chunks.map(startOf));
    const end = Math.max(...chunks.map((about) => startOf(about) + Number(about.total_compressed_size)));
    const bytes = await files.readRange(file.ref, start, end).catch(lose);
    const sum = sumIn(file.sums ?? null, place);
    yield new LakeGroup(group, { ref: file.ref, bytes, start, memory, fieldIds, sum });
  }
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
