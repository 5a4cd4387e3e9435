import { createHash } from 'node:crypto';
import {
  type AsyncBuffer,
  type ColumnMetaData,
  type FileMetaData,
  parquetMetadataAsync,
  parquetScan,
  type RowGroup,
} from 'hyparquet';
import { Fault, TransientError } from '../../base/errors.ts';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { columnsOf, everything } from '../../domain/export.ts';
import type { PackedGroup } from '../../export/write/parquet.ts';
import { Gathered, type RowBlock, separator } from '../../export/write/rows.ts';
import { type FileRef, type FileStore, MissingFileError } from '../../files/file-store.ts';
import type { WrittenFile } from './file-store.ts';

/*
 * A reader needs memory for one row group (2 500 events, or 512 KiB unpacked), plus 2 KiB for every
 * row group of the file.
 */

const columns = columnsOf('events', everything);

/** Times are read as microseconds. A byte order mark at the start of a string is kept. */
const parsers = {
  timestampFromMicroseconds: String,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString(),
};

/** Reads the minimum and maximum of a column in a form that can be copied to a new file. */
const footerParsers = {
  timestampFromMicroseconds: (micros: bigint) => micros,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes),
};

export class LostLakeFile extends MissingFileError {
  constructor(ref: FileRef, cause: unknown) {
    super(`${ref}, a file of the lake, is missing or damaged: bring it back from a copy`, { cause });
  }
}

interface StoredGroup {
  readonly ref: FileRef;
  readonly metadata: FileMetaData;
  /** The bytes of the file from position `start`. */
  readonly bytes: Buffer;
  readonly start: number;
}

export class LakeGroup implements PackedGroup {
  readonly rows: number;
  /** The member `metadata` describes only this group. */
  readonly #stored: StoredGroup;
  readonly #chunks: readonly ColumnMetaData[];

  constructor(group: RowGroup, { metadata, ...stored }: StoredGroup) {
    this.rows = Number(group.num_rows);
    this.#stored = { ...stored, metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] } };
    this.#chunks = chunksOf(group);
  }

  /** True if `fields` are the first property columns of the file. */
  hasFields(fields: readonly { readonly id: number }[]): boolean {
    const properties = this.#stored.metadata.schema.slice(1 + columns.length);
    return fields.every(({ id }, at) => id === properties[at]?.field_id);
  }

  /** Missing values are `null`. @throws LostLakeFile */
  async column(name: string): Promise<readonly (string | null)[]> {
    const { ref, metadata, bytes, start: first } = this.#stored;
    const read = (start: number, end: number) => bytes.subarray(start - first, end - first);
    const file = bufferOf(first + bytes.length, read);
    try {
      const scan = await parquetScan({ file, metadata, columns: [name], parsers });
      const values = await scan.readColumn({ column: name, rowStart: 0, rowEnd: this.rows });
      return Array.from(values as ArrayLike<string | null | undefined>, (value) => value ?? null);
    } catch (cause) {
      throw new LostLakeFile(ref, cause);
    }
  }

  packed(place: number): { readonly about: ColumnMetaData; readonly bytes: Buffer } {
    const about = this.#chunks[place] as ColumnMetaData;
    const at = startOf(about) - this.#stored.start;
    return { about, bytes: this.#stored.bytes.subarray(at, at + Number(about.total_compressed_size)) };
  }
}

/** @throws LostLakeFile, even after the last group if the hash shows that the file has changed */
export async function* readGroups(files: FileStore, file: WrittenFile): AsyncGenerator<LakeGroup> {
  const { ref, bytes: length } = file;
  const read = (start: number, end: number) => files.readRange(ref, start, end);
  try {
    const metadata = await parquetMetadataAsync(bufferOf(length, read), { parsers: footerParsers });
    const hash = createHash('sha256');
    let at = 0;
    let rows = 0;
    for (const group of metadata.row_groups) {
      const ends = chunksOf(group).map((about) => startOf(about) + Number(about.total_compressed_size));
      const end = Math.max(...ends);
      const bytes = await read(at, end);
      hash.update(bytes);
      yield new LakeGroup(group, { ref, metadata, bytes, start: at });
      at = end;
      rows += Number(group.num_rows);
    }
    hash.update(await read(at, length));
    if (hash.digest('hex') !== file.sha256 || rows !== file.rows) throw new Fault('it was changed');
  } catch (cause) {
    throw cause instanceof TransientError ? cause : new LostLakeFile(ref, cause);
  }
}

function chunksOf({ columns: chunks }: RowGroup): ColumnMetaData[] {
  return chunks.flatMap(({ meta_data: about }) => about ?? []);
}

function startOf({ dictionary_page_offset, data_page_offset }: ColumnMetaData): number {
  return Number(dictionary_page_offset ?? data_page_offset);
}

function bufferOf(
  byteLength: number,
  read: (start: number, end: number) => Buffer | Promise<Buffer>,
): AsyncBuffer {
  // hyparquet requires an ArrayBuffer that contains exactly these bytes.
  return {
    byteLength,
    slice: async (start, end = byteLength) => new Uint8Array(await read(start, end)).buffer,
  };
}

export interface Erasure {
  readonly entity: Entity;
  readonly ids: ReadonlySet<string>;
}

/** Returns the events as values for COPY, without erased users and companies. */
export async function valuesOf(group: LakeGroup, erasure?: Erasure): Promise<RowBlock> {
  const isErased = (entity: Entity, id: string | null | undefined): boolean =>
    erasure?.entity === entity && erasure.ids.has(id ?? '');
  const texts = await Promise.all(
    columns.map(async ({ name, kind }) => {
      const values = await group.column(name);
      return values.map((value) => {
        if (value === null || (name === idColumn.companies && isErased('companies', value))) return '';
        return kind === 'text' ? JSON.stringify(value) : value;
      });
    }),
  );
  const users = await group.column(idColumn.users);
  const rows = new Gathered();
  for (let row = 0; row < group.rows; row++) {
    if (isErased('users', users[row])) continue;
    rows.addRow(Buffer.from(`${texts.map((column) => column[row]).join(separator)}\n`));
  }
  return rows.block();
}

/**
 * Returns a hash of the events in the files. `hashPlan` returns the same hash for the same events.
 * @throws LostLakeFile
 */
export async function contentOf(files: FileStore, data: readonly WrittenFile[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of data)
    for await (const group of readGroups(files, file)) hash.update((await valuesOf(group)).bytes);
  return hash.digest('hex');
}
